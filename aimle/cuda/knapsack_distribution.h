// The distribution over knapsacks by a group of threads: the sums of exact/knapsack_distribution.h,
// one line of a table after the other, with one thread per capacity. Every cell gathers its inputs,
// so that no two threads add to the same value.
#pragma once

#include "aimle/cuda/group.h"
#include "aimle/cuda/knapsack.h"
#include "aimle/exact/knapsack_distribution.h"
#include "aimle/exact/log_domain.h"
#include "aimle/exact/uniform.h"

namespace aimle::cuda {

/// Memory of one row.
struct KnapsackTables {
  enum class Wanted { kSums, kMarginals, kCovariance };

  double* x;       // [n], -inf for items that are in no set
  double* weight;  // [n], whole numbers
  double* sums;    // [n + 1, line]: B
  double* lines;   // [4, line]
  double* means;   // [n + 1, line]

  static int64_t doubles(const Knapsack& solver, Wanted wanted) {
    const int64_t line = solver.max_capacity + 1, table = (solver.n + 1) * line;
    return 2 * solver.n + table + (wanted == Wanted::kSums ? 0 : 4 * line) +
           (wanted == Wanted::kCovariance ? table : 0);
  }
  AIMLE_DEVICE static KnapsackTables at(double* memory, const KnapsackShape& shape) {
    const int64_t line = shape.max_capacity + 1;
    double* sums = memory + 2 * shape.n;
    double* lines = sums + (shape.n + 1) * line;
    return {memory, memory + shape.n, sums, lines, lines + 4 * line};
  }
};

/// Properties of a row after it was read.
struct KnapsackRow {
  Status status;
  int64_t n;
  int64_t capacity;
  bool linear;

  AIMLE_DEVICE int64_t line() const { return capacity + 1; }
};

template <class T, class Group>
AIMLE_DEVICE KnapsackRow read_knapsack(Group& group, const KnapsackShape& shape, const T* scores,
                                       const bool* mask, const int64_t* data,
                                       const KnapsackTables& tables) {
  const double infinity = __builtin_huge_val();
  const int64_t given = data[shape.n];
  KnapsackRow row{.status = Status::kOk, .n = shape.n, .capacity = 0, .linear = true};
  uint32_t worst = given < 0 ? 1 : 0;
  uint64_t divisor = 0;
  double spread = 0;
  for (int64_t j = group.rank(); j < shape.n; j += group.size()) {
    const bool allowed = mask == nullptr || mask[j];
    const auto x = static_cast<double>(scores[j]);
    if (data[j] < 0 && worst < 1) worst = 1;
    if (allowed && (x != x || x == infinity)) worst = 2;
    const bool wanted = allowed && x > -infinity && 0 <= data[j] && data[j] <= given;
    tables.x[j] = wanted ? x : -infinity;
    if (!wanted) continue;
    spread += x < 0 ? -x : x;
    divisor = detail::GreatestDivisor{}(divisor, static_cast<uint64_t>(data[j]));
  }
  worst = group.max(worst);
  if (worst != 0) {
    row.status = worst == 2 ? Status::kNaN : Status::kBadData;
    return row;
  }
  divisor = group.reduce(divisor, detail::GreatestDivisor{});
  if (divisor == 0) divisor = 1;
  row.linear = group.reduce(spread, Plus{}) <= aimle::detail::kLinearSpread;
  const detail::CappedSum add{static_cast<uint64_t>(given) / divisor};
  uint64_t total = 0;
  for (int64_t j = group.rank(); j < shape.n; j += group.size()) {
    const uint64_t weight = tables.x[j] > -infinity ? static_cast<uint64_t>(data[j]) / divisor : 0;
    tables.weight[j] = static_cast<double>(weight);
    total = add(total, weight);
  }
  row.capacity = static_cast<int64_t>(group.reduce(total, add));
  const double cells = static_cast<double>(shape.n + 1) * (static_cast<double>(row.capacity) + 1);
  if (row.capacity > shape.max_capacity || cells > static_cast<double>(kMaxKnapsackCells)) {
    row.status = Status::kTooLarge;
  }
  return row;
}

/// The sums, and the probabilities of an item, by numbers of type N.
template <class N>
struct KnapsackSums {
  KnapsackRow row;
  KnapsackTables tables;

  AIMLE_DEVICE double* line(int64_t j) const { return tables.sums + j * row.line(); }
  AIMLE_DEVICE bool may_take(int64_t j) const { return tables.x[j] > -__builtin_huge_val(); }
  AIMLE_DEVICE int64_t weight(int64_t j) const { return static_cast<int64_t>(tables.weight[j]); }

