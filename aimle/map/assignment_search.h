// Assignment by a group of threads (cuda/group.h), on the device, or by one thread on the host.
//
// The agents are the shorter side of the matrix, the jobs the longer one; costs are negated whole
// scores. Agents are added one by one, each along a shortest path of reduced costs (Dijkstra, with
// the jobs distributed over the threads). The resulting job prices v (never above zero if there are
// more jobs than agents) prove that the matching is optimal: agent a and job j are tight if
//
//   cost(a, j) - v(j) = cost(a, job of a) - v(job of a),
//
// and the best matchings are those along tight pairs that include every job with v < 0. Two of them
// differ by cycles of the graph on agents with an arc a -> b if a and the job of b are tight. Jobs
// without an agent belong to one more node, `spare`: a -> spare if a and such a job are tight, and
// spare -> b if the job of b has v = 0. Nodes without arcs to others are removed repeatedly. If
// none is left, there is only one best matching; otherwise the rest is changed, entry by entry in
// row-major order, to the matching given by the tie rule.
#pragma once

#include <cstdint>

#include "aimle/base/host_device.h"
#include "aimle/map/assignment.h"
#include "aimle/map/one_thread.h"
#include "aimle/map/whole_scores.h"

namespace aimle::detail {

/// One matrix in memory that the threads share.
struct AssignmentWork {
  int32_t agents = 0;
  int32_t jobs = 0;            // agents <= jobs
  bool transposed = false;     // agents are columns of the scores
  int64_t stride = 0;          // between the agents of `cost`
  double* cost = nullptr;      // [agents, stride]; +inf: no pair
  double* v = nullptr;         // [jobs]
  double* distance = nullptr;  // [jobs]
  int32_t* before = nullptr;   // [jobs + 2], the agent that leads to a job
  int32_t* closed = nullptr;   // [jobs + 2]
  int32_t* agent = nullptr;    // [jobs], -1: none
  int32_t* job = nullptr;      // [agents]
  int32_t* path = nullptr;     // [agents + 2]

  /// Bytes for a matrix whose agents are `stride` apart.
  AIMLE_HD static int64_t bytes(int64_t agents, int64_t jobs, int64_t stride) {
    return 8 * (agents * stride + 2 * stride) + 4 * (3 * (jobs + 2) + 2 * (agents + 2));
  }
  AIMLE_HD static AssignmentWork at(void* memory, const Assignment& solver, int64_t stride) {
    AssignmentWork work;
    work.transposed = solver.rows > solver.columns;
    work.agents = static_cast<int32_t>(work.transposed ? solver.columns : solver.rows);
    work.jobs = static_cast<int32_t>(work.transposed ? solver.rows : solver.columns);
    work.stride = stride;
    work.cost = static_cast<double*>(memory);
    work.v = work.cost + work.agents * stride;
    work.distance = work.v + stride;
    work.before = reinterpret_cast<int32_t*>(work.distance + stride);
    work.closed = work.before + work.jobs + 2;
    work.agent = work.closed + work.jobs + 2;
    work.job = work.agent + work.jobs + 2;
    work.path = work.job + work.agents + 2;
    return work;
  }

