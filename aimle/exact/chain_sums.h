// The weights of a chain's edges and their forward sums, for values and samples of its distribution
// (chain_distribution.h). For inclusion in their source files: internal linkage.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "aimle/base/isa.h"
#include "aimle/exact/chain_distribution.h"
#include "aimle/exact/chain_loops.h"
#include "aimle/exact/log_domain.h"

namespace aimle {
namespace {

using detail::Linear;
using detail::Logarithmic;

constexpr double kInf = std::numeric_limits<double>::infinity();

// Direct sums are within exp(+-spread) of each other: the spread of one step if every edge may be
// chosen, otherwise that of all steps together. A marginal has three factors.
constexpr double kStepSpread = 200;
constexpr double kRowSpread = 600;

ChainLoops loops_of_machine() {
  if constexpr (kBuiltWithAvx2) {
    if (isa() >= Isa::kAvx2) return avx2::chain_loops();
  }
  return kChainLoops;
}

/// One row's scores and their properties.
struct Weights {
  int64_t labels = 0;
  int64_t edges = 0;            // per step
  int64_t all_steps = 0;        // of the row
  int64_t steps = 0;            // up to the chain's end
  std::vector<double> w;        // the scores, until `exponentiate`
  std::vector<double> largest;  // [steps], score of a step
  double log_scale = 0;         // the sum of the largest
  bool linear = false;
  ChainLoops loops = loops_of_machine();

  explicit Weights(const Chain& solver)
      : labels(solver.labels),
        edges(solver.edges_per_step()),
        all_steps(solver.steps()),
        w(static_cast<size_t>(solver.size())),
        largest(static_cast<size_t>(solver.steps())) {}

  double* step(int64_t t) { return w.data() + t * edges; }
  const double* step(int64_t t) const { return w.data() + t * edges; }

  template <class T>
  Status read(const T* scores, const bool* mask) {
    steps = chain_steps(all_steps, edges, mask);
    double* const all = w.data();
    int64_t bad = 0;
    if (mask == nullptr) {
      for (int64_t j = 0; j < steps * edges; ++j) all[j] = static_cast<double>(scores[j]);
    } else {
      for (int64_t j = 0; j < steps * edges; ++j) {
        all[j] = mask[j] ? static_cast<double>(scores[j]) : -kInf;
      }
    }
    for (int64_t j = 0; j < steps * edges; ++j) bad += all[j] < kInf ? 0 : 1;
    if (bad != 0) return Status::kNaN;
    log_scale = 0;
    double sum_of_spreads = 0;
    bool dense = true;
    for (int64_t t = 0; t < steps; ++t) {
      const ChainExtent extent = loops.extent(step(t), edges);
      if (extent.largest == -kInf) return Status::kDisconnected;
      largest[static_cast<size_t>(t)] = extent.largest;
      log_scale += extent.largest;
      const double spread = extent.largest - extent.least;
      sum_of_spreads += spread;
      dense &= extent.all && spread <= kStepSpread;
    }
    linear = dense || sum_of_spreads <= kRowSpread;
    return Status::kOk;
  }

  /// Subtracts the largest score of each step, and exponentiates if they are Linear.
  template <class Number>
  void exponentiate() {
    for (int64_t t = 0; t < steps; ++t) {
      double* const x = step(t);
      const double most = largest[static_cast<size_t>(t)];
      if constexpr (std::is_same_v<Number, Linear>) {
        loops.exponentiate(x, edges, most);
      } else {
        for (int64_t e = 0; e < edges; ++e) x[e] -= most;
      }
    }
  }
};

/// Sums of every position, [steps + 1, labels], divided by the largest of their position.
struct Sums {
  int64_t labels;
  std::vector<double> sum;
  std::vector<double> scale;  // [steps + 1], what they were divided by

  explicit Sums(const Chain& solver)
      : labels(solver.labels),
        sum(static_cast<size_t>(solver.length * solver.labels)),
        scale(static_cast<size_t>(solver.length)) {}

  double* at(int64_t t) { return sum.data() + t * labels; }
  const double* at(int64_t t) const { return sum.data() + t * labels; }

  template <class Number>
  void start(int64_t t) {
    std::fill_n(at(t), labels, Number::from_log(0));
    scale[static_cast<size_t>(t)] = Number::from_log(0);
  }

  /// False if all sums are zero.
  template <class Number>
  bool normalise(int64_t t) {
    double* const now = at(t);
    const double largest = *std::max_element(now, now + labels);
    scale[static_cast<size_t>(t)] = largest;
    if (largest == Number::zero()) return false;
    for (int64_t i = 0; i < labels; ++i) now[i] = Number::divide(now[i], largest);
    return true;
  }
};

/// log of the sum over i < count of exp value(i).
template <class Value>
double log_sum(int64_t count, const Value& value) {
  double most = -kInf;
  for (int64_t i = 0; i < count; ++i) most = std::max(most, value(i));
  if (most == -kInf) return most;
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += std::exp(value(i) - most);
  return most + std::log(sum);
}

/// False if there is no sequence.
template <class Number>
bool fill_forward(const Weights& weights, Sums& forward) {
  const int64_t labels = weights.labels;
  forward.start<Number>(0);
  for (int64_t t = 0; t < weights.steps; ++t) {
    const double* const before = forward.at(t);
    double* const after = forward.at(t + 1);
    if constexpr (std::is_same_v<Number, Linear>) {
      weights.loops.forward(labels, before, weights.step(t), after);
    } else {
      for (int64_t j = 0; j < labels; ++j) {
        const double* const column = weights.step(t) + j;
        after[j] = log_sum(labels, [&](int64_t i) { return before[i] + column[i * labels]; });
      }
    }
    if (!forward.normalise<Number>(t + 1)) return false;
  }
  return true;
}

/// Calls body(Number{}, i) for every row i that has a sequence, with its weights and forward sums.
template <class Rows, class Body>
void for_each_chain(const Rows& rows, int64_t size, Weights& weights, Sums& forward,
                    const Body& body) {
  const auto in_its_numbers = [&](const auto& run) {
    weights.linear ? run(Linear{}) : run(Logarithmic{});
  };
  detail::for_each_row(
      rows, size,
      [&](const auto* scores, const bool* mask, int64_t) {
        Status status = weights.read(scores, mask);
        if (status != Status::kOk) return status;
        in_its_numbers([&]<class Number>(Number) {
          weights.template exponentiate<Number>();
          if (!fill_forward<Number>(weights, forward)) status = Status::kDisconnected;
        });
        return status;
      },
      [&](int64_t i) { in_its_numbers([&](auto number) { body(number, i); }); });
}

/// The number one.
template <class Number>
inline constexpr double kOne = std::is_same_v<Number, Linear> ? 1.0 : 0.0;

}  // namespace
}  // namespace aimle
