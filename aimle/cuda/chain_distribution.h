// The distribution over label sequences by a group of threads (exact/chain_distribution.h has the
// equations): always by logarithms, one label per thread.
//
// The CPU has a text of its own (exact/chain_sums.h), which multiplies weights directly, in vector
// registers, unless they are far apart. This one, by one thread, takes several times as long.
#pragma once

#include <cmath>
#include <cstdint>

#include "aimle/cuda/chain.h"
#include "aimle/exact/masked_scores.h"
#include "aimle/exact/uniform.h"

namespace aimle::cuda {

/// Memory of one row: log F and, if requested, log B and the means of <z, v>. The sums of a
/// position are divided by the largest of them, whose logarithm is its scale.
struct ChainTables {
  enum class Wanted { kForward, kMarginals, kCovariance };

  double* forward;        // [steps + 1, labels]
  double* forward_scale;  // [steps + 1]
  double* backward;       // [steps + 1, labels]
  double* before;         // [steps + 1, labels], for the part before a label
  double* behind;         // [steps + 1, labels]
  double* mean;           // [steps], of v at a step

  static int64_t doubles(int64_t steps, int64_t labels, Wanted wanted) {
    const int64_t table = (steps + 1) * labels, line = steps + 1;
    const int64_t tables = wanted == Wanted::kForward ? 1 : wanted == Wanted::kMarginals ? 2 : 4;
    const int64_t lines = wanted == Wanted::kCovariance ? 2 : 1;
    return tables * table + lines * line;
  }
  AIMLE_DEVICE static ChainTables at(double* memory, int64_t steps, int64_t labels) {
    const int64_t table = (steps + 1) * labels, line = steps + 1;
    double* const second = memory + table + line;
    double* const third = second + table;
    return {memory, memory + table, second, third, third + table, third + 2 * table};
  }
};

struct ChainRow {
  Status status;
  int64_t steps;
  double log_partition;
};

/// log of the sum over i < count of exp value(i).
template <class Value>
AIMLE_DEVICE double log_sum(int64_t count, const Value& value) {
  const double never = -__builtin_huge_val();
  double largest = never;
  for (int64_t i = 0; i < count; ++i) {
    const double x = value(i);
    largest = x > largest ? x : largest;
  }
  if (largest == never) return never;
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += exp(value(i) - largest);
  return largest + log(sum);
}

/// Fills line t of a table by value(i), divides by the largest, and returns its logarithm.
template <class Group, class Value>
AIMLE_DEVICE double fill_line(Group& group, int64_t labels, double* line, const Value& value) {
  double largest = -__builtin_huge_val();
  for (int64_t i = group.rank(); i < labels; i += group.size()) {
    line[i] = value(i);
    largest = line[i] > largest ? line[i] : largest;
  }
  largest = group.reduce(largest, Higher{});
  if (largest > -__builtin_huge_val()) {
    for (int64_t i = group.rank(); i < labels; i += group.size()) line[i] -= largest;
  }
  group.sync();
  return largest;
}

/// Forward sums and the log-partition; the same for all threads.
template <class T, class Group>
AIMLE_DEVICE ChainRow read_chain(Group& group, const ChainShape& chain, const MaskedScores<T>& x,
                                 const ChainTables& tables) {
  const int64_t labels = chain.labels, edges = chain.edges_per_step();
  const int64_t steps = steps_of_mask(group, chain, x.mask);
  bool bad = false;
  for (int64_t e = group.rank(); e < steps * edges; e += group.size()) {
    bad |= !(x(e) < __builtin_huge_val());
  }
  if (group.any(bad)) return {Status::kNaN, steps, 0};
  for (int64_t i = group.rank(); i < labels; i += group.size()) tables.forward[i] = 0;
  group.sync();
  double scale = 0;
  for (int64_t t = 0; t < steps; ++t) {
    const double* const from = tables.forward + t * labels;
    const double largest =
        fill_line(group, labels, tables.forward + (t + 1) * labels, [&](int64_t j) {
          return log_sum(labels,
                         [&](int64_t i) { return from[i] + x(t * edges + i * labels + j); });
        });
    if (largest == -__builtin_huge_val()) return {Status::kDisconnected, steps, 0};
    if (group.rank() == 0) tables.forward_scale[t + 1] = largest;
    scale += largest;
  }
  group.sync();
  // A chain of length 1 has no edge: one structure, whatever its label.
  if (steps == 0) return {Status::kOk, 0, 0.0};
  const double* const last = tables.forward + steps * labels;
  return {Status::kOk, steps, scale + log_sum(labels, [&](int64_t j) { return last[j]; })};
}

template <class T, class Group>
AIMLE_DEVICE void fill_backward_sums(Group& group, const ChainShape& chain, const ChainRow& row,
                                     const MaskedScores<T>& x, const ChainTables& tables) {
  const int64_t labels = chain.labels, edges = chain.edges_per_step();
  double* const last = tables.backward + row.steps * labels;
  for (int64_t i = group.rank(); i < labels; i += group.size()) last[i] = 0;
  group.sync();
  for (int64_t t = row.steps - 1; t >= 0; --t) {
    const double* const to = tables.backward + (t + 1) * labels;
    fill_line(group, labels, tables.backward + t * labels, [&](int64_t i) {
      return log_sum(labels, [&](int64_t j) { return x(t * edges + i * labels + j) + to[j]; });
    });
  }
  group.sync();
}

/// Calls body(e, mu, i, j) for a thread's share of the edges of step t. Weights are relative to the
/// largest: rounding can change all logarithms by the same large number.
template <class T, class Group, class Body>
AIMLE_DEVICE void for_each_edge(Group& group, const ChainShape& chain, const MaskedScores<T>& x,
                                const ChainTables& tables, int64_t t, const Body& body) {
  const int64_t labels = chain.labels, edges = chain.edges_per_step();
  const auto log_weight = [&](int64_t at) {
    const double before = tables.forward[t * labels + at / labels];
    return before + x(t * edges + at) + tables.backward[(t + 1) * labels + at % labels];
  };
  double most = -__builtin_huge_val(), sum = 0;
  for (int64_t at = group.rank(); at < edges; at += group.size()) {
    const double weight = log_weight(at);
    most = weight > most ? weight : most;
  }
  most = group.reduce(most, Higher{});
  for (int64_t at = group.rank(); at < edges; at += group.size()) sum += exp(log_weight(at) - most);
  sum = group.reduce(sum, Plus{});
  for (int64_t at = group.rank(); at < edges; at += group.size()) {
    body(t * edges + at, exp(log_weight(at) - most) / sum, at / labels, at % labels);
  }
}

/// The mean of value(i), i < count, under weights exp(log_weight(i)); 0 if all of them are zero.
template <class Weight, class Value>
AIMLE_DEVICE double mean_of(int64_t count, const Weight& log_weight, const Value& value) {
  double most = -__builtin_huge_val(), sum = 0, total = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double weight = log_weight(i);
    most = weight > most ? weight : most;
  }
  if (most == -__builtin_huge_val()) return 0;
  for (int64_t i = 0; i < count; ++i) {
    const double p = exp(log_weight(i) - most);
    sum += p * value(i);
    total += p;
  }
  return sum / total;
}

