// The source of the threshold kernels, included once per instruction set. Private to
// threshold_kernels*.cpp.
#pragma once

#include <type_traits>

#include "aimle/estimate/lane_sums.h"
#include "aimle/estimate/threshold_add_loops.h"
#include "aimle/estimate/threshold_chain_loops.h"
#include "aimle/estimate/threshold_in_loops.h"
#include "aimle/estimate/threshold_kernels.h"
#include "aimle/estimate/threshold_lanes.h"
#include "aimle/estimate/threshold_lattice_loops.h"
#include "aimle/estimate/threshold_row_loops.h"
#include "aimle/estimate/threshold_tree_loops.h"
#include "aimle/estimate/threshold_weight.h"

namespace aimle {
namespace {

template <class T>
int64_t find_free(const T* __restrict theta, const bool* __restrict mask, int64_t n,
                  Flag* __restrict free) {
  constexpr T kInfinity = static_cast<T>(__builtin_huge_val());
  const auto is_infinite = [=](int64_t j) {
    return (theta[j] == kInfinity) | (theta[j] == -kInfinity);
  };
  if (mask == nullptr) {
    int32_t infinite = 0;
    for (int64_t j = 0; j < n; ++j) infinite |= is_infinite(j);
    if (infinite == 0) return n;
  }
  Flag count = 0;
  for (int64_t j = 0; j < n; ++j) {
    free[j] = mask_if(!is_infinite(j));
    if (mask != nullptr) free[j] &= mask_if(mask[j]);
    count -= free[j];
  }
  return static_cast<int64_t>(count);
}

template <class T>
void meet_each(const ThresholdExample<T>& example, const EachSwaps& swaps, double* u) {
  const Flag* free = example.free;
  const T* theta = example.theta;
  const double sign = example.sign, tau = example.tau, shift = example.shift;
  for_lanes(example.n, [=](auto lanes, int64_t j, auto count) {
    using L = decltype(lanes);
    constexpr double kInfinity = __builtin_huge_val();
    const typename L::Reals t = L::load(u + j, count);
    typename L::Flags valid = (t > -kInfinity) & (t < kInfinity);
    if (free != nullptr) valid &= L::load_flags(free + j, count);
    typename L::Reals value = (t + shift) - sign * L::load(theta + j, count);
    if (tau != 1.0) value /= tau;  // avoids a slow division
    const typename L::Reals difference = L::load(swaps.difference + j, count);
    L::store(L::only(valid ? value : L::reals(0.0), count), u + j);
    L::store(L::only(valid ? difference : L::reals(0.0), count), swaps.difference + j);
    L::store_flags(L::only(valid, count), swaps.valid + j);
  });
}

// ---- Weights ------------------------------------------------------------------------------------

/// The weight of an entry that is in, at x.
inline double normal_in_weight(double x) {
  return normal_weight(ThresholdTarget::Order::kTrapezoid, x, true);
}

// x_j = h(x_j) of the normal density, with the bits of normal_weight. Most entries of a large
// structure are far out, where this is simpler, or constant.

#if defined(__AVX512F__)

/// out = those of n numbers that exceed `limit`, compacted, and padded with `limit` to a multiple of
/// eight, which n is too. `above` gets the bits for scatter_in. Returns how many there are with
/// padding.
inline int64_t gather_above(const double* x, int64_t n, double limit, uint8_t* above, double* out) {
  double* end = out;
  for (int64_t j = 0; j < n; j += 8) {
    const __m512d eight = _mm512_loadu_pd(x + j);
    const __mmask8 bits = _mm512_cmp_pd_mask(eight, _mm512_set1_pd(limit), _CMP_GT_OQ);
    _mm512_storeu_pd(end, _mm512_maskz_compress_pd(bits, eight));
    end += __builtin_popcount(bits);
    above[j / 8] = bits;
  }
  _mm512_storeu_pd(end, _mm512_set1_pd(limit));
  return (end - out + 7) / 8 * 8;
}

inline void weigh_normal(int64_t n, double* x) {
  constexpr int64_t kAtOnce = 512;
  const double last = normal_density(kNormalLast);
  // Of up to kAtOnce numbers: those whose weight is not constant, and of these the ones near 0.
  alignas(64) double moving[kAtOnce + 8], near[kAtOnce + 8];
  uint8_t is_moving[kAtOnce / 8], is_near[kAtOnce / 8];
  for (; n >= 8;) {
    const int64_t count = n < kAtOnce ? n / 8 * 8 : kAtOnce;
    const int64_t moves = gather_above(x, count, -kNormalLast, is_moving, moving);
    const int64_t nears = gather_above(moving, moves, -kNormalFar, is_near, near);
    for (int64_t i = 0; i < nears; ++i) near[i] = normal_in_weight(near[i]);
    for (int64_t i = 0; i < moves; ++i) moving[i] = normal_density(moving[i]);
    scatter_in({.bits = is_near, .count = 1, .n = moves, .stride = moves}, near, moving);
    for (int64_t j = 0; j < count; ++j) x[j] = last;
    scatter_in({.bits = is_moving, .count = 1, .n = count, .stride = count}, moving, x);
    x += count;
    n -= count;
  }
  for (int64_t j = 0; j < n; ++j) x[j] = normal_in_weight(x[j]);
}

#else

inline void weigh_normal(int64_t n, double* __restrict x) {
  using L = Lanes<kWideLanes>;
  constexpr int64_t kRun = 16;
  const double last = normal_density(kNormalLast);
  int64_t first = 0;
  for (; first + kRun <= n; first += kRun) {
    double* __restrict run = x + first;
    L::Reals lanes = L::load(run, L::Whole{});
    for (int64_t j = kWideLanes; j < kRun; j += kWideLanes) {
      const L::Reals more = L::load(run + j, L::Whole{});
      lanes = more > lanes ? more : lanes;
    }
    const double largest = L::largest(lanes)[0];
    if (largest <= -kNormalLast) {
      for (int64_t j = 0; j < kRun; ++j) run[j] = last;
    } else if (largest <= -kNormalFar) {
      for (int64_t j = 0; j < kRun; ++j) run[j] = normal_density(run[j]);
    } else {
      for (int64_t j = 0; j < kRun; ++j) run[j] = normal_in_weight(run[j]);
    }
  }
  for (; first < n; ++first) x[first] = normal_in_weight(x[first]);
}

#endif

template <NoiseKind kDensity>
void weigh_by(ThresholdTarget::Order order, const SolutionRows& rows, double* __restrict u,
              double* __restrict scratch) {
  if (order == ThresholdTarget::Order::kFirst) {  // whether in or out
    for (int64_t j = 0; j < rows.count * rows.stride; ++j) {
      u[j] = threshold_weight(kDensity, ThresholdTarget::Order::kFirst, u[j], false);
    }
    return;
  }
  if constexpr (kDensity == NoiseKind::kGumbel) {
    // The weight of an entry that is out is the starting point of the other.
    for (int64_t j = 0; j < rows.count * rows.stride; ++j) u[j] = exp_portable(-u[j]);
    return weigh_in(rows, u, scratch, [](double y) { return gumbel_in_weight(y); });
  }
  // These densities are even: the weight of an entry that is out is that of one that is in, at -u.
  const uint8_t* bits = rows.bits;
  for (int64_t r = 0; r < rows.count; ++r, bits += (rows.n + 7) / 8) {
    double* row = u + r * rows.stride;
    for_lanes(rows.stride, [=](auto lanes, int64_t j, auto) {
      using L = decltype(lanes);
      const typename L::Reals own = L::load(row + j, typename L::Whole{});
      L::store(L::in(bits, j) ? own : -own, row + j);
    });
  }
  if constexpr (kDensity == NoiseKind::kNormal) return weigh_normal(rows.count * rows.stride, u);
  for (int64_t j = 0; j < rows.count * rows.stride; ++j) {
    u[j] = threshold_weight(kDensity, ThresholdTarget::Order::kTrapezoid, u[j], true);
  }
}

inline bool weigh(const ThresholdTarget& target, const SolutionRows& rows, double* u,
                  double* scratch) {
  switch (target.density) {
    case NoiseKind::kGumbel:
      weigh_by<NoiseKind::kGumbel>(target.order, rows, u, scratch);
      break;
    case NoiseKind::kLogistic:
      weigh_by<NoiseKind::kLogistic>(target.order, rows, u, scratch);
      break;
    default:
      weigh_by<NoiseKind::kNormal>(target.order, rows, u, scratch);
  }
  uint64_t largest = 0;  // weights are not negative, so their bits have the same order
  for (int64_t j = 0; j < rows.count * rows.stride; ++j) {
    const uint64_t bits = double_bits(u[j]);
    largest = bits > largest ? bits : largest;
  }
  return largest > double_bits(target.max_weight);
}

inline void add_each(const ThresholdTarget& target, bool exceeds, const EachSwaps& swaps,
                     const double* weight, int64_t n, CappedPartials& partials, double* sum) {
  const auto difference = [=](auto lanes, int64_t j, auto count) {
    return decltype(lanes)::load(swaps.difference + j, count);
  };
  const auto valid = [=](auto lanes, int64_t j, auto count) {
    return decltype(lanes)::load_flags(swaps.valid + j, count);
  };
  add_weighted(target, exceeds, n, weight, difference, valid, partials, sum);
  partials.weights += count_lanes(n, valid);
}

// ---- Sums ---------------------------------------------------------------------------------------

inline CappedTotals drain(CappedPartials& capped) {
  CappedTotals totals{.weights = capped.weights, .capped = capped.capped};
  totals.mass = LongSum::of(capped.mass, kSumLanes, Values{});
  totals.lost = capped.capped == 0 ? 0.0 : LongSum::of(capped.lost, kSumLanes, Values{});
  for (int lane = 0; lane < kSumLanes; ++lane) capped.mass[lane] = 0.0;
  if (capped.capped != 0) {
    for (int lane = 0; lane < kSumLanes; ++lane) capped.lost[lane] = 0.0;
  }
  capped.weights = capped.capped = 0;
  return totals;
}

template <class T>
int64_t write_gradient(double* __restrict sum, const Flag* __restrict free, int64_t free_count,
                       bool centred, double scale, int64_t n, T* __restrict out) {
  int64_t zeros = 0;
  if (free == nullptr) {
    const double mean =
        centred ? LongSum::of(sum, n, Values{}) / static_cast<double>(free_count) : 0.0;
    for (int64_t j = 0; j < n; ++j) {
      const double g = scale * (sum[j] - mean);
      out[j] = static_cast<T>(g);
      zeros += g == 0.0;
      sum[j] = 0.0;
    }
    return zeros;
  }
  const double total = fixed_sum(n, [=](int64_t j) { return select(free[j], sum[j], 0.0); });
  const double mean = centred ? total / static_cast<double>(free_count > 0 ? free_count : 1) : 0.0;
  for (int64_t j = 0; j < n; ++j) {
    const double g = select(free[j], scale * (sum[j] - mean), 0.0);
    out[j] = static_cast<T>(g);
    zeros += free[j] != 0 && g == 0.0;
    sum[j] = 0.0;
  }
  return zeros;
}

template <class T>
constexpr ThresholdKernels<T> kThresholdKernels = {
    .find_free = find_free<T>,
    .count_in = count_in,
    .keep_rivals = keep_rivals<T>,
    .meet = meet<T>,
    .meet_each = meet_each<T>,
    .weigh = weigh,
    .add = add<T>,
    .add_each = add_each,
    .drain = drain,
    .write_gradient = write_gradient<T>,
    .number_edges = number_edges<T>,
    .spread_edges = spread_edges<T>,
    .sweep_up = sweep_up<T>,
    .rank_edges = rank_edges<T>,
    .find_paths = find_paths,
    .write_paths = write_paths<T>,
    .step_forward = step_forward<T>,
    .step_back = step_back<T>,
    .write_step = write_step<T>,
    .lattice_lanes = kWideLanes,
    .interleave = interleave<T>,
    .find_lattices_of_cells = find_lattices<T, false>,
    .find_lattices_of_moves = find_lattices<T, true>};

}  // namespace
}  // namespace aimle
