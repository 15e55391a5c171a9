// The distribution over the paths of an acyclic graph by a group of threads
// (exact/dag_distribution.h has the equations): one vertex per thread, in runs of vertices without
// arcs between them.
//
// The CPU has a text of its own (exact/dag_distribution.cpp): it keeps a graph that consecutive rows
// share, and adds to the tails of arcs, where threads have to gather. This one, by one thread, is
// slower for some graphs.
#pragma once

#include <cmath>
#include <cstdint>

#include "aimle/cuda/graph_path.h"
#include "aimle/exact/masked_scores.h"
#include "aimle/exact/uniform.h"

namespace aimle::cuda {

/// Memory of one row.
struct DagTables {
  double* q;          // [arcs], the share of an arc in what comes through its head
  double* log_sum;    // [vertices], log F
  double* through;    // [vertices], P
  double* before;     // [vertices], the mean of <z, v> from the source to here
  double* after;      // [vertices], P times the mean from here to the target
  int32_t* first;     // [vertices + 1], of the arcs that enter
  int32_t* need;      // [vertices], one more than the highest tail of an arc that enters
  int32_t* leaving;   // [vertices], the first arc that leaves, or -1
  int32_t* of_entry;  // [edges], the first arc of an entry, or -1
  int32_t* tail;      // [arcs], as are the following
  int32_t* entry;
  int32_t* head;
  int32_t* next_leaving;   // the next arc from the same tail, or -1
  int32_t* next_of_entry;  // the next arc of the same entry, or -1

