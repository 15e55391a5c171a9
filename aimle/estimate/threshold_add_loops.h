// Adds weighted differences to the sums of an example, included once per instruction set. Private
// to threshold_loops.h.
#pragma once

#include "aimle/estimate/threshold_kernels.h"
#include "aimle/estimate/threshold_lanes.h"

namespace aimle {
namespace {

/// The number of the n entries for which valid(lanes, j, count) is set.
template <class Valid>
[[gnu::always_inline]] inline int64_t count_lanes(int64_t n, Valid valid) {
  int64_t total = 0;
  for_lanes(n, [&](auto lanes, int64_t j, auto count) {
    using L = decltype(lanes);
    total += L::count(L::only(valid(lanes, j, count), count));
  });
  return total;
}

/// What the cap removes from weights that exceed it.
template <class Difference, class Valid>
[[gnu::always_inline]] inline void count_capped(double max_weight, int64_t n, const double* weight,
                                                Difference difference, Valid valid,
                                                CappedPartials& partials) {
  for (int64_t begin = 0; begin < n; begin += kSumLanes) {
    const int64_t end = n - begin < kSumLanes ? n : begin + kSumLanes;
    const auto excess = [&](auto lanes, int64_t j) {
      using L = decltype(lanes);
      const typename L::Reals w = L::load(weight + j, typename L::Whole{});
      return w - (w < max_weight ? w : L::reals(max_weight));
    };
    const int64_t above = count_lanes(end - begin, [&](auto lanes, int64_t i, auto count) {
      return valid(lanes, begin + i, count) & (excess(lanes, begin + i) > 0.0);
    });
    if (above == 0) continue;  // and nothing is lost
    partials.capped += above;
    for_lanes(end - begin, [&](auto lanes, int64_t i, auto count) {
      using L = decltype(lanes);
      const typename L::Reals change = L::absolute(difference(lanes, begin + i, count));
      const typename L::Reals over = excess(lanes, begin + i);
      // A change may be infinite if nothing is lost.
      L::add(over > 0.0 ? over * change : L::reals(0.0), partials.lost + i);
    });
  }
}

/// sum_j += factor min(w_j, max_weight) difference(j), and what the cap removes from it, if any
/// weight exceeds it. Sums are padded to whole groups.
template <class Difference, class Valid>
[[gnu::always_inline]] inline void add_weighted(const ThresholdTarget& target, bool exceeds,
                                                int64_t n, const double* weight,
                                                Difference difference, Valid valid,
                                                CappedPartials& partials, double* sum) {
  const double factor = target.order == ThresholdTarget::Order::kTrapezoid ? 0.5 : 1.0;
  const double max_weight = target.max_weight;
  const auto add_kept = [&](auto keep) {
    for_lanes(n, [&](auto lanes, int64_t j, auto count) {
      using L = decltype(lanes);
      const typename L::Reals w = L::load(weight + j, typename L::Whole{});
      const typename L::Reals change = difference(lanes, j, count);
      L::add(w * L::absolute(change), partials.mass + j % kSumLanes);
      L::add(factor * keep(lanes, w) * change, sum + j);
    });
  };
  if (!exceeds) return add_kept([](auto, auto w) { return w; });
  add_kept(
      [=](auto lanes, auto w) { return w < max_weight ? w : decltype(lanes)::reals(max_weight); });
  count_capped(max_weight, n, weight, difference, valid, partials);
}

}  // namespace
}  // namespace aimle
