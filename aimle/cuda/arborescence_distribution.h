// The distribution over spanning arborescences by a group of threads
// (exact/arborescence_distribution.h has the equations).
//
// A group processes one dependent d of a row: it eliminates all other vertices and finds, for each
// of them, the probability that a walk against the arcs reaches a root before d ("escapes"). The
// head of d is h with a probability proportional to the weight of h -> d times the escape of h; the
// sum of these is the last pivot, so the same pass gives the log-partition. Samples process the
// dependents one after the other. O(n^3 / threads) per dependent.
#pragma once

#include <cmath>
#include <cstdint>

#include "aimle/base/host_device.h"
#include "aimle/cuda/group.h"
#include "aimle/exact/log_domain.h"
#include "aimle/exact/uniform.h"
#include "aimle/map/map.h"

namespace aimle::cuda {

/// Memory of one group.
struct ArborescenceScratch {
  double* x;          // [n, n], logits
  double* w;          // [n, n + 1], weights of the arcs into each position, the roots' first
  double* t;          // their tangents, if requested
  double* pivot;      // [n], by position
  double* of_pivot;   // [n]
  double* escape;     // [n], by position
  double* of_escape;  // [n]
  int32_t* head;      // [n], of vertices that have theirs, or kNone
  uint8_t* reached;   // [n]
  uint8_t* before;    // [n]

  static constexpr int32_t kNone = -1;

  AIMLE_HD static int64_t doubles(int64_t n, bool tangents) {
    return n * n + (tangents ? 2 : 1) * n * (n + 1) + 4 * n + (n + 1) / 2 + (2 * n + 7) / 8;
  }
  AIMLE_HD static ArborescenceScratch at(double* memory, int64_t n, bool tangents) {
    ArborescenceScratch scratch{};
    scratch.x = memory;
    scratch.w = scratch.x + n * n;
    scratch.t = tangents ? scratch.w + n * (n + 1) : nullptr;
    scratch.pivot = scratch.w + (tangents ? 2 : 1) * n * (n + 1);
    scratch.of_pivot = scratch.pivot + n;
    scratch.escape = scratch.of_pivot + n;
    scratch.of_escape = scratch.escape + n;
    scratch.head = reinterpret_cast<int32_t*>(scratch.of_escape + n);
    scratch.reached = reinterpret_cast<uint8_t*>(scratch.of_escape + n + (n + 1) / 2);
    scratch.before = scratch.reached + n;
    return scratch;
  }
};

/// A row as a graph, whose logits are in scratch.x.
struct ArborescenceRow {
  Status status;
  int32_t n;
  double largest;  // logit
  double lowered;  // how much the logits of roots are reduced
  bool linear;     // weights are far from underflow

