// Arborescence by a group of threads (cuda/group.h), on the device, or by one thread on the host.
//
// Every vertex, and every cycle that was contracted to one node, stores for each tail (the n
// vertices and the root) the best arc into it. A path of nodes grows against the arcs: the best arc
// into its last node gives the next one. If that is already on the path, the cycle is contracted:
// for each tail the best arc into it is kept, minus the arc that it replaces in the cycle. If it is
// the root, or a node that leads there, the path is finished and the next vertex starts another
// one. Finally, contracted nodes are expanded, the last one first: an arc that enters one replaces
// the arc of the part that it enters. Tails are distributed over the threads.
//
// Arcs of equal weight into a node are distinguished by the expanded solution: a head for every
// vertex inside. The better one is the set that has the earliest entry not in the other. This takes
// time only if there are ties.
#pragma once

#include <cstdint>

#include "aimle/base/host_device.h"
#include "aimle/map/arborescence.h"
#include "aimle/map/one_thread.h"
#include "aimle/map/whole_scores.h"

namespace aimle::detail {

struct Arc {
  int32_t tail;  // n: the root
  int32_t head;  // the vertex that it enters
};

/// One matrix in memory that the threads share. Nodes are the n vertices and, from n on, cycles in
/// the order of their contraction.
struct ArborescenceWork {
  int32_t n = 0;
  double* weight = nullptr;   // [n, n + 1], of the best arc of a tail, by the node's row
  int32_t* enters = nullptr;  // [n, n + 1], the vertex that it enters
  double* taken = nullptr;    // [2n], the weight of the node's own arc
  int32_t* tail = nullptr;    // [2n], and its ends
  int32_t* head = nullptr;    // [2n]
  int32_t* parent = nullptr;  // [2n], the node that it was contracted into, -1: none
  int32_t* row = nullptr;     // [2n], where its arcs are
  int32_t* place = nullptr;   // [2n], on the path; kOff, or kDone
  int32_t* path = nullptr;    // [2n]
  int32_t* top = nullptr;     // [n], the node that a vertex is in
  int32_t* count = nullptr;   // [2], nodes, and those on the path

  static constexpr int32_t kOff = -1;
  static constexpr int32_t kDone = -2;

  AIMLE_HD static int64_t bytes(int64_t n) {
    return 8 * (n * (n + 1) + 2 * n) + 4 * (n * (n + 1) + 6 * 2 * n + n + 3);
  }
  AIMLE_HD static ArborescenceWork at(void* memory, int64_t n) {
    ArborescenceWork work;
    work.n = static_cast<int32_t>(n);
    work.weight = static_cast<double*>(memory);
    work.taken = work.weight + n * (n + 1);
    work.enters = reinterpret_cast<int32_t*>(work.taken + 2 * n);
    work.tail = work.enters + n * (n + 1);
    work.head = work.tail + 2 * n;
    work.parent = work.head + 2 * n;
    work.row = work.parent + 2 * n;
    work.place = work.row + 2 * n;
    work.path = work.place + 2 * n;
    work.top = work.path + 2 * n;
    work.count = work.top + n;
    return work;
  }

  AIMLE_HD int64_t at(int32_t node, int32_t u) const { return int64_t{row[node]} * (n + 1) + u; }
  AIMLE_HD Arc arc(int32_t node, int32_t u) const { return {u, enters[at(node, u)]}; }
  /// The index in the scores.
  AIMLE_HD int64_t entry(Arc arc) const {
    return int64_t{arc.tail == n ? arc.head : arc.tail} * n + arc.head;
  }
  /// The part of `node` that vertex v is in: `node` is its parent.
  AIMLE_HD int32_t part(int32_t node, int32_t v) const {
    int32_t inside = v;
    while (parent[inside] != node) inside = parent[inside];
    return inside;
  }
  AIMLE_HD bool contains(int32_t node, int32_t v) const {
    while (v >= 0 && v < node) v = parent[v];
    return v == node;
  }

  /// The arc of vertex v, inside `node`, if `node` is entered by `entering`.
  AIMLE_HD Arc arc_inside(int32_t node, Arc entering, int32_t v) const {
    while (node != v) {
      node = part(node, v);
      if (!contains(node, entering.head)) entering = {tail[node], head[node]};
    }
    return entering;
  }

