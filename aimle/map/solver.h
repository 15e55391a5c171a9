// A type-erased solver: one of the library or a custom one that satisfies map.h.
//
//   aimle::Solver solver = aimle::TopK{.n = 20, .k = 10};
//   solver.solve_rows(rows);
//
// One virtual call solves a block of rows, so the indirection costs nothing.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include "aimle/map/map.h"
#include "aimle/map/swap_finder.h"

namespace aimle {

namespace detail {

/// Finds the function in the namespace of the solver.
template <MapSolver S, class T>
void solve_with(const S& solver, const Rows<T>& rows) {
  solve_rows(solver, rows);
}

}  // namespace detail

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
  Swaps swaps() const { return held_->swaps(); }
  /// Null unless swaps() is Swaps::kEach.
  template <class T>
  std::unique_ptr<SwapFinder<T>> swap_finder() const {
    return held_->swap_finder(T{});
  }
  void validate() const { held_->validate(); }

  void solve_rows(const Rows<float>& rows) const { held_->solve_rows(rows); }
  void solve_rows(const Rows<double>& rows) const { held_->solve_rows(rows); }

  /// All structures, one after the other; throws std::invalid_argument if the solver cannot list
  /// them.
  std::vector<uint8_t> structures() const { return held_->structures(); }

  const std::type_info& type() const { return held_->type(); }
  /// Their number, if it is known; otherwise infinity.
  double structure_count() const { return held_->structure_count(); }

  /// The solver itself if it has this type, otherwise null.
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
    virtual Swaps swaps() const = 0;
    virtual std::unique_ptr<SwapFinder<float>> swap_finder(float) const = 0;
    virtual std::unique_ptr<SwapFinder<double>> swap_finder(double) const = 0;
    virtual void validate() const = 0;
    virtual void solve_rows(const Rows<float>& rows) const = 0;
    virtual void solve_rows(const Rows<double>& rows) const = 0;
    virtual std::vector<uint8_t> structures() const = 0;
    virtual double structure_count() const = 0;
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
    Swaps swaps() const override {
      if constexpr (requires { S::kSwaps; }) return S::kSwaps;
      return kFindsSwaps ? Swaps::kEach : Swaps::kNone;
    }
    std::unique_ptr<SwapFinder<float>> swap_finder(float) const override { return finder<float>(); }
    std::unique_ptr<SwapFinder<double>> swap_finder(double) const override {
      return finder<double>();
    }
    void validate() const override { solver.validate(); }
    void solve_rows(const Rows<float>& rows) const override { detail::solve_with(solver, rows); }
    void solve_rows(const Rows<double>& rows) const override { detail::solve_with(solver, rows); }
    std::vector<uint8_t> structures() const override {
      if constexpr (requires { solver.structures(); }) {
        return solver.structures();
      } else {
        throw_no_structures(S::kName);
      }
    }

    double structure_count() const override {
      if constexpr (requires { solver.structure_count(); }) return solver.structure_count();
      return std::numeric_limits<double>::infinity();
    }

    static constexpr bool kFindsSwaps = requires(const S& s) { s.template swap_finder<float>(); };
    template <class T>
    std::unique_ptr<SwapFinder<T>> finder() const {
      if constexpr (kFindsSwaps) return solver.template swap_finder<T>();
      return nullptr;
    }

    S solver;
  };

  [[noreturn]] static void throw_no_structures(std::string_view name);

  std::shared_ptr<const Interface> held_;
};

/// Solves every row, on as many threads as are useful.
template <class T>
void solve(const Solver& solver, const Rows<T>& rows, const Executor& executor = sequential()) {
  solver.validate();
  parallel_for(executor, rows.count, solver.work_ns(), [&](int64_t begin, int64_t end) {
    solver.solve_rows(slice(rows, solver.size(), begin, end));
  });
}

}  // namespace aimle
