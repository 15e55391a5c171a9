// The declaration of a solver, used by ops, layers, exact distributions, diagnosis, C++, Python and
// the command line. In addition to the requirements of map.h its struct has
//
//   static void declare(aimle::Declaration<Viterbi>& solver);   summary, tie rule and settings
//   void fit(aimle::Shape instance);                            takes its size from theta's shape
//
// and, if they apply,
//
//   static constexpr int64_t kInstanceDims = 2;      trailing dimensions of an instance (1)
//   static constexpr bool kHasCosts = true;          scores must not be below zero (false)
//   static constexpr Swaps kSwaps = Swaps::kEntry;   has thresholds: it chooses the k best entries
//   swap_finder                                      has thresholds (map/swap_finder.h)
//   std::vector<uint8_t> structures() const;         lists its structures
//   double structure_count() const;                  how many there are
//   std::vector<int64_t> shape_for(int64_t n) const; the shape of an instance of size n ({n})
//   void take_k_per_row();                           k per row replaces the k of the settings
//   void take_data(int64_t length, const int64_t* data);  instances have `length` integers each
//                                                    (Rows::data); data: see Brought. Before `fit`
//   evaluate_rows, sample_rows, ...                  an exact distribution (exact/distribution.h)
//
// One line in one source file registers it wherever that file is linked or loaded:
//
//   AIMLE_REGISTER_SOLVER(Viterbi)
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "aimle/registry/registry.h"
#include "aimle/registry/solver_kind.h"

namespace aimle {
namespace detail {

/// Rejects names that are unknown, given twice or missing; returns the values in the order of
/// `settings`, with defaults filled in.
std::vector<std::string> values_in_order(const SolverKind& kind, const SettingTexts& given);
std::string canonical_text(const SolverKind& kind, const std::vector<std::string>& values);
[[noreturn]] void throw_no_shape(const SolverKind& kind);
[[noreturn]] void throw_needs_data(const SolverKind& kind);

template <MapSolver S>
class Unsized final : public UnsizedSolver {
 public:
  Unsized(const SolverKind& kind, std::string text, S solver)
      : UnsizedSolver(std::move(text)), kind_(kind), solver_(std::move(solver)) {}

  const SolverKind& kind() const override { return kind_; }

  Solver fit(Shape instance, const Brought& brought) const override {
    S solver = solver_;
    if constexpr (requires { solver.take_k_per_row(); }) {
      if (brought.k) solver.take_k_per_row();
    }
    if constexpr (requires { solver.take_data(int64_t{}, brought.data); }) {
      if (brought.data_length < 0) throw_needs_data(kind_);
      solver.take_data(brought.data_length, brought.data);
    }
    solver.fit(instance);
    solver.validate();
    return solver;
  }

  SolutionSize solution_size() const override { return solver_.solution_size(); }

  std::vector<int64_t> shape_for(int64_t n) const override {
    if constexpr (requires { solver_.shape_for(n); }) {
      return solver_.shape_for(n);
    } else {
      if (kind_.instance_dims != 1) throw_no_shape(kind_);
      return {n};
    }
  }

 private:
  const std::type_info& type() const override { return typeid(S); }
  const void* settings() const override { return &solver_; }

  const SolverKind& kind_;
  S solver_;
};

template <MapSolver S>
class KindOf final : public SolverKind {
 public:
  KindOf() {
    S::declare(declared_);
    name = S::kName;
    summary = declared_.summary;
    ties = declared_.ties;
    sense = S::kSense;
    const Solver solver = S{};
    has_costs = solver.has_costs();
    swaps = solver.swaps();
    fixed_size = solver.solution_size().fixed;
    noise = declared_.noise;
    if (noise.empty()) {
      noise = fixed_size ? "gumbel" : "normal";
      temperature = fixed_size ? 1.0 : kCostTemperature;
    }
    if constexpr (requires { S::kInstanceDims; }) instance_dims = S::kInstanceDims;
    takes_k = requires(S & s) { s.take_k_per_row(); };
    takes_data = requires(S & s) { s.take_data(int64_t{}, nullptr); };
    lists = requires(const S& s) { s.structures(); };
    if constexpr (ExactDistribution<S>) exact = std::make_shared<ExactKindOf<S>>();
    settings = declared_.settings();
  }

  std::shared_ptr<const UnsizedSolver> make(const SettingTexts& given) const override {
    S solver;
    std::vector<std::string> values = values_in_order(*this, given);
    for (size_t i = 0; i < values.size(); ++i) values[i] = declared_.write(i, values[i], solver);
    return std::make_shared<Unsized<S>>(*this, canonical_text(*this, values), std::move(solver));
  }
  const std::type_info& type() const override { return typeid(S); }

 private:
  Declaration<S> declared_;
};

}  // namespace detail

/// Registers a solver under its name. Throws std::invalid_argument if the name is taken.
template <MapSolver S>
bool register_solver() {
  register_kind(std::make_unique<detail::KindOf<S>>());
  return true;
}

}  // namespace aimle

/// At namespace scope in one source file: registers the solver when that file's code is loaded.
#define AIMLE_REGISTER_SOLVER(Type)                            \
  [[maybe_unused]] static const bool aimle_registered_##Type = \
      ::aimle::register_on_load(std::make_unique<::aimle::detail::KindOf<Type>>());