  /// Of two arcs of one weight into `node`: whether the tie rule prefers a.
  AIMLE_HD bool preferred(int32_t node, Arc a, Arc b) const {
    if (a.head == b.head) return entry(a) < entry(b);
    int64_t first_a = INT64_MAX, first_b = INT64_MAX;
    for (int32_t v = 0; v < n; ++v) {
      if (!contains(node, v)) continue;
      const Arc of_a = arc_inside(node, a, v), of_b = arc_inside(node, b, v);
      if (of_a.tail == of_b.tail) continue;
      const int64_t entry_a = entry(of_a), entry_b = entry(of_b);
      first_a = entry_a < first_a ? entry_a : first_a;
      first_b = entry_b < first_b ? entry_b : first_b;
    }
    return first_a < first_b;
  }
};

/// Reads a row, like load_costs of assignment_search.h. False: there is a NaN.
template <class Group, class Scores>
AIMLE_EITHER bool load_arcs(Group& group, const ArborescenceWork& work, const Scores& scores,
                            const bool* mask, bool single_root) {
  const int32_t n = work.n;
  const int rank = group.rank(), threads = group.size();
  SeenScores seen;
  scores.for_each(rank, threads, [&](int64_t e, auto score) {
    const auto x = static_cast<double>(score);
    const bool allowed = mask == nullptr || mask[e];
    if (allowed) seen.add(x);
    const auto from = static_cast<uint32_t>(e) / static_cast<uint32_t>(n);
    const uint32_t to = static_cast<uint32_t>(e) - from * static_cast<uint32_t>(n);
    work.weight[to * int64_t{n + 1} + (from == to ? n : from)] = allowed ? x : -HUGE_VAL;
  });
  seen.combine(group);
  if (seen.nan) return false;
  const int log = bits_for(n), bits = 50 - log;
  const double most = ldexp(1.0, bits);
  const double root = single_root ? ldexp(1.0, bits + log + 2) : 0.0;  // more than all sums
  const WholeScale scale = WholeScale::of(seen.largest, seen.infinite ? bits - 2 - log : bits);
  for (int64_t v = 0; v < n; ++v) {
    for (int32_t u = rank; u <= n; u += threads) {
      double& weight = work.weight[v * (n + 1) + u];
      const double x = u == v ? -HUGE_VAL : weight;
      const double whole = x == HUGE_VAL ? most : x == -HUGE_VAL ? x : scale(x);
      weight = u == n ? whole - root : whole;
      work.enters[v * (n + 1) + u] = static_cast<int32_t>(v);
    }
  }
  for (int32_t v = rank; v < 2 * n; v += threads) {
    work.parent[v] = -1;
    work.row[v] = v;
    work.place[v] = ArborescenceWork::kOff;
    if (v < n) work.top[v] = v;
  }
  if (rank == 0) work.count[0] = n;
  group.sync();
  return true;
}

/// The tail of the best arc into `node` from outside, or -1.
template <class Group>
AIMLE_EITHER int32_t best_tail(Group& group, const ArborescenceWork& work, int32_t node) {
  const auto outside = [&](int32_t u) { return u == work.n || work.top[u] != node; };
  double best = -HUGE_VAL;
  for (int32_t u = group.rank(); u <= work.n; u += group.size()) {
    const double weight = work.weight[work.at(node, u)];
    if (weight > best && outside(u)) best = weight;
  }
  best = group.reduce(best, Higher{});
  if (best == -HUGE_VAL) return -1;
  const auto better = [&](int64_t a, int64_t b) {
    if (a < 0 || b < 0) return a < 0 ? b : a;
    const auto first = static_cast<int32_t>(a), second = static_cast<int32_t>(b);
    if (first == second) return a;
    return work.preferred(node, work.arc(node, first), work.arc(node, second)) ? a : b;
  };
  int64_t tail = -1;
  for (int32_t u = group.rank(); u <= work.n; u += group.size()) {
    if (work.weight[work.at(node, u)] == best && outside(u)) tail = better(tail, u);
  }
  return static_cast<int32_t>(group.reduce(tail, better));
}

/// Contracts the nodes of the path from `first` on to a new node, which takes their place.
template <class Group>
AIMLE_EITHER void contract(Group& group, const ArborescenceWork& work, int32_t first) {
  const int32_t made = work.count[0], length = work.count[1];
  group.sync();
  if (group.rank() == 0) {
    for (int32_t i = first; i < length; ++i) {
      work.parent[work.path[i]] = made;
      work.place[work.path[i]] = ArborescenceWork::kOff;
    }
    work.row[made] = work.row[work.path[first]];
    work.place[made] = first;
    work.count[0] = made + 1;
  }
  group.sync();
  for (int32_t u = group.rank(); u <= work.n; u += group.size()) {
    double best = -HUGE_VAL;
    Arc arc{u, -1};
    for (int32_t i = first; i < length; ++i) {
      const int32_t node = work.path[i];
      const double weight = work.weight[work.at(node, u)] - work.taken[node];
      const Arc candidate = work.arc(node, u);
      if (weight < best || weight == -HUGE_VAL) continue;
      if (weight == best && !work.preferred(made, candidate, arc)) continue;
      best = weight;
      arc = candidate;
    }
    work.weight[work.at(made, u)] = best;
    work.enters[work.at(made, u)] = arc.head;
    if (u < work.n && work.contains(made, u)) work.top[u] = made;
  }
  group.sync();
  if (group.rank() == 0) {
    work.path[first] = made;
    work.count[1] = first + 1;
  }
  group.sync();
}

/// The best arc of every node; false if there is no arborescence.
template <class Group>
AIMLE_EITHER bool choose_arcs(Group& group, const ArborescenceWork& work) {
  for (int32_t v = 0; v < work.n; ++v) {
    if (work.place[work.top[v]] == ArborescenceWork::kDone) continue;
    group.sync();
    if (group.rank() == 0) {
      work.path[0] = work.top[v];
      work.place[work.top[v]] = 0;
      work.count[1] = 1;
    }
    group.sync();
    for (;;) {
      const int32_t length = work.count[1], node = work.path[length - 1];
      const int32_t tail = best_tail(group, work, node);
      if (tail < 0) return false;
      const int32_t next = tail == work.n ? -1 : work.top[tail];
      const int32_t place = next < 0 ? ArborescenceWork::kDone : work.place[next];
      group.sync();
      if (group.rank() == 0) {
        work.tail[node] = tail;
        work.head[node] = work.enters[work.at(node, tail)];
        work.taken[node] = work.weight[work.at(node, tail)];
        if (place == ArborescenceWork::kDone) {
          for (int32_t i = 0; i < length; ++i) work.place[work.path[i]] = ArborescenceWork::kDone;
        } else if (place == ArborescenceWork::kOff) {
          work.place[next] = length;
          work.path[length] = next;
          work.count[1] = length + 1;
        }
      }
      group.sync();
      if (place == ArborescenceWork::kDone) break;
      if (place >= 0) contract(group, work, place);
    }
  }
  return true;
}

/// The solution of one row: `scores` as load_arcs reads them, `mask` the row's or null, and
/// `chosen(e)` is called once for every entry that is 1, by thread 0. Ends with a sync.
template <class Group, class Scores, class Chosen>
AIMLE_EITHER Status solve_arborescence(Group& group, const ArborescenceWork& work,
                                       const Scores& scores, const bool* mask, bool single_root,
                                       const Chosen& chosen) {
  if (!load_arcs(group, work, scores, mask, single_root)) return Status::kNaN;
  if (!choose_arcs(group, work)) return Status::kDisconnected;
  if (group.rank() == 0) {
    for (int32_t node = work.count[0] - 1; node >= work.n; --node) {
      const int32_t entered = work.part(node, work.head[node]);
      work.tail[entered] = work.tail[node];
      work.head[entered] = work.head[node];
    }
    int32_t roots = 0;
    for (int32_t v = 0; v < work.n; ++v) roots += work.tail[v] == work.n;
    work.count[1] = roots;
    for (int32_t v = 0; v < work.n; ++v) chosen(work.entry({work.tail[v], v}));
  }
  group.sync();
  return single_root && work.count[1] != 1 ? Status::kDisconnected : Status::kOk;
}

}  // namespace aimle::detail