/// Marginals [size], zeros past the end of the chain.
template <class T, class Group>
AIMLE_DEVICE void write_marginals(Group& group, const ChainShape& chain, const ChainRow& row,
                                  const MaskedScores<T>& x, const ChainTables& tables, T* out) {
  for (int64_t t = 0; t < row.steps; ++t) {
    for_each_edge(group, chain, x, tables, t,
                  [&](int64_t e, double mu, int64_t, int64_t) { out[e] = static_cast<T>(mu); });
  }
  const int64_t edges = chain.edges_per_step();
  for (int64_t e = row.steps * edges + group.rank(); e < chain.steps * edges; e += group.size()) {
    out[e] = T(0);
  }
}

/// Cov(z) v [size], zeros past the end of the chain.
template <class T, class Group>
AIMLE_DEVICE void write_chain_covariance(Group& group, const ChainShape& chain, const ChainRow& row,
                                         const MaskedScores<T>& x, const T* v,
                                         const ChainTables& tables, T* out) {
  const double never = -__builtin_huge_val();
  const int64_t labels = chain.labels, edges = chain.edges_per_step();
  for (int64_t t = 0; t < row.steps; ++t) {
    double sum = 0, total = 0;
    for_each_edge(group, chain, x, tables, t, [&](int64_t e, double mu, int64_t, int64_t) {
      if (mu > 0) sum += mu * static_cast<double>(v[e]);
      total += mu;
    });
    sum = group.reduce(sum, Plus{});
    total = group.reduce(total, Plus{});
    if (group.rank() == 0) tables.mean[t] = sum / total;
  }
  for (int64_t i = group.rank(); i < labels; i += group.size()) {
    tables.before[i] = tables.behind[row.steps * labels + i] = 0;
  }
  group.sync();
  // v minus its mean at the step, if there is an edge.
  const auto centred = [&](int64_t t, int64_t e) {
    return x(e) > never ? static_cast<double>(v[e]) - tables.mean[t] : 0.0;
  };
  for (int64_t t = 0; t < row.steps; ++t) {
    const double* const from = tables.forward + t * labels;
    for (int64_t j = group.rank(); j < labels; j += group.size()) {
      const auto edge = [&](int64_t i) { return t * edges + i * labels + j; };
      tables.before[(t + 1) * labels + j] = mean_of(
          labels, [&](int64_t i) { return from[i] + x(edge(i)); },
          [&](int64_t i) { return tables.before[t * labels + i] + centred(t, edge(i)); });
    }
    group.sync();
  }
  for (int64_t t = row.steps - 1; t >= 0; --t) {
    const double* const to = tables.backward + (t + 1) * labels;
    for (int64_t i = group.rank(); i < labels; i += group.size()) {
      const auto edge = [&](int64_t j) { return t * edges + i * labels + j; };
      tables.behind[t * labels + i] = mean_of(
          labels, [&](int64_t j) { return x(edge(j)) + to[j]; },
          [&](int64_t j) { return tables.behind[(t + 1) * labels + j] + centred(t, edge(j)); });
    }
    group.sync();
  }
  for (int64_t t = 0; t < row.steps; ++t) {
    for_each_edge(group, chain, x, tables, t, [&](int64_t e, double mu, int64_t i, int64_t j) {
      const double along =
          tables.before[t * labels + i] + centred(t, e) + tables.behind[(t + 1) * labels + j];
      out[e] = static_cast<T>(mu > 0 ? mu * along : 0.0);
    });
  }
  for (int64_t e = row.steps * edges + group.rank(); e < chain.steps * edges; e += group.size()) {
    out[e] = T(0);
  }
}