  /// The position in `cost` of entry e of the scores, of which there are at most 2^28.
  AIMLE_HD int64_t place(int64_t e) const {
    const auto columns = static_cast<uint32_t>(transposed ? agents : jobs);
    const uint32_t row = static_cast<uint32_t>(e) / columns;
    const uint32_t column = static_cast<uint32_t>(e) - row * columns;
    return transposed ? column * stride + row : row * stride + column;
  }
  /// The entry of the scores of an agent and its job.
  AIMLE_HD int64_t entry(int32_t a) const {
    return transposed ? int64_t{job[a]} * agents + a : int64_t{a} * jobs + job[a];
  }
  AIMLE_HD double reduced(int32_t a, int32_t j) const { return cost[a * stride + j] - v[j]; }
  AIMLE_HD bool tight(int32_t a, int32_t j) const { return reduced(a, j) == reduced(a, job[a]); }
};

/// b of map/assignment.h.
AIMLE_HD constexpr int assignment_bits(int64_t agents) { return 50 - bits_for(agents); }

/// From scores as they are (in `cost`, -inf: masked) to costs. `largest`: of the finite |scores|.
template <class Group>
AIMLE_EITHER void round_costs(Group& group, const AssignmentWork& work, double largest,
                              bool infinite) {
  const int bits = assignment_bits(work.agents);
  const double most = ldexp(1.0, bits);
  const WholeScale scale =
      WholeScale::of(largest, infinite ? bits - 2 - bits_for(work.agents) : bits);
  for (int32_t a = 0; a < work.agents; ++a) {
    double* cost = work.cost + a * work.stride;
    for (int32_t j = group.rank(); j < work.jobs; j += group.size()) {
      const double x = cost[j];
      cost[j] = x == HUGE_VAL ? -most : x == -HUGE_VAL ? HUGE_VAL : -scale(x);
    }
  }
}

/// Reads a row: `scores.for_each(rank, size, body)` calls body(j, score) for a thread's share.
template <class Group, class Scores>
AIMLE_EITHER bool load_costs(Group& group, const AssignmentWork& work, const Scores& scores,
                             const bool* mask) {
  SeenScores seen;
  scores.for_each(group.rank(), group.size(), [&](int64_t e, auto score) {
    const auto x = static_cast<double>(score);
    const bool allowed = mask == nullptr || mask[e];
    if (allowed) seen.add(x);
    work.cost[work.place(e)] = allowed ? x : -HUGE_VAL;
  });
  seen.combine(group);
  if (seen.nan) return false;
  round_costs(group, work, seen.largest, seen.infinite);
  return true;
}

/// Adds an agent along a shortest path to a job without one; false if there is no path.
template <class Group>
AIMLE_EITHER bool add_agent(Group& group, const AssignmentWork& work, int32_t added) {
  constexpr uint32_t kFree = 1u << 31;
  const int rank = group.rank(), threads = group.size();
  for (int32_t j = rank; j < work.jobs; j += threads) {
    work.distance[j] = HUGE_VAL;
    work.closed[j] = 0;
  }
  int32_t scanned = added;
  double offset = 0;  // difference between the reduced costs of `scanned` and distances
  double least;
  int32_t end;
  for (;;) {
    double mine = HUGE_VAL;
    for (int32_t j = rank; j < work.jobs; j += threads) {
      if (work.closed[j]) continue;
      const double through = work.reduced(scanned, j) - offset;
      if (through < work.distance[j]) {
        work.distance[j] = through;
        work.before[j] = scanned;
      }
      if (work.distance[j] < mine) mine = work.distance[j];
    }
    least = group.reduce(mine, Lower{});
    if (least == HUGE_VAL) return false;
    uint32_t nearest = 0;  // the first of the nearest jobs, preferably one without an agent
    for (int32_t j = rank; j < work.jobs; j += threads) {
      if (work.closed[j] || work.distance[j] != least) continue;
      const uint32_t key = (work.agent[j] < 0 ? kFree : 0) | (kFree - 1 - static_cast<uint32_t>(j));
      if (key > nearest) nearest = key;
    }
    nearest = group.max(nearest);
    end = static_cast<int32_t>(kFree - 1 - (nearest & (kFree - 1)));
    if (nearest & kFree) break;
    if (end % threads == rank) work.closed[end] = 1;
    scanned = work.agent[end];
    offset = work.reduced(scanned, end) - least;
  }
  for (int32_t j = rank; j < work.jobs; j += threads) {
    if (work.closed[j]) work.v[j] += work.distance[j] - least;
  }
  group.sync();
  if (rank == 0) {
    for (int32_t j = end, a = -1; a != added;) {
      a = work.before[j];
      work.agent[j] = a;
      const int32_t left = work.job[a];
      work.job[a] = j;
      j = left;
    }
  }
  group.sync();
  return true;
}

/// A best matching and its prices; false if there is no matching.
template <class Group>
AIMLE_EITHER bool match_agents(Group& group, const AssignmentWork& work) {
  for (int32_t j = group.rank(); j < work.jobs; j += group.size()) {
    work.v[j] = 0;
    work.agent[j] = -1;
  }
  for (int32_t a = group.rank(); a < work.agents; a += group.size()) work.job[a] = -1;
  group.sync();
  for (int32_t a = 0; a < work.agents; ++a) {
    if (!add_agent(group, work, a)) return false;
  }
  return true;
}

/// The graph of the best matchings that agree with this one on rows before `row` of the scores.
struct TightGraph {
  const AssignmentWork& work;
  int32_t row;

