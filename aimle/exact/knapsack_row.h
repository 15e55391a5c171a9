// One row of the distribution over knapsacks by a group of threads, on both devices:
// knapsack_distribution.h has the equations. One line of a table is filled after the other, with one
// thread per capacity. Every cell gathers its inputs, so that no two threads add to the same value.
#pragma once

#include "aimle/base/combine.h"
#include "aimle/exact/log_domain.h"
#include "aimle/exact/uniform.h"
#include "aimle/map/map.h"

namespace aimle::exact_row {

/// Memory of one row: n items, and lines of one number per capacity.
struct KnapsackTables {
  enum class Wanted { kSums, kMarginals, kCovariance };

  double* x;       // [n], scores, -inf for items that are in no set; then their weights in sums
  double* weight;  // [n], whole numbers
  double* sums;    // [n + 1, line]: B
  double* lines;   // [4, line]
  double* means;   // [n + 1, line]

  AIMLE_HD static int64_t doubles(int64_t n, int64_t line, Wanted wanted) {
    const int64_t table = (n + 1) * line;
    return 2 * n + table + (wanted == Wanted::kSums ? 0 : 4 * line) +
           (wanted == Wanted::kCovariance ? table : 0);
  }
  AIMLE_EITHER static KnapsackTables at(double* memory, int64_t n, int64_t line) {
    double* sums = memory + 2 * n;
    double* lines = sums + (n + 1) * line;
    return {memory, memory + n, sums, lines, lines + 4 * line};
  }
};

/// Properties of a row after it was read.
struct KnapsackRow {
  Status status;
  int64_t entries;
  int64_t n;  // items
  int64_t capacity;
  bool linear;

  AIMLE_EITHER int64_t line() const { return capacity + 1; }
};

/// The sums, and the probabilities of an item, by numbers of type N. Item j is entry(j) of the row.
template <class N, class Entry>
struct KnapsackSums {
  KnapsackRow row;
  KnapsackTables tables;
  Entry entry;

  AIMLE_EITHER double* line(int64_t j) const { return tables.sums + j * row.line(); }
  AIMLE_EITHER int64_t weight(int64_t j) const { return static_cast<int64_t>(tables.weight[j]); }
  /// After `fill`.
  AIMLE_EITHER bool may_take(int64_t j) const { return tables.x[j] != N::zero(); }

  template <class Group>
  AIMLE_EITHER void fill(Group& group) const {
    for (int64_t j = group.rank(); j < row.n; j += group.size()) {
      const double x = tables.x[j];
      tables.x[j] = x == -__builtin_huge_val() ? N::zero() : N::from_log(x);
    }
    for (int64_t c = group.rank(); c < row.line(); c += group.size()) {
      line(row.n)[c] = N::from_log(0.0);
    }
    group.sync();
    const int64_t length = row.line();
    for (int64_t j = row.n; j-- > 0;) {
      const double e = tables.x[j];
      const int64_t least = may_take(j) ? weight(j) : length;  // capacity with which it fits
      const double* __restrict__ const after = line(j + 1);
      double* __restrict__ const here = line(j);
      for (int64_t c = group.rank(); c < least && c < length; c += group.size()) here[c] = after[c];
      for (int64_t c = least + group.rank(); c < length; c += group.size()) {
        here[c] = N::add(after[c], N::multiply(e, after[c - least]));
      }
      group.sync();
    }
  }

  AIMLE_EITHER double log_partition() const { return N::log(line(0)[row.capacity]); }
  AIMLE_EITHER double out(int64_t j, int64_t c) const {
    return N::ratio(line(j + 1)[c], line(j)[c]);
  }
  AIMLE_EITHER double in(int64_t j, int64_t c) const {
    if (!may_take(j) || c < weight(j)) return 0.0;
    return N::ratio(N::multiply(tables.x[j], line(j + 1)[c - weight(j)]), line(j)[c]);
  }

  /// means[j][c]: E <z, v> over the items j, j + 1, ..., with c left.
  template <class T, class Group>
  AIMLE_EITHER void fill_means(Group& group, const T* v) const {
    double* after = tables.means + row.n * row.line();
    for (int64_t c = group.rank(); c < row.line(); c += group.size()) after[c] = 0.0;
    group.sync();
    for (int64_t j = row.n; j-- > 0; after -= row.line()) {
      double* here = after - row.line();
      const double v_j = may_take(j) ? static_cast<double>(v[entry(j)]) : 0.0;
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
  AIMLE_EITHER void walk(Group& group, const T* v, T* marginals, T* covariance) const {
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
      const double v_j = wanted && covariance != nullptr ? static_cast<double>(v[entry(j)]) : 0.0;
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
        if (marginals != nullptr) marginals[entry(j)] = static_cast<T>(taken);
        if (covariance != nullptr) covariance[entry(j)] = static_cast<T>(product);
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

  /// z [samples, entries], one thread per sample; initially zeros.
  template <class T, class Group>
  AIMLE_EITHER void sample(Group& group, Key key, int64_t instance, int64_t samples, T* z) const {
    for (int64_t s = group.rank(); s < samples; s += group.size()) {
      int64_t left = row.capacity;
      for (int64_t j = 0; j < row.n; ++j) {
        if (!may_take(j) || uniform(key, instance, s, entry(j)) >= in(j, left)) continue;
        z[s * row.entries + entry(j)] = T(1);
        left -= weight(j);
      }
    }
  }
};

/// Calls body(KnapsackSums<N>) for the kind of numbers that suits the row.
template <class Entry, class Body>
AIMLE_EITHER void in_its_numbers(const KnapsackRow& row, const KnapsackTables& tables,
                                 const Entry& entry, const Body& body) {
  if (row.linear) {
    body(KnapsackSums<aimle::detail::Linear, Entry>{row, tables, entry});
  } else {
    body(KnapsackSums<aimle::detail::Logarithmic, Entry>{row, tables, entry});
  }
}

}  // namespace aimle::exact_row
