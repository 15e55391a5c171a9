// One row of the distribution over spanning arborescences by a group of threads, on both devices:
// reading it, eliminating its vertices, and samples; arborescence_distribution.h has the equations.
//
// For a dependent d, a group eliminates all other vertices and finds, for each of them, the
// probability that a walk against the arcs reaches a root before d ("escapes"). The head of d is h
// with a probability proportional to the weight of h -> d times the escape of h.
#pragma once

#include <cmath>
#include <cstdint>

#include "aimle/exact/masked_scores.h"
#include "aimle/exact/star.h"
#include "aimle/exact/uniform.h"
#include "aimle/map/map.h"

namespace aimle::exact_row {

/// Memory of one group.
struct ArborescenceScratch {
  double* x;          // [n, n] by dependents, logits, then weights
  double* w;          // [n, n + 1], weights of the arcs into each position, the roots' first
  double* t;          // their tangents, if requested
  double* pivot;      // [n], by position
  double* of_pivot;   // [n]
  double* escape;     // [n], by position
  double* of_escape;  // [n]
  int32_t* head;      // [n], of vertices that have theirs, or kNone
  uint8_t* state;     // [n], of reading

  static constexpr int32_t kNone = -1;

  AIMLE_HD static int64_t doubles(int64_t n, bool tangents) {
    return n * n + (tangents ? 2 : 1) * n * (n + 1) + 4 * n + (n + 1) / 2 + (n + 7) / 8;
  }
  AIMLE_HD static ArborescenceScratch at(double* memory, int64_t n, bool tangents) {
    ArborescenceScratch scratch{};
    scratch.x = memory;
    scratch.w = scratch.x + n * n;
    scratch.t = tangents ? scratch.w + n * (n + 1) : scratch.w;
    scratch.pivot = scratch.w + (tangents ? 2 : 1) * n * (n + 1);
    scratch.of_pivot = scratch.pivot + n;
    scratch.escape = scratch.of_pivot + n;
    scratch.of_escape = scratch.escape + n;
    scratch.head = reinterpret_cast<int32_t*>(scratch.of_escape + n);
    scratch.state = reinterpret_cast<uint8_t*>(scratch.of_escape + n + (n + 1) / 2);
    return scratch;
  }
};

/// A row as a graph.
struct ArborescenceRow {
  Status status;
  int32_t n;
  double largest;  // logit
  double lowered;  // how much the logits of roots are reduced
  bool linear;     // weights are far from underflow