  AIMLE_HD int32_t spare() const { return work.agents; }
  /// Whether the pair of this node belongs to an earlier row.
  AIMLE_HD bool settled(int32_t node) const {
    return node != spare() && (work.transposed ? work.job[node] : node) < row;
  }
  /// A job without an agent for `a`, other than that of this row; -1: none.
  AIMLE_HD int32_t spare_job(int32_t a) const {
    for (int32_t j = work.transposed ? row + 1 : 0; j < work.jobs; ++j) {
      if (work.agent[j] < 0 && work.tight(a, j)) return j;
    }
    return -1;
  }
  AIMLE_HD bool arc(int32_t from, int32_t to) const {
    if (from == to) return false;
    if (from == spare()) return work.v[work.job[to]] == 0;
    return to == spare() ? spare_job(from) >= 0 : work.tight(from, work.job[to]);
  }
};

/// Removes nodes that lead nowhere: closed[node] = 1 if it is certainly on no cycle. Returns
/// whether any node is left.
template <class Group>
AIMLE_EITHER bool find_cycles(Group& group, const AssignmentWork& work) {
  const TightGraph graph{work, -1};
  const int32_t nodes = work.agents + (work.jobs > work.agents ? 1 : 0);
  for (int32_t node = group.rank(); node < nodes; node += group.size()) {
    work.closed[node] = 0;
    work.before[node] = 0;  // the first node that it may lead to
  }
  group.sync();
  for (;;) {
    bool changed = false, left = false;
    for (int32_t node = group.rank(); node < nodes; node += group.size()) {
      if (work.closed[node]) continue;
      int32_t next = work.before[node];
      while (next < nodes && (work.closed[next] || !graph.arc(node, next))) ++next;
      work.before[node] = next;
      left |= next < nodes;
      changed |= next == nodes;
    }
    left = group.any(left);
    if (!group.any(changed)) return left;
    for (int32_t node = group.rank(); node < nodes; node += group.size()) {
      if (!work.closed[node] && work.before[node] == nodes) work.closed[node] = 1;
    }
    group.sync();
  }
}

/// before[node] of every node that reaches `goal` (kBackwards) or that `goal` reaches: its
/// neighbour on the path; -1 for the others.
template <bool kBackwards, class Group>
AIMLE_EITHER void find_ways(Group& group, const TightGraph& graph, int32_t goal) {
  constexpr int32_t kNone = -1, kFound = 1 << 30;  // kFound: in this round
  const AssignmentWork& work = graph.work;
  const int32_t nodes = work.agents + (work.jobs > work.agents ? 1 : 0);
  for (int32_t node = group.rank(); node < nodes; node += group.size()) {
    work.before[node] = node == goal ? goal : kNone;
  }
  group.sync();
  for (;;) {
    bool changed = false;
    for (int32_t node = group.rank(); node < nodes; node += group.size()) {
      if (work.before[node] != kNone || work.closed[node] || graph.settled(node)) continue;
      for (int32_t other = 0; other < nodes; ++other) {
        const int32_t way = work.before[other];
        if (way == kNone || way >= kFound) continue;
        if (kBackwards ? graph.arc(node, other) : graph.arc(other, node)) {
          work.before[node] = kFound + other;
          changed = true;
          break;
        }
      }
    }
    if (!group.any(changed)) return;
    for (int32_t node = group.rank(); node < nodes; node += group.size()) {
      if (work.before[node] >= kFound) work.before[node] -= kFound;
    }
    group.sync();
  }
}

/// Every node of the cycle path[0] -> path[1] -> ... -> path[0] takes the job of the next one;
/// path[0], an agent, takes `first`. Run by one thread.
AIMLE_HD void turn_cycle(const TightGraph& graph, int32_t length, int32_t first) {
  const AssignmentWork& work = graph.work;
  const int32_t last = work.job[work.path[0]];
  int32_t job = first;
  for (int32_t i = 0; i < length; ++i) {
    const int32_t node = work.path[i];
    int32_t next_job = last;  // what path[i + 1] takes
    if (i + 2 < length) {
      const int32_t to = work.path[i + 2];
      next_job = to == graph.spare() ? graph.spare_job(work.path[i + 1]) : work.job[to];
    }
    work.agent[job] = node == graph.spare() ? -1 : node;
    if (node != graph.spare()) work.job[node] = job;
    job = next_job;
  }
}

/// The smallest number below `end` with is(number); `end` if there is none.
template <class Group, class Is>
AIMLE_EITHER int32_t least_with(Group& group, int32_t end, const Is& is) {
  uint32_t found = 0;
  for (int32_t i = group.rank(); i < end; i += group.size()) {
    if (!is(i)) continue;
    found = static_cast<uint32_t>(end - i);
    break;
  }
  return end - static_cast<int32_t>(group.max(found));
}

/// Gives row `row` of the scores, an agent, the lowest job that it can have.
template <class Group>
AIMLE_EITHER void settle_agent(Group& group, const TightGraph& graph) {
  const AssignmentWork& work = graph.work;
  const int32_t a = graph.row;
  if (work.closed[a]) return;
  const int32_t had = work.job[a];
  const auto holder = [&](int32_t j) { return work.agent[j] < 0 ? graph.spare() : work.agent[j]; };
  const auto possible = [&](int32_t j) {
    return work.tight(a, j) && !work.closed[holder(j)] && !graph.settled(holder(j));
  };
  if (least_with(group, had, possible) == had) return;
  find_ways<true>(group, graph, a);
  const int32_t j =
      least_with(group, had, [&](int32_t j) { return possible(j) && work.before[holder(j)] >= 0; });
  if (j < had && group.rank() == 0) {
    int32_t length = 0;
    work.path[length++] = a;
    for (int32_t node = holder(j); node != a; node = work.before[node]) work.path[length++] = node;
    turn_cycle(graph, length, j);
  }
  group.sync();
}

/// Gives row `row` of the scores, a job, the lowest agent that it can have.
template <class Group>
AIMLE_EITHER void settle_job(Group& group, const TightGraph& graph) {
  const AssignmentWork& work = graph.work;
  const int32_t j = graph.row;
  const int32_t had = work.agent[j] < 0 ? graph.spare() : work.agent[j];
  if (work.closed[had]) return;
  const auto possible = [&](int32_t a) {
    return work.tight(a, j) && !work.closed[a] && !graph.settled(a);
  };
  if (least_with(group, had, possible) == had) return;
  find_ways<false>(group, graph, had);
  const int32_t a =
      least_with(group, had, [&](int32_t a) { return possible(a) && work.before[a] >= 0; });
  if (a < had && group.rank() == 0) {
    int32_t length = 1;
    for (int32_t node = a; node != had; node = work.before[node]) ++length;
    work.path[0] = a;
    int32_t at = length;
    for (int32_t node = a; node != had; node = work.before[node]) {
      work.path[--at] = work.before[node];
    }
    turn_cycle(graph, length, j);
  }
  group.sync();
}

/// Changes any best matching to the one given by the tie rule.
template <class Group>
AIMLE_EITHER void settle_ties(Group& group, const AssignmentWork& work) {
  if (!find_cycles(group, work)) return;
  const int32_t rows = work.transposed ? work.jobs : work.agents;
  for (int32_t row = 0; row < rows; ++row) {
    const TightGraph graph{work, row};
    if (work.transposed) {
      settle_job(group, graph);
    } else {
      settle_agent(group, graph);
    }
  }
}

/// The solution of one row: `scores` as load_costs reads them, `mask` the row's or null, and
/// `chosen(e)` is called once for every entry that is 1, by thread 0. Ends with a sync.
template <class Group, class Scores, class Chosen>
AIMLE_EITHER Status solve_assignment(Group& group, const AssignmentWork& work, const Scores& scores,
                                     const bool* mask, const Chosen& chosen) {
  if (!load_costs(group, work, scores, mask)) return Status::kNaN;
  if (!match_agents(group, work)) return Status::kTooFewEntries;
  settle_ties(group, work);
  if (group.rank() == 0) {
    for (int32_t a = 0; a < work.agents; ++a) chosen(work.entry(a));
  }
  group.sync();
  return Status::kOk;
}

}  // namespace aimle::detail