  template <class Group>
  AIMLE_DEVICE void fill(Group& group) const {
    for (int64_t c = group.rank(); c < row.line(); c += group.size()) {
      line(row.n)[c] = N::from_log(0.0);
    }
    group.sync();
    for (int64_t j = row.n; j-- > 0;) {
      const bool taken = may_take(j);
      const int64_t weight_j = weight(j);
      const double e = taken ? N::from_log(tables.x[j]) : 0.0;
      const double* after = line(j + 1);
      for (int64_t c = group.rank(); c < row.line(); c += group.size()) {
        line(j)[c] = taken && c >= weight_j ? N::add(after[c], N::multiply(e, after[c - weight_j]))
                                            : after[c];
      }
      group.sync();
    }
  }

  AIMLE_DEVICE double log_partition() const { return N::log(line(0)[row.capacity]); }
  AIMLE_DEVICE double out(int64_t j, int64_t c) const {
    return N::ratio(line(j + 1)[c], line(j)[c]);
  }
  AIMLE_DEVICE double in(int64_t j, int64_t c) const {
    if (!may_take(j) || c < weight(j)) return 0.0;
    const double e = N::from_log(tables.x[j]);
    return N::ratio(N::multiply(e, line(j + 1)[c - weight(j)]), line(j)[c]);
  }

  /// means[j][c]: E <z, v> over the items j, j + 1, ..., with c left.
  template <class T, class Group>
  AIMLE_DEVICE void fill_means(Group& group, const T* v) const {
    double* after = tables.means + row.n * row.line();
    for (int64_t c = group.rank(); c < row.line(); c += group.size()) after[c] = 0.0;
    group.sync();
    for (int64_t j = row.n; j-- > 0; after -= row.line()) {
      double* here = after - row.line();
      const double v_j = may_take(j) ? static_cast<double>(v[j]) : 0.0;
      for (int64_t c = group.rank(); c < row.line(); c += group.size()) {
        const double taken = in(j, c);
        double mean = out(j, c) * after[c];
        if (taken > 0.0) mean += taken * (v_j + after[c - weight(j)]);
        here[c] = mean;
      }
      group.sync();
    }
  }

  /// The pass over the items; marginals or covariance (for which v is given) may be null.
  template <class T, class Group>
  AIMLE_DEVICE void walk(Group& group, const T* v, T* marginals, T* covariance) const {
    const int64_t line_length = row.line();
    double *p = tables.lines, *carried = p + line_length;
    double *next = carried + line_length, *next_carried = next + line_length;
    for (int64_t c = group.rank(); c < line_length; c += group.size()) {
      p[c] = c == row.capacity ? 1.0 : 0.0;
      carried[c] = 0.0;
    }
    group.sync();
    const double mean = covariance == nullptr ? 0.0 : tables.means[row.capacity];
    for (int64_t j = 0; j < row.n; ++j) {
      const int64_t weight_j = weight(j);
      const bool wanted = may_take(j);
      const double v_j = wanted && covariance != nullptr ? static_cast<double>(v[j]) : 0.0;
      const double* after = covariance == nullptr ? nullptr : tables.means + (j + 1) * line_length;
      double taken = 0.0, product = 0.0;
      for (int64_t c = group.rank(); c < line_length; c += group.size()) {
        const double stay = p[c] == 0.0 ? 0.0 : out(j, c);
        next[c] = p[c] * stay;
        next_carried[c] = carried[c] * stay;
        const int64_t from = c + weight_j;
        if (!wanted || from >= line_length || p[from] == 0.0) continue;
        const double share = in(j, from);
        const double with = (carried[from] + p[from] * v_j) * share;
        next[c] += p[from] * share;
        next_carried[c] += with;
        taken += p[from] * share;
        if (after != nullptr) product += with + p[from] * share * (after[c] - mean);
      }
      taken = group.reduce(taken, Plus{});
      product = group.reduce(product, Plus{});
      if (group.rank() == 0) {
        if (marginals != nullptr) marginals[j] = static_cast<T>(taken);
        if (covariance != nullptr) covariance[j] = static_cast<T>(product);
      }
      double* const old = p;
      double* const old_carried = carried;
      p = next;
      carried = next_carried;
      next = old;
      next_carried = old_carried;
      group.sync();
    }
  }

  /// z [samples, n], one thread per sample; initially zeros.
  template <class T, class Group>
  AIMLE_DEVICE void sample(Group& group, Key key, int64_t instance, int64_t samples, T* z) const {
    for (int64_t s = group.rank(); s < samples; s += group.size()) {
      int64_t left = row.capacity;
      for (int64_t j = 0; j < row.n; ++j) {
        if (!may_take(j) || uniform(key, instance, s, j) >= in(j, left)) continue;
        z[s * row.n + j] = T(1);
        left -= weight(j);
      }
    }
  }
};

/// Calls body(KnapsackSums<N>) for the kind of numbers that suits the row.
template <class Body>
AIMLE_DEVICE void in_its_numbers(const KnapsackRow& row, const KnapsackTables& tables, Body body) {
  if (row.linear) {
    body(KnapsackSums<aimle::detail::Linear>{row, tables});
  } else {
    body(KnapsackSums<aimle::detail::Logarithmic>{row, tables});
  }
}

}  // namespace aimle::cuda
