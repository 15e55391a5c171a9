// Any solver in one variable: include this to have them all, and to hold one of them, or one of
// your own that obeys map.h.
//
//   aimle::Solver solver = aimle::TopK{.n = 20, .k = 10};
//   solver.solve_rows(rows);
//
// A block of rows is solved by one virtual call, so that the indirection costs nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include "aimle/map/argmax.h"
#include "aimle/map/grid_path.h"
#include "aimle/map/map.h"
#include "aimle/map/spanning_tree.h"
#include "aimle/map/topk.h"

namespace aimle {

/// A solver with its settings. Copies share them.
class Solver {
 public:
  template <MapSolver S>
  Solver(S solver)  // NOLINT(google-explicit-constructor): any solver is a Solver
      : held_(std::make_shared<const Held<S>>(std::move(solver))) {}

  std::string_view name() const { return held_->name(); }
  Sense sense() const { return held_->sense(); }
  int64_t size() const { return held_->size(); }
  double work_ns() const { return held_->work_ns(); }
  SolutionSize solution_size() const { return held_->solution_size(); }
  /// Whether scores are costs that must not be below zero.
  bool has_costs() const { return held_->has_costs(); }
  void validate() const { held_->validate(); }

  void solve_rows(const Rows<float>& rows) const { held_->solve_rows(rows); }
  void solve_rows(const Rows<double>& rows) const { held_->solve_rows(rows); }

  /// Every structure, one after the other; std::invalid_argument for a solver that cannot list
  /// them.
  std::vector<uint8_t> structures() const { return held_->structures(); }

  /// The solver itself if it is of this type, else null.
  template <MapSolver S>
  const S* get_if() const {
    return held_->type() == typeid(S) ? &static_cast<const Held<S>&>(*held_).solver : nullptr;
  }
  template <MapSolver S>
  bool is() const {
    return get_if<S>() != nullptr;
  }

 private:
  struct Interface {
    virtual ~Interface() = default;
    virtual const std::type_info& type() const = 0;
    virtual std::string_view name() const = 0;
    virtual Sense sense() const = 0;
    virtual int64_t size() const = 0;
    virtual double work_ns() const = 0;
    virtual SolutionSize solution_size() const = 0;
    virtual bool has_costs() const = 0;
    virtual void validate() const = 0;
    virtual void solve_rows(const Rows<float>& rows) const = 0;
    virtual void solve_rows(const Rows<double>& rows) const = 0;
    virtual std::vector<uint8_t> structures() const = 0;
  };

  template <MapSolver S>
  struct Held final : Interface {
    explicit Held(S given) : solver(std::move(given)) {}

    const std::type_info& type() const override { return typeid(S); }
    std::string_view name() const override { return S::kName; }
    Sense sense() const override { return S::kSense; }
    int64_t size() const override { return solver.size(); }
    double work_ns() const override { return solver.work_ns(); }
    SolutionSize solution_size() const override { return solver.solution_size(); }
    bool has_costs() const override {
      if constexpr (requires { S::kHasCosts; }) return S::kHasCosts;
      return false;
    }
    void validate() const override { solver.validate(); }
    void solve_rows(const Rows<float>& rows) const override { solve(rows); }
    void solve_rows(const Rows<double>& rows) const override { solve(rows); }
    std::vector<uint8_t> structures() const override {
      if constexpr (requires { solver.structures(); }) {
        return solver.structures();
      } else {
        throw_no_structures(S::kName);
      }
    }

    S solver;

   private:
    template <class T>
    void solve(const Rows<T>& rows) const {
      using aimle::solve_rows;
      solve_rows(solver, rows);
    }
  };

  [[noreturn]] static void throw_no_structures(std::string_view name);

  std::shared_ptr<const Interface> held_;
};

/// Solves every row, on as many threads as are worth it.
template <class T>
void solve(const Solver& solver, const Rows<T>& rows, const Executor& executor = sequential()) {
  solver.validate();
  parallel_for(executor, rows.count, solver.work_ns(), [&](int64_t begin, int64_t end) {
    solver.solve_rows(slice(rows, solver.size(), begin, end));
  });
}

}  // namespace aimle