/// The first i < count at which the sum of weight(i) exceeds `wanted`; the last with a weight, in
/// case rounding leaves the sum short.
template <class Weight>
AIMLE_DEVICE int64_t pick_label(int64_t count, double wanted, const Weight& weight) {
  double before = 0;
  int64_t chosen = 0;
  for (int64_t i = 0; i < count && before <= wanted; ++i) {
    const double w = weight(i);
    if (w > 0) chosen = i;
    before += w;
  }
  return chosen;
}

/// Samples of one row, z [samples, size], one sample per thread; instance b of the key.
template <class T, class Group>
AIMLE_DEVICE void sample_chain(Group& group, const ChainShape& chain, const ChainRow& row,
                               const MaskedScores<T>& x, const ChainTables& tables, Key key,
                               int64_t b, int64_t samples, T* z) {
  const int64_t labels = chain.labels, edges = chain.edges_per_step(), size = chain.steps * edges;
  for (int64_t e = group.rank(); e < samples * size; e += group.size()) z[e] = T(0);
  group.sync();
  for (int64_t s = group.rank(); s < samples && row.steps > 0; s += group.size()) {
    const double* const last = tables.forward + row.steps * labels;
    double sum = 0;
    for (int64_t j = 0; j < labels; ++j) sum += exp(last[j]);
    int64_t label = pick_label(labels, uniform(key, b, s, row.steps) * sum,
                               [&](int64_t j) { return exp(last[j]); });
    for (int64_t t = row.steps - 1; t >= 0; --t) {
      const double total = tables.forward[(t + 1) * labels + label] + tables.forward_scale[t + 1];
      const int64_t from = pick_label(labels, uniform(key, b, s, t), [&](int64_t i) {
        return exp(tables.forward[t * labels + i] + x(t * edges + i * labels + label) - total);
      });
      z[s * size + t * edges + from * labels + label] = T(1);
      label = from;
    }
  }
  group.sync();
}

}  // namespace aimle::cuda