  /// The part of the log-partition that is not in the weights.
  AIMLE_EITHER double offset() const { return n * largest + lowered; }
};

namespace arborescence {

/// Whether there is an arborescence. With a single root, removes arcs in none from x. Ends with a
/// sync.
template <class Group>
AIMLE_EITHER bool connect(Group& group, int32_t n, bool single_root, double* x, uint8_t* state) {
  const double none = -__builtin_huge_val();
  const auto has = [&](int32_t h, int32_t d) { return x[d * n + h] != none; };
  const auto is_root = [&](int32_t v) { return has(v, v); };
  if (!single_root) return reaches_all(group, n, state, is_root, has);
  bool some = false;
  for (int32_t root = 0; root < n; ++root) {
    if (!is_root(root)) continue;
    const bool all = reaches_all(
        group, n, state, [root](int32_t v) { return v == root; }, has);
    some |= all;
    group.sync();
    if (!all && group.rank() == 0) x[root * n + root] = none;
    group.sync();
  }
  for (int32_t d = 0; some && d < n; ++d) {
    // An arc h -> d needs a way to h that avoids d.
    reaches_all(
        group, n, state, [&](int32_t v) { return v != d && is_root(v); },
        [&](int32_t u, int32_t v) { return v != d && has(u, v); });
    group.sync();
    for (int32_t h = group.rank(); h < n; h += group.size()) {
      if (h != d && state[h] == 0) x[d * n + h] = none;
    }
    group.sync();
  }
  return some;
}

}  // namespace arborescence

/// Reads the logits of a row into x [n, n], -inf for missing arcs: that of h -> d at d n + h, so that
/// the arcs into a vertex are contiguous. `state` [n] is memory of the group. Ends with a sync.
template <class T, class Group>
AIMLE_EITHER ArborescenceRow read_arborescence(Group& group, int32_t n, bool single_root,
                                               const T* scores, const bool* mask, double* x,
                                               uint8_t* state) {
  constexpr double kNegligible = 40;  // e^-40 is less than the roundings of float64
  const double inf = __builtin_huge_val();
  bool bad = false, missing = false;
  const auto whole_line = [](int32_t h) { return h; };
  for_each_cell(group, n, n, whole_line, [&](int32_t, int32_t h, int32_t d) {
    const int32_t e = h * n + d;
    const double logit = MaskedScores<T>{scores, mask}(e);
    bad |= logit != logit || logit == inf;
    missing |= logit == -inf;
    x[d * n + h] = logit;
  });
  if (group.any(bad)) return {Status::kNaN, n, 0, 0, true};
  if (group.any(missing) && !arborescence::connect(group, n, single_root, x, state)) {
    return {Status::kDisconnected, n, 0, 0, true};
  }
  double largest = -inf, smallest = inf, largest_root = -inf, smallest_arc = inf;
  missing = false;
  for_each_cell(group, n, n, whole_line, [&](int32_t, int32_t d, int32_t h) {
    const double logit = x[d * n + h];
    if (logit == -inf) {
      missing |= h != d;
      return;
    }
    largest = logit > largest ? logit : largest;
    smallest = logit < smallest ? logit : smallest;
    if (h == d && logit > largest_root) largest_root = logit;
    if (h != d && logit < smallest_arc) smallest_arc = logit;
  });
  const bool complete = !group.any(missing);
  largest = group.reduce(largest, Higher{});
  smallest = group.reduce(smallest, Lower{});
  largest_root = group.reduce(largest_root, Higher{});
  smallest_arc = group.reduce(smallest_arc, Lower{});
  double lowered = 0;
  if (single_root && n > 1) {
    // If all arcs exist, an extra root is exchanged for any arc; otherwise for up to n arcs.
    const double gain = largest_root > smallest_arc ? largest_root - smallest_arc : 0.0;
    const double log_n = std::log(static_cast<double>(n));
    lowered = kNegligible + (complete ? log_n + gain : n * (log_n + largest - smallest));
  }
  return {Status::kOk, n, largest, lowered,
          largest - smallest + lowered <= aimle::detail::kLinearSpread};
}

/// Converts the logits in x to weights: the largest logit has 1, and roots are reduced for a single
/// root. Ends with a sync.
template <class Number, class Group>
AIMLE_EITHER void load_weights(Group& group, const ArborescenceRow& row, double* x) {
  const int32_t n = row.n;
  for (int32_t e = group.rank(); e < n * n; e += group.size()) {
    const double lowered = e % (n + 1) == 0 ? row.lowered : 0.0;  // a root
    x[e] = x[e] == -__builtin_huge_val() ? Number::zero()
                                         : Number::from_log(x[e] - row.largest - lowered);
  }
  group.sync();
}

/// Eliminates position k: the arcs into positions first, ..., k - 1 take over those into k. The arcs
/// into a position are contiguous, those of the roots first, and `stride` apart; what is written in
/// place of the arc of a position into itself means nothing. Ends with a sync.
template <class Number, bool kTangents, class Group>
AIMLE_EITHER Star<Number, kTangents> eliminate_arcs(Group& group, int32_t first, int32_t k,
                                                    int64_t stride, double* w, double* t) {
  const auto star = Star<Number, kTangents>::of(group, w + k * stride, t + k * stride, k + 1);
  for_each_cell(
      group, k - first, k + 1,
      [&](int32_t line) {
        const int64_t last = (first + line) * stride + k + 1;
        return star.ways_on(w[last], t[last]);
      },
      [&](const auto& ways, int32_t line, int32_t slot) {
        if (ways.share == Number::zero()) return;
        const int64_t at = (first + line) * stride + slot;
        star.add_way(ways, slot, w[at], t[at]);
      });
  group.sync();
  return star;
}

/// The vertex at a position: d is first, the others keep their order.
AIMLE_EITHER int32_t vertex_at(int32_t position, int32_t d) {
  return position == 0 ? d : position <= d ? position - 1 : position;
}
AIMLE_EITHER int32_t position_of(int32_t vertex, int32_t d) {
  return vertex == d ? 0 : vertex < d ? vertex + 1 : vertex;
}

/// Fills pivots and escapes (and their tangents along v) for dependent d, from weights in scratch.x.
/// `settled`: vertices whose scratch.head is not kNone keep that head. Ends with a sync.
template <class Number, bool kTangents, class T, class Group>
AIMLE_EITHER void find_escapes(Group& group, int32_t n, int32_t d, bool settled, const T* v,
                               const ArborescenceScratch& scratch) {
  const int32_t stride = n + 1;
  struct Dependent {
    int32_t vertex;
    int32_t head;
  };
  for_each_cell(
      group, n - 1, stride,
      [&](int32_t line) -> Dependent {
        const int32_t to = vertex_at(1 + line, d);
        return {to, settled ? scratch.head[to] : ArborescenceScratch::kNone};
      },
      [&](const Dependent& to, int32_t line, int32_t slot) {
        const int32_t at = (1 + line) * stride + slot;
        const int32_t from = slot == 0 ? to.vertex : vertex_at(slot - 1, d);
        double weight = scratch.x[to.vertex * n + from];
        if (to.head != ArborescenceScratch::kNone) {
          weight = from == to.head ? Number::from_log(0) : Number::zero();
        }
        scratch.w[at] = weight;
        if constexpr (kTangents) {
          const bool exists = weight != Number::zero();
          scratch.t[at] = exists ? static_cast<double>(v[from * n + to.vertex]) : 0.0;
        }
      });
  group.sync();
  for (int32_t k = n - 1; k > 0; --k) {
    const auto star = eliminate_arcs<Number, kTangents>(group, 1, k, stride, scratch.w, scratch.t);
    if (group.rank() == 0) {
      scratch.pivot[k] = star.pivot;
      scratch.of_pivot[k] = star.of_pivot;
    }
  }
  if (group.rank() == 0) scratch.escape[0] = Number::zero();  // that of d
  group.sync();
  for (int32_t i = 1; i < n; ++i) {
    const double* const into = scratch.w + i * stride;
    const auto term = [&](int32_t slot) {  // by way of a root, or of positions before i
      return slot == 0 ? into[0] : Number::multiply(into[slot], scratch.escape[slot - 1]);
    };
    double sum = Number::zero(), of_sum = 0;
    for (int32_t slot = group.rank(); slot <= i; slot += group.size()) {
      sum = Number::add(sum, term(slot));
    }
    sum = group.reduce(sum, [](double a, double b) { return Number::add(a, b); });
    const bool escapes = sum != Number::zero();
    if constexpr (kTangents) {
      for (int32_t slot = group.rank(); slot <= i && escapes; slot += group.size()) {
        const double part = term(slot);
        if (part == Number::zero()) continue;
        const double of_part =
            scratch.t[i * stride + slot] + (slot == 0 ? 0.0 : scratch.of_escape[slot - 1]);
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
AIMLE_EITHER double head_weight(const ArborescenceScratch& scratch, int32_t n, int32_t h,
                                int32_t d) {
  const double weight = scratch.x[d * n + h];
  return h == d ? weight : Number::multiply(weight, scratch.escape[position_of(h, d)]);
}

/// Sample s of a row whose weights are in scratch.x, z [n, n] of zeros; instance b of the key. Ends
/// with a sync.
template <class Number, class T, class Group>
AIMLE_EITHER void sample_arborescence(Group& group, int32_t n, const ArborescenceScratch& scratch,
                                      Key key, int64_t b, int64_t s, T* z) {
  for (int32_t v = group.rank(); v < n; v += group.size()) {
    scratch.head[v] = ArborescenceScratch::kNone;
  }
  group.sync();
  for (int32_t d = 0; d < n; ++d) {
    find_escapes<Number, false, T>(group, n, d, true, nullptr, scratch);
    if (group.rank() == 0) {
      double total = Number::zero();
      for (int32_t h = 0; h < n; ++h) {
        total = Number::add(total, head_weight<Number>(scratch, n, h, d));
      }
      double left = uniform(key, b, s, d);
      for (int32_t h = 0; h < n; ++h) {
        const double part = head_weight<Number>(scratch, n, h, d);
        if (part == Number::zero()) continue;
        scratch.head[d] = h;  // the last possible one, in case of rounding
        left -= Number::ratio(part, total);
        if (left < 0) break;
      }
      z[scratch.head[d] * n + d] = T(1);
    }
    group.sync();
  }
}

}  // namespace aimle::exact_row