  static int64_t doubles(const GraphSize& size) {
    const int64_t vertices = size.vertices, arcs = size.arcs;
    const int64_t integers = 3 * vertices + 1 + size.edges + 5 * arcs;
    return arcs + 4 * vertices + (integers + 1) / 2;
  }
  AIMLE_DEVICE static DagTables at(double* memory, const GraphSize& size) {
    double* const log_sum = memory + size.arcs;
    double* const end = log_sum + 4 * int64_t{size.vertices};
    auto* const first = reinterpret_cast<int32_t*>(end);
    int32_t* const need = first + size.vertices + 1;
    int32_t* const of_entry = need + 2 * int64_t{size.vertices};
    int32_t* const tail = of_entry + size.edges;
    return {.q = memory,
            .log_sum = log_sum,
            .through = log_sum + size.vertices,
            .before = log_sum + 2 * int64_t{size.vertices},
            .after = log_sum + 3 * int64_t{size.vertices},
            .first = first,
            .need = need,
            .leaving = need + size.vertices,
            .of_entry = of_entry,
            .tail = tail,
            .entry = tail + size.arcs,
            .head = tail + 2 * int64_t{size.arcs},
            .next_leaving = tail + 3 * int64_t{size.arcs},
            .next_of_entry = tail + 4 * int64_t{size.arcs}};
  }
};

struct DagRow {
  Status status;
  int32_t source;
  int32_t target;
  double log_partition;
};

namespace detail {

/// The arcs that leave every vertex and those of every entry, as ascending lists. For thread 0.
AIMLE_DEVICE void link_arcs(const GraphSize& size, const DagTables& tables) {
  for (int32_t v = 0; v < size.vertices; ++v) tables.leaving[v] = -1;
  for (int32_t j = 0; j < size.edges; ++j) tables.of_entry[j] = -1;
  for (int32_t a = size.arcs; a-- > 0;) {
    tables.next_leaving[a] = tables.leaving[tables.tail[a]];
    tables.leaving[tables.tail[a]] = a;
    tables.next_of_entry[a] = tables.of_entry[tables.entry[a]];
    tables.of_entry[tables.entry[a]] = a;
  }
}

/// Copies the graph and checks it with the scores.
template <class T, class Group>
AIMLE_DEVICE Status read_dag_data(Group& group, const GraphSize& size, const MaskedScores<T>& x,
                                  const int64_t* data, const DagTables& tables) {
  constexpr uint32_t kBad = 1, kNaN = 2;
  const GraphScratch<double> graph{nullptr,      nullptr,     nullptr,     nullptr,
                                   tables.first, tables.tail, tables.entry};
  uint32_t worst = read_graph(group, size, data, graph) ? 0 : kBad;
  for (int32_t j = group.rank(); j < size.edges; j += group.size()) {
    if (!(x(j) < __builtin_huge_val())) worst = kNaN;
  }
  worst = group.max(worst);
  if (worst == 0) worst = group.max(is_numbered(group, size, graph) ? uint32_t{0} : kBad);
  return worst == kNaN ? Status::kNaN : worst == kBad ? Status::kBadData : Status::kOk;
}

/// log F of vertex v and q of the arcs that enter it; their tails must be complete.
template <class T>
AIMLE_DEVICE void add_up(const MaskedScores<T>& x, const DagTables& tables, int32_t v) {
  const int32_t begin = tables.first[v], end = tables.first[v + 1];
  const double none = -__builtin_huge_val();
  double largest = none, sum = 0;
  for (int32_t a = begin; a < end; ++a) {
    tables.q[a] = tables.log_sum[tables.tail[a]] + x(tables.entry[a]);
    if (tables.q[a] > largest) largest = tables.q[a];
  }
  for (int32_t a = begin; a < end; ++a) {
    tables.q[a] = largest > none ? std::exp(tables.q[a] - largest) : 0.0;
    sum += tables.q[a];
  }
  tables.log_sum[v] = sum > 0 ? largest + std::log(sum) : none;
  for (int32_t a = begin; a < end && sum > 0; ++a) tables.q[a] /= sum;
}

}  // namespace detail

/// Reads a row and fills log F and q.
template <class T, class Group>
AIMLE_DEVICE DagRow read_dag(Group& group, const GraphSize& size, const MaskedScores<T>& x,
                             const int64_t* data, const DagTables& tables) {
  const Status status = detail::read_dag_data(group, size, x, data, tables);
  if (status != Status::kOk) return {status, 0, 0, 0.0};
  const auto source = static_cast<int32_t>(data[0]), target = static_cast<int32_t>(data[1]);
  for (int32_t v = group.rank(); v < size.vertices; v += group.size()) {
    int32_t need = 0;
    for (int32_t a = tables.first[v]; a < tables.first[v + 1]; ++a) {
      if (tables.tail[a] >= need) need = tables.tail[a] + 1;
      tables.head[a] = v;
      tables.q[a] = 0;
    }
    tables.need[v] = need;
    tables.log_sum[v] = v == source ? 0 : -__builtin_huge_val();
  }
  group.sync();
  for (int32_t begin = source + 1, end; begin <= target; begin = end) {
    end = begin + 1;
    while (end <= target && tables.need[end] <= begin) ++end;
    for (int32_t v = begin + group.rank(); v < end; v += group.size()) detail::add_up(x, tables, v);
    group.sync();
  }
  const double log_partition = tables.log_sum[target];
  const bool any = log_partition > -__builtin_huge_val();
  return {any ? Status::kOk : Status::kDisconnected, source, target, log_partition};
}

/// Writes marginals and, if v is given, Cov(z) v. Ends with a sync.
template <class T, class Group>
AIMLE_DEVICE void write_dag(Group& group, const GraphSize& size, const DagRow& row, const T* v,
                            const DagTables& tables, T* marginals, T* covariance) {
  if (group.rank() == 0) detail::link_arcs(size, tables);
  for (int32_t u = group.rank(); u < size.vertices; u += group.size()) {
    tables.through[u] = u == row.target ? 1 : 0;
    tables.before[u] = tables.after[u] = 0;
  }
  group.sync();
  for (int32_t begin = row.source + 1, end; v != nullptr && begin <= row.target; begin = end) {
    end = begin + 1;
    while (end <= row.target && tables.need[end] <= begin) ++end;
    for (int32_t u = begin + group.rank(); u < end; u += group.size()) {
      for (int32_t a = tables.first[u]; a < tables.first[u + 1]; ++a) {
        if (!(tables.q[a] > 0)) continue;
        tables.before[u] +=
            tables.q[a] * (tables.before[tables.tail[a]] + static_cast<double>(v[tables.entry[a]]));
      }
    }
    group.sync();
  }
  for (int32_t end = row.target, begin; end > row.source; end = begin) {
    // The first arc that leaves a vertex has the lowest head.
    begin = end - 1;
    const auto is_free = [&](int32_t u) {
      return tables.leaving[u] < 0 || tables.head[tables.leaving[u]] >= end;
    };
    while (begin > row.source && is_free(begin - 1)) --begin;
    for (int32_t u = begin + group.rank(); u < end; u += group.size()) {
      double through = 0, after = 0;
      for (int32_t a = tables.leaving[u]; a >= 0; a = tables.next_leaving[a]) {
        const double q = tables.q[a], beyond = tables.through[tables.head[a]];
        if (!(q > 0) || !(beyond > 0)) continue;
        through += q * beyond;
        if (v == nullptr) continue;
        after +=
            q * (tables.after[tables.head[a]] + beyond * static_cast<double>(v[tables.entry[a]]));
      }
      tables.through[u] = through;
      tables.after[u] = after;
    }
    group.sync();
  }
  const double mean = tables.before[row.target];
  for (int32_t j = group.rank(); j < size.edges; j += group.size()) {
    double mu = 0, along = 0;
    for (int32_t a = tables.of_entry[j]; a >= 0; a = tables.next_of_entry[a]) {
      const double q = tables.q[a], beyond = tables.through[tables.head[a]];
      if (!(q > 0) || !(beyond > 0)) continue;
      mu += q * beyond;
      if (v == nullptr) continue;
      const double before = tables.before[tables.tail[a]] + static_cast<double>(v[j]);
      along += q * (beyond * (before - mean) + tables.after[tables.head[a]]);
    }
    if (marginals != nullptr) marginals[j] = static_cast<T>(mu);
    if (covariance != nullptr) covariance[j] = static_cast<T>(along);
  }
  group.sync();
}

/// z [samples, edges], of instance b: the CPU's numbers. Ends with a sync.
template <class T, class Group>
AIMLE_DEVICE void sample_dag(Group& group, const GraphSize& size, const DagRow& row,
                             const DagTables& tables, Key key, int64_t b, int64_t samples, T* z) {
  for (int64_t e = group.rank(); e < samples * size.edges; e += group.size()) z[e] = T(0);
  group.sync();
  for (int64_t s = group.rank(); s < samples; s += group.size()) {
    for (int32_t at = row.target; at != row.source;) {
      const double number = uniform(key, b, s, at);
      double sum = 0;
      int32_t chosen = -1;
      for (int32_t a = tables.first[at]; a < tables.first[at + 1] && sum <= number; ++a) {
        if (tables.q[a] > 0) chosen = a;
        sum += tables.q[a];
      }
      z[s * size.edges + tables.entry[chosen]] = T(1);
      at = tables.tail[chosen];
    }
  }
  group.sync();
}

}  // namespace aimle::cuda
