// Thresholds of the edges of a chain by a group of threads (estimate/chain_thresholds.cpp has the
// method, and gives the same bits): one label per thread, one step after the other.
#pragma once

#include <cstdint>

#include "aimle/cuda/chain.h"
#include "aimle/cuda/group.h"

namespace aimle::cuda {

template <class T>
struct ChainSwaps {
  ChainShape chain;
  int64_t steps;  // up to the chain's end
  const T* x;
  const bool* mask;  // or null
  const T* d;
  double* score;      // [steps + 1, labels] of the best sequence up to a label
  double* gain;       // and its sum of d
  double* rest;       // [steps + 1, labels] of the best sequence from a label on
  double* rest_gain;  // and its sum of d
  double* other;      // [steps] of the best sequence without the solution's edge
  double* other_gain;
  double solution = 0.0;
  double solution_gain = 0.0;

  static int64_t numbers(const ChainShape& chain) {
    return 4 * (chain.steps + 1) * chain.labels + 2 * chain.steps;
  }
  /// Takes its memory from `memory`, which has space for numbers(chain).
  AIMLE_DEVICE void use(double* memory) {
    const int64_t labels = (chain.steps + 1) * chain.labels;
    score = memory;
    gain = score + labels;
    rest = gain + labels;
    rest_gain = rest + labels;
    other = rest_gain + labels;
    other_gain = other + chain.steps;
  }

  /// `chosen(entry)` defines the solution. Ends with a sync.
  template <class Group, class Chosen>
  AIMLE_DEVICE void find(Group& group, const Chosen& chosen) {
    const int32_t labels = chain.labels;
    solution = solution_gain = 0.0;
    for (int32_t i = group.rank(); i < labels; i += group.size()) {
      score[i] = gain[i] = 0.0;
      rest[steps * labels + i] = rest_gain[steps * labels + i] = 0.0;
    }
    group.sync();
    for (int64_t t = 0; t + 1 < steps; ++t) {
      for (int32_t j = group.rank(); j < labels; j += group.size()) enter(t, j);
      group.sync();
    }
    for (int64_t t = steps - 1; t >= 0; --t) {
      for (int32_t i = group.rank(); i < labels; i += group.size()) leave(t, i);
      group.sync();
    }
    for (int64_t t = 0; t < steps; ++t) avoid(group, t, chosen);
    group.sync();
  }

  struct Threshold {
    double threshold;  // not finite where there is none
    double difference;
  };
  /// Entry e, whether it is in or out.
  AIMLE_DEVICE Threshold of(int64_t e, bool is_in) const {
    const int32_t labels = chain.labels;
    const int64_t edges = chain.edges_per_step(), t = e / edges;
    if (t >= steps) return {-__builtin_huge_val(), 0.0};
    if (is_in) {
      return {other[t] - (solution - static_cast<double>(x[e])), solution_gain - other_gain[t]};
    }
    const int64_t from = t * labels + e % edges / labels, to = (t + 1) * labels + e % labels;
    return {solution - (score[from] + rest[to]),
            ((gain[from] + rest_gain[to]) + static_cast<double>(d[e])) - solution_gain};
  }

 private:
  AIMLE_DEVICE double score_at(int64_t e) const {
    return mask == nullptr || mask[e] ? static_cast<double>(x[e]) : -__builtin_huge_val();
  }
  AIMLE_DEVICE int64_t edge(int64_t t, int32_t i, int32_t j) const {
    return (t * chain.labels + i) * chain.labels + j;
  }

  /// The best sequence up to label j after step t.
  AIMLE_DEVICE void enter(int64_t t, int32_t j) const {
    const int32_t labels = chain.labels;
    double best = -__builtin_huge_val();
    int32_t from = 0;
    for (int32_t i = 0; i < labels; ++i) {
      const double sum = score[t * labels + i] + score_at(edge(t, i, j));
      if (!(sum > best)) continue;
      best = sum;
      from = i;
    }
    score[(t + 1) * labels + j] = best;
    gain[(t + 1) * labels + j] = gain[t * labels + from] + static_cast<double>(d[edge(t, from, j)]);
  }

  /// The best label after step t following label i, except `not_to`, and the sum from i on.
  AIMLE_DEVICE double best_after(int64_t t, int32_t i, int32_t not_to, int32_t& to) const {
    double best = -__builtin_huge_val();
    to = 0;
    for (int32_t j = 0; j < chain.labels; ++j) {
      const double sum = score_at(edge(t, i, j)) + rest[(t + 1) * chain.labels + j];
      if (j == not_to || !(sum > best)) continue;
      best = sum;
      to = j;
    }
    return best;
  }

  AIMLE_DEVICE void leave(int64_t t, int32_t i) const {
    const int32_t labels = chain.labels;
    int32_t to;
    rest[t * labels + i] = best_after(t, i, -1, to);
    rest_gain[t * labels + i] =
        static_cast<double>(d[edge(t, i, to)]) + rest_gain[(t + 1) * labels + to];
  }

  /// The best sequence that avoids the solution's edge of step t; adds that edge to the solution's
  /// sums.
  template <class Group, class Chosen>
  AIMLE_DEVICE void avoid(Group& group, int64_t t, const Chosen& chosen) {
    const int32_t labels = chain.labels;
    const int64_t edges = chain.edges_per_step();
    uint64_t in = 0;
    for (int64_t e = t * edges + group.rank(); e < (t + 1) * edges; e += group.size()) {
      if (chosen(e)) in = static_cast<uint64_t>(e);
    }
    const auto own = static_cast<int64_t>(group.max(in));
    solution += static_cast<double>(x[own]);
    solution_gain += static_cast<double>(d[own]);
    const auto own_from = static_cast<int32_t>(own % edges / labels);
    const auto own_to = static_cast<int32_t>(own % labels);
    double best = -__builtin_huge_val();
    uint32_t at = 0;  // 2^32 - 1 - the label before
    int32_t to;
    for (int32_t i = group.rank(); i < labels; i += group.size()) {
      const double after = i == own_from ? best_after(t, i, own_to, to) : rest[t * labels + i];
      const double sum = score[t * labels + i] + after;
      if (!(sum > best)) continue;
      best = sum;
      at = ~static_cast<uint32_t>(i);
    }
    const double found = group.reduce(best, Higher{});
    at = group.max(best == found ? at : 0u);
    if (group.rank() != 0) return;
    const int32_t from = at == 0 ? 0 : static_cast<int32_t>(~at);
    best_after(t, from, from == own_from ? own_to : -1, to);
    other[t] = found;
    other_gain[t] = (gain[t * labels + from] + rest_gain[(t + 1) * labels + to]) +
                    static_cast<double>(d[edge(t, from, to)]);
  }
};

}  // namespace aimle::cuda