  template <class Number>
  AIMLE_DEVICE double weight(const ArborescenceScratch& scratch, int32_t h, int32_t d) const {
    const double x = scratch.x[h * n + d];
    if (x == -__builtin_huge_val()) return Number::zero();
    return Number::from_log(x - largest - (h == d ? lowered : 0.0));
  }
};

namespace detail {

/// Marks in scratch.before what can be reached from the roots `is_root(v)` without passing through
/// a vertex; returns whether that is every vertex. Ends with a sync.
template <class Group, class IsRoot>
AIMLE_DEVICE bool reach_from(Group& group, int32_t n, const ArborescenceScratch& scratch,
                             const IsRoot& is_root, int32_t avoided) {
  const double none = -__builtin_huge_val();
  for (int32_t v = group.rank(); v < n; v += group.size()) {
    scratch.before[v] = v != avoided && is_root(v);
  }
  group.sync();
  for (bool more = true; more;) {
    bool found = false;
    for (int32_t v = group.rank(); v < n; v += group.size()) {
      bool now = scratch.before[v];
      for (int32_t u = 0; u < n && !now && v != avoided; ++u) {
        now = u != v && scratch.before[u] && scratch.x[u * n + v] != none;
      }
      scratch.reached[v] = now;
      found |= now && !scratch.before[v];
    }
    more = group.any(found);
    for (int32_t v = group.rank(); v < n; v += group.size()) scratch.before[v] = scratch.reached[v];
    group.sync();
  }
  bool apart = false;
  for (int32_t v = group.rank(); v < n; v += group.size()) apart |= !scratch.before[v];
  return !group.any(apart);
}

/// Whether there is an arborescence. With a single root, removes arcs in none from scratch.x.
template <class Group>
AIMLE_DEVICE bool connect(Group& group, int32_t n, bool single_root,
                          const ArborescenceScratch& scratch) {
  const double none = -__builtin_huge_val();
  const auto is_root = [&](int32_t v) { return scratch.x[v * n + v] != none; };
  if (!single_root) return reach_from(group, n, scratch, is_root, -1);
  bool some = false;
  for (int32_t root = 0; root < n; ++root) {
    if (!is_root(root)) continue;
    const bool all = reach_from(
        group, n, scratch, [root](int32_t v) { return v == root; }, -1);
    some |= all;
    group.sync();
    if (!all && group.rank() == 0) scratch.x[root * n + root] = none;
    group.sync();
  }
  for (int32_t d = 0; some && d < n; ++d) {
    reach_from(group, n, scratch, is_root, d);
    for (int32_t h = group.rank(); h < n; h += group.size()) {
      if (h != d && !scratch.before[h]) scratch.x[h * n + d] = none;
    }
    group.sync();
  }
  return some;
}

}  // namespace detail

/// Reads the logits of a row into scratch.x. Ends with a sync.
template <class T, class Group>
AIMLE_DEVICE ArborescenceRow read_arborescence(Group& group, int32_t n, bool single_root,
                                               const T* scores, const bool* mask,
                                               const ArborescenceScratch& scratch) {
  const double inf = __builtin_huge_val();
  bool bad = false, missing = false;
  for (int32_t e = group.rank(); e < n * n; e += group.size()) {
    const double x = mask == nullptr || mask[e] ? static_cast<double>(scores[e]) : -inf;
    bad |= x != x || x == inf;
    missing |= x == -inf;
    scratch.x[e] = x;
  }
  if (group.any(bad)) return {Status::kNaN, n, 0, 0, true};
  if (group.any(missing) && !detail::connect(group, n, single_root, scratch)) {
    return {Status::kDisconnected, n, 0, 0, true};
  }
  double largest = -inf, smallest = inf, largest_root = -inf, smallest_arc = inf;
  missing = false;
  for (int32_t e = group.rank(); e < n * n; e += group.size()) {
    const double x = scratch.x[e];
    const bool root = e / n == e % n;
    if (x == -inf) {
      missing |= !root;
      continue;
    }
    largest = x > largest ? x : largest;
    smallest = x < smallest ? x : smallest;
    if (root && x > largest_root) largest_root = x;
    if (!root && x < smallest_arc) smallest_arc = x;
  }
  const bool complete = !group.any(missing);
  largest = group.reduce(largest, Higher{});
  smallest = group.reduce(smallest, Lower{});
  largest_root = group.reduce(largest_root, Higher{});
  smallest_arc = group.reduce(smallest_arc, Lower{});
  double lowered = 0;
  if (single_root && n > 1) {
    const double gain = largest_root > smallest_arc ? largest_root - smallest_arc : 0.0;
    const double log_n = std::log(static_cast<double>(n));
    lowered = 40 + (complete ? log_n + gain : n * (log_n + largest - smallest));
  }
  return {Status::kOk, n, largest, lowered,
          largest - smallest + lowered <= aimle::detail::kLinearSpread};
}

/// The vertex at a position: d is first, the others keep their order.
AIMLE_DEVICE int32_t vertex_at(int32_t position, int32_t d) {
  return position == 0 ? d : position <= d ? position - 1 : position;
}
AIMLE_DEVICE int32_t position_of(int32_t vertex, int32_t d) {
  return vertex == d ? 0 : vertex < d ? vertex + 1 : vertex;
}

/// Fills pivots and escapes (and their tangents along v) for dependent d. `settled`: vertices whose
/// scratch.head is not kNone keep that head. Ends with a sync.
template <class Number, bool kTangents, class T, class Group>
AIMLE_DEVICE void find_escapes(Group& group, const ArborescenceRow& row, int32_t d, bool settled,
                               const T* v, const ArborescenceScratch& scratch) {
  const int32_t n = row.n;
  const auto combine = [](double a, double b) { return Number::add(a, b); };
  // Arcs into position i, slot 0 being the roots, slot h + 1 position h.
  const auto arcs = [&](double* of, int32_t i) { return of + i * (n + 1); };
  for (int32_t e = group.rank(); e < (n - 1) * (n + 1); e += group.size()) {
    const int32_t i = 1 + e / (n + 1), slot = e % (n + 1);
    const int32_t to = vertex_at(i, d);
    const int32_t from = slot == 0 ? to : vertex_at(slot - 1, d);
    double weight = Number::zero();
    if (slot != i + 1) {
      if (!settled || scratch.head[to] == ArborescenceScratch::kNone) {
        weight = row.weight<Number>(scratch, from, to);
      } else if (scratch.head[to] == from) {
        weight = Number::from_log(0);
      }
    }
    arcs(scratch.w, i)[slot] = weight;
    if constexpr (kTangents) {
      arcs(scratch.t, i)[slot] =
          weight == Number::zero() ? 0.0 : static_cast<double>(v[from * n + to]);
    }
  }
  group.sync();
  for (int32_t k = n - 1; k > 0; --k) {
    const double* into = arcs(scratch.w, k);
    double pivot = Number::zero(), of_pivot = 0;
    for (int32_t slot = group.rank(); slot <= k; slot += group.size()) {
      pivot = Number::add(pivot, into[slot]);
    }
    pivot = group.reduce(pivot, combine);
    if constexpr (kTangents) {
      for (int32_t slot = group.rank(); slot <= k; slot += group.size()) {
        of_pivot += Number::ratio(into[slot], pivot) * arcs(scratch.t, k)[slot];
      }
      of_pivot = group.reduce(of_pivot, Plus{});
    }
    for (int32_t e = group.rank(); e < (k - 1) * (k + 1); e += group.size()) {
      const int32_t i = 1 + e / (k + 1), slot = e % (k + 1);
      double* const here = arcs(scratch.w, i);
      if (slot == i + 1 || here[k + 1] == Number::zero()) continue;
      const double added = Number::multiply(into[slot], Number::divide(here[k + 1], pivot));
      if (added == Number::zero()) continue;
      here[slot] = Number::add(here[slot], added);
      if constexpr (kTangents) {
        double* const t = arcs(scratch.t, i);
        const double of_added = arcs(scratch.t, k)[slot] + t[k + 1] - of_pivot;
        t[slot] += Number::ratio(added, here[slot]) * (of_added - t[slot]);
      }
    }
    if (group.rank() == 0) {
      scratch.pivot[k] = pivot;
      scratch.of_pivot[k] = of_pivot;
    }
    group.sync();
  }
  for (int32_t i = 1; i < n; ++i) {
    const auto term = [&](int32_t slot) {  // by way of a root, or of positions before i
      const double weight = arcs(scratch.w, i)[slot];
      if (slot == 0 || weight == Number::zero()) return weight;
      const double onward = scratch.escape[slot - 1];
      return onward == Number::zero() ? onward : Number::multiply(weight, onward);
    };
    double sum = Number::zero(), of_sum = 0;
    for (int32_t slot = group.rank(); slot <= i; slot += group.size()) {
      if (slot != 1) sum = Number::add(sum, term(slot));  // slot 1 is d
    }
    sum = group.reduce(sum, combine);
    const bool escapes = sum != Number::zero();
    if constexpr (kTangents) {
      for (int32_t slot = group.rank(); slot <= i && escapes; slot += group.size()) {
        const double part = slot == 1 ? Number::zero() : term(slot);
        if (part == Number::zero()) continue;
        const double of_part =
            arcs(scratch.t, i)[slot] + (slot == 0 ? 0.0 : scratch.of_escape[slot - 1]);
        of_sum += Number::ratio(part, sum) * of_part;
      }
      of_sum = group.reduce(of_sum, Plus{});
    }
    if (group.rank() == 0) {
      scratch.escape[i] = escapes ? Number::divide(sum, scratch.pivot[i]) : sum;
      scratch.of_escape[i] = of_sum - scratch.of_pivot[i];
    }
    group.sync();
  }
}

/// The probability of head h for d, up to a factor, after find_escapes.
template <class Number>
AIMLE_DEVICE double head_weight(const ArborescenceRow& row, const ArborescenceScratch& scratch,
                                int32_t h, int32_t d) {
  const double weight = row.weight<Number>(scratch, h, d);
  if (h == d || weight == Number::zero()) return weight;
  const double escape = scratch.escape[position_of(h, d)];
  return escape == Number::zero() ? escape : Number::multiply(weight, escape);
}

/// Column d of marginals [n, n] and, with tangents, of Cov(z) v, each if not null. Returns A(x).
/// Ends with a sync.
template <class Number, bool kTangents, class T, class Group>
AIMLE_DEVICE double evaluate_arborescence(Group& group, const ArborescenceRow& row, int32_t d,
                                          const T* v, const ArborescenceScratch& scratch, T* mu,
                                          T* covariance) {
  const int32_t n = row.n;
  find_escapes<Number, kTangents>(group, row, d, false, v, scratch);
  double total = Number::zero(), of_total = 0;
  for (int32_t h = group.rank(); h < n; h += group.size()) {
    total = Number::add(total, head_weight<Number>(row, scratch, h, d));
  }
  total = group.reduce(total, [](double a, double b) { return Number::add(a, b); });
  const auto tangent = [&](int32_t h) {
    return static_cast<double>(v[h * n + d]) +
           (h == d ? 0.0 : scratch.of_escape[position_of(h, d)]);
  };
  if constexpr (kTangents) {
    for (int32_t h = group.rank(); h < n; h += group.size()) {
      const double part = head_weight<Number>(row, scratch, h, d);
      if (part != Number::zero()) of_total += Number::ratio(part, total) * tangent(h);
    }
    of_total = group.reduce(of_total, Plus{});
  }
  for (int32_t h = group.rank(); h < n; h += group.size()) {
    const double part = head_weight<Number>(row, scratch, h, d);
    const bool possible = part != Number::zero();
    double p = possible ? Number::ratio(part, total) : 0.0;
    p = p < 1 ? p : 1.0;
    if (mu != nullptr) mu[h * n + d] = static_cast<T>(p);
    if constexpr (kTangents) {
      covariance[h * n + d] = static_cast<T>(possible ? p * (tangent(h) - of_total) : 0.0);
    }
  }
  double a = n * row.largest + row.lowered + Number::log(total);
  for (int32_t k = 1; k < n; ++k) a += Number::log(scratch.pivot[k]);
  group.sync();
  return a;
}

/// One sample: ones into z [n, n], which is zeros. Ends with a sync.
template <class Number, class T, class Group>
AIMLE_DEVICE void sample_arborescence(Group& group, const ArborescenceRow& row,
                                      const ArborescenceScratch& scratch, Key key, int64_t b,
                                      int64_t s, T* z) {
  const int32_t n = row.n;
  for (int32_t v = group.rank(); v < n; v += group.size()) {
    scratch.head[v] = ArborescenceScratch::kNone;
  }
  group.sync();
  for (int32_t d = 0; d < n; ++d) {
    find_escapes<Number, false, T>(group, row, d, true, nullptr, scratch);
    if (group.rank() == 0) {
      double total = Number::zero();
      for (int32_t h = 0; h < n; ++h) {
        total = Number::add(total, head_weight<Number>(row, scratch, h, d));
      }
      double left = uniform(key, b, s, d);
      for (int32_t h = 0; h < n; ++h) {
        const double part = head_weight<Number>(row, scratch, h, d);
        if (part == Number::zero()) continue;
        scratch.head[d] = h;
        left -= Number::ratio(part, total);
        if (left < 0) break;
      }
      z[scratch.head[d] * n + d] = T(1);
    }
    group.sync();
  }
}

}  // namespace aimle::cuda
