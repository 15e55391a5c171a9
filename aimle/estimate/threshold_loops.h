// The source of the threshold kernels, included once per instruction set. Private to
// threshold_kernels*.cpp.
#pragma once

#include <type_traits>

#include "aimle/estimate/threshold_kernels.h"
#include "aimle/estimate/threshold_tree_loops.h"
#include "aimle/estimate/threshold_weight.h"

namespace aimle {
namespace {

inline int64_t unpack(const uint8_t* __restrict bits, int64_t n, Flag* __restrict in, int64_t place,
                      InGroups& groups) {
  int64_t count = 0;
  int64_t* first = groups.first + groups.count;
  for (int64_t j = 0; j < n; j += kThresholdGroup) {
    const uint64_t packed = bits[j / 8] >> (j % 8) & 0xf;
    for (uint64_t i = 0; i < kThresholdGroup; ++i) in[j + i] = Flag{0} - (packed >> i & 1);
    *first = place + j;
    first += packed != 0;
    count += __builtin_popcountll(packed);
  }
  groups.count = first - groups.first;
  return count;
}

template <class T>
int64_t find_free(const T* __restrict theta, const bool* __restrict mask, int64_t n,
                  Flag* __restrict free) {
  constexpr T kInfinity = static_cast<T>(__builtin_huge_val());
  Flag count = 0;
  for (int64_t j = 0; j < n; ++j) {
    free[j] = mask_if(theta[j] != kInfinity && theta[j] != -kInfinity);
    if (mask != nullptr) free[j] &= mask_if(mask[j]);
    count -= free[j];
  }
  return static_cast<int64_t>(count);
}

template <class T>
Rivals find_rivals(const T* x, const bool* mask, const Flag* in, int64_t n) {
  Rivals result;
  for (int64_t j = 0; j < n; ++j) {
    if (mask != nullptr && !mask[j]) continue;
    if (in[j] != 0) {
      if (result.worst_in < 0 || x[j] <= x[result.worst_in]) result.worst_in = j;
    } else if (result.best_out < 0 || x[j] > x[result.best_out]) {
      result.best_out = j;
    }
  }
  return result;
}

// Four entries side by side.
using FourKeys = int64_t __attribute__((vector_size(32)));
using FourInts = int32_t __attribute__((vector_size(16)));

/// The same without branches: score and place in one integer, the score first, where the earlier
/// place is the larger number.
inline Rivals find_rivals(const float* x, const Flag* in, int64_t n) {
  constexpr int64_t kLeast = INT64_MIN, kMost = INT64_MAX;
  FourKeys worst = FourKeys{} + kMost, best = FourKeys{} + kLeast;
  FourKeys place = FourKeys{0, -1, -2, -3} + 0xffffffff;
  const auto compare = [&](const float* scores, const Flag* flags) {
    using Scores [[gnu::vector_size(16), gnu::aligned(4), gnu::may_alias]] = float;
    using Flags [[gnu::vector_size(32), gnu::aligned(8), gnu::may_alias]] = int64_t;
    const FourKeys is_in = *reinterpret_cast<const Flags*>(flags);
    const FourInts bits =
        (FourInts)(*reinterpret_cast<const Scores*>(scores) + 0.0f);  // -0 becomes +0
    const FourInts score = bits ^ ((bits >> 31) & 0x7fffffff);
    const FourKeys key = (__builtin_convertvector(score, FourKeys) << 32) + place;
    const FourKeys in_key = is_in != 0 ? key : FourKeys{} + kMost;
    const FourKeys out_key = is_in != 0 ? FourKeys{} + kLeast : key;
    worst = in_key < worst ? in_key : worst;
    best = out_key > best ? out_key : best;
    place -= 4;
  };
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) compare(x + j, in + j);
  int64_t worst_key = kMost, best_key = kLeast;
  if (j < n) {
    // Entries that are not there are out, and must not be the best of those.
    float rest[4] = {};
    Flag flags[4] = {};
    __builtin_memcpy(rest, x + j, static_cast<size_t>(n - j) * sizeof(float));
    __builtin_memcpy(flags, in + j, static_cast<size_t>(n - j) * sizeof(Flag));
    const FourKeys best_before = best;
    compare(rest, flags);
    for (int64_t lane = n - j; lane < 4; ++lane) best[lane] = best_before[lane];
  }
  for (int lane = 0; lane < 4; ++lane) {
    worst_key = worst[lane] < worst_key ? worst[lane] : worst_key;
    best_key = best[lane] > best_key ? best[lane] : best_key;
  }
  const auto index = [](int64_t key) { return 0xffffffff - (key & 0xffffffff); };
  return {.worst_in = worst_key == kMost ? -1 : index(worst_key),
          .best_out = best_key == kLeast ? -1 : index(best_key)};
}

template <class T>
Rivals rivals(const T* x, const bool* mask, const Flag* in, int64_t n) {
  if constexpr (std::is_same_v<T, float>) {
    if (mask == nullptr) return find_rivals(x, in, n);
  }
  return find_rivals(x, mask, in, n);
}

/// The entries of the last group that are none.
inline void fill_up(int64_t n, const WeightRows& row) {
  for (int64_t j = n; j % kThresholdGroup != 0; ++j) {
    row.u[j] = row.difference[j] = 0.0;
    row.valid[j] = 0;
  }
}

/// u_j = (t(j) - theta_j) / tau and difference_j = change(j, difference_j) where valid, and 0
/// elsewhere.
template <class T, class Threshold, class Change>
[[gnu::always_inline]] inline void fill_valid(const ThresholdExample<T>& example, Threshold t,
                                              Change change, const WeightRows& row) {
  const T* __restrict theta = example.theta;
  double* __restrict u = row.u;
  double* __restrict difference = row.difference;
  const Flag* __restrict valid = row.valid;
  const double sign = example.sign, tau = example.tau;
  const auto fill = [=, n = example.n](auto divide) {
    for (int64_t j = 0; j < n; ++j) {
      u[j] = select(valid[j], divide(t(j) - sign * static_cast<double>(theta[j])), 0.0);
      difference[j] = select(valid[j], change(j, difference[j]), 0.0);
    }
  };
  if (tau == 1.0) {  // as most often, and divisions take longest
    fill([](double x) { return x; });
  } else {
    fill([=](double x) { return x / tau; });
  }
}

template <class T>
void meet(const ThresholdExample<T>& example, const Meeting& in, const Meeting& out,
          const T* __restrict d, const WeightRows& row) {
  const int64_t n = example.n;
  const Flag* __restrict is_in = row.in;
  const Flag* __restrict free = example.free;
  Flag* __restrict valid = row.valid;
  const double in_t = in.threshold, out_t = out.threshold, in_gain = in.gain, out_gain = out.gain;
  const Flag in_met = mask_if(in.met), out_met = mask_if(out.met);
  for (int64_t j = 0; j < n; ++j) valid[j] = (is_in[j] & in_met) | (~is_in[j] & out_met);
  if (free != nullptr) {
    for (int64_t j = 0; j < n; ++j) valid[j] &= free[j];
  }
  fill_valid(
      example, [=](int64_t j) { return select(is_in[j], in_t, out_t); },
      [=](int64_t j, double) {
        return static_cast<double>(d[j]) - select(is_in[j], in_gain, out_gain);
      },
      row);
  fill_up(n, row);
}

template <class T>
void meet_each(const ThresholdExample<T>& example, const T* __restrict threshold,
               const WeightRows& row) {
  const int64_t n = example.n;
  const Flag* __restrict free = example.free;
  Flag* __restrict valid = row.valid;
  constexpr T kInfinity = static_cast<T>(__builtin_huge_val());
  for (int64_t j = 0; j < n; ++j) {
    valid[j] = mask_if(threshold[j] > -kInfinity && threshold[j] < kInfinity);
  }
  if (free != nullptr) {
    for (int64_t j = 0; j < n; ++j) valid[j] &= free[j];
  }
  fill_valid(
      example, [=](int64_t j) { return static_cast<double>(threshold[j]); },
      [](int64_t, double set) { return set; }, row);
  fill_up(n, row);
}

[[gnu::always_inline]] inline double absolute(double x) {
  return double_from_bits(double_bits(x) & ~(uint64_t{1} << 63));
}

/// The bits of a group.
[[gnu::always_inline]] inline FourKeys four(const void* at) {
  FourKeys bits;
  __builtin_memcpy(&bits, at, sizeof(bits));
  return bits;
}

/// An entry that is out needs no more than an exponential. Where few are in, the groups that have
/// one are gathered for the rest.
inline void weigh_gumbel_trapezoid(const WeightRows& rows, int64_t entries,
                                   const InGroups& groups) {
  const double* __restrict u = rows.u;
  const Flag* __restrict in = rows.in;
  double* __restrict weight = rows.weight;
  double* __restrict y = groups.scratch;
  constexpr int64_t kSize = kThresholdGroup;
  const int64_t gathered = kSize * groups.count;
  for (int64_t j = 0; j < entries; ++j) weight[j] = exp_portable(-u[j]);
  if (4 * gathered > 3 * entries) {
    for (int64_t j = 0; j < entries; ++j) {
      weight[j] = select(in[j], gumbel_in_weight(weight[j]), weight[j]);
    }
    return;
  }
  for (int64_t g = 0; g < groups.count; ++g) {
    __builtin_memcpy(y + kSize * g, weight + groups.first[g], sizeof(FourKeys));
  }
  for (int64_t i = 0; i < gathered; ++i) y[i] = gumbel_in_weight(y[i]);
  for (int64_t g = 0; g < groups.count; ++g) {
    const FourKeys is_in = four(in + groups.first[g]);
    const FourKeys mixed =
        (four(y + kSize * g) & is_in) | (four(weight + groups.first[g]) & ~is_in);
    __builtin_memcpy(weight + groups.first[g], &mixed, sizeof(mixed));
  }
}

template <NoiseKind kDensity, ThresholdTarget::Order kOrder>
void weigh_by(const WeightRows& rows, int64_t entries, const InGroups& groups) {
  if constexpr (kDensity == NoiseKind::kGumbel && kOrder == ThresholdTarget::Order::kTrapezoid) {
    return weigh_gumbel_trapezoid(rows, entries, groups);
  }
  const double* __restrict u = rows.u;
  const Flag* __restrict in = rows.in;
  double* __restrict weight = rows.weight;
  for (int64_t j = 0; j < entries; ++j) {
    weight[j] = threshold_weight(kDensity, kOrder, u[j], in[j] != 0);
  }
}

inline void weigh(const ThresholdTarget& target, const WeightRows& rows, int64_t entries,
                  const InGroups& groups) {
  const auto in_order = [&]<NoiseKind kDensity>() {
    if (target.order == ThresholdTarget::Order::kFirst) {
      weigh_by<kDensity, ThresholdTarget::Order::kFirst>(rows, entries, groups);
    } else {
      weigh_by<kDensity, ThresholdTarget::Order::kTrapezoid>(rows, entries, groups);
    }
  };
  switch (target.density) {
    case NoiseKind::kGumbel:
      return in_order.template operator()<NoiseKind::kGumbel>();
    case NoiseKind::kLogistic:
      return in_order.template operator()<NoiseKind::kLogistic>();
    default:
      return in_order.template operator()<NoiseKind::kNormal>();
  }
}

inline void add(const ThresholdTarget& target, const WeightRows& row, int64_t n,
                CappedPartials& capped, double* __restrict sum) {
  const double* __restrict weight = row.weight;
  const double* __restrict difference = row.difference;
  const Flag* __restrict valid = row.valid;
  const double max_weight = target.max_weight;
  const double factor = target.order == ThresholdTarget::Order::kTrapezoid ? 0.5 : 1.0;
  const int64_t padded = whole_groups(n);
  Flag weights = 0, cut = 0;
  for (int64_t begin = 0; begin < padded; begin += kSumLanes) {
    const int64_t end = padded - begin < kSumLanes ? padded : begin + kSumLanes;
    double* __restrict mass = capped.mass;
    double* __restrict lost = capped.lost;
    Flag above = 0;
    for (int64_t j = begin; j < end; ++j) {
      const double w = weight[j], kept = w < max_weight ? w : max_weight;
      mass[j - begin] += w * absolute(difference[j]);
      sum[j] += factor * kept * difference[j];
      weights -= valid[j];
      above -= mask_if(w > kept) & valid[j];
    }
    if (above == 0) continue;  // and nothing is lost
    cut += above;
    for (int64_t j = begin; j < end; ++j) {
      const double w = weight[j];
      lost[j - begin] += (w - (w < max_weight ? w : max_weight)) * absolute(difference[j]);
    }
  }
  capped.capped += static_cast<int64_t>(cut);
  capped.weights += static_cast<int64_t>(weights);
}

using FourSums = double __attribute__((vector_size(32)));

/// x_j ... x_(j+3); zeros, which change no sum, from n on.
[[gnu::always_inline]] inline FourSums four_of(const double* x, int64_t j, int64_t n) {
  using Unaligned [[gnu::vector_size(32), gnu::aligned(8), gnu::may_alias]] = double;
  if (j + 4 <= n) return *reinterpret_cast<const Unaligned*>(x + j);
  return FourSums{j < n ? x[j] : 0.0, j + 1 < n ? x[j + 1] : 0.0, j + 2 < n ? x[j + 2] : 0.0, 0.0};
}

/// fixed_sum of an array, its partial sums named so that they stay in registers.
[[gnu::always_inline]] inline double sum_of(const double* x, int64_t n) {
  FourSums p0 = {}, p1 = {}, p2 = {}, p3 = {}, p4 = {}, p5 = {}, p6 = {}, p7 = {};
  for (int64_t j = 0; j < n; j += kSumLanes) {
    p0 += four_of(x, j, n);
    p1 += four_of(x, j + 4, n);
    p2 += four_of(x, j + 8, n);
    p3 += four_of(x, j + 12, n);
    p4 += four_of(x, j + 16, n);
    p5 += four_of(x, j + 20, n);
    p6 += four_of(x, j + 24, n);
    p7 += four_of(x, j + 28, n);
  }
  const FourSums folded = ((p0 + p4) + (p2 + p6)) + ((p1 + p5) + (p3 + p7));
  return (folded[0] + folded[2]) + (folded[1] + folded[3]);
}

inline CappedTotals drain(CappedPartials& capped) {
  CappedTotals totals{.weights = capped.weights, .capped = capped.capped};
  totals.mass = sum_of(capped.mass, kSumLanes);
  totals.lost = capped.capped == 0 ? 0.0 : sum_of(capped.lost, kSumLanes);
  for (int lane = 0; lane < kSumLanes; ++lane) capped.mass[lane] = 0.0;
  if (capped.capped != 0) {
    for (int lane = 0; lane < kSumLanes; ++lane) capped.lost[lane] = 0.0;
  }
  capped.weights = capped.capped = 0;
  return totals;
}

template <class T>
int64_t center(double* __restrict sum, const Flag* __restrict free, int64_t free_count,
               double scale, int64_t n, T* __restrict out) {
  int64_t zeros = 0;
  if (free == nullptr) {
    const double mean = sum_of(sum, n) / static_cast<double>(free_count);
    for (int64_t j = 0; j < n; ++j) {
      const double g = scale * (sum[j] - mean);
      out[j] = static_cast<T>(g);
      zeros += g == 0.0;
      sum[j] = 0.0;
    }
    return zeros;
  }
  const double total = fixed_sum(n, [=](int64_t j) { return select(free[j], sum[j], 0.0); });
  const double mean = total / static_cast<double>(free_count > 0 ? free_count : 1);
  for (int64_t j = 0; j < n; ++j) {
    const double g = select(free[j], scale * (sum[j] - mean), 0.0);
    out[j] = static_cast<T>(g);
    zeros += free[j] != 0 && g == 0.0;
    sum[j] = 0.0;
  }
  return zeros;
}

template <class T>
constexpr ThresholdKernels<T> kThresholdKernels = {.find_free = find_free<T>,
                                                   .unpack = unpack,
                                                   .rivals = rivals<T>,
                                                   .meet = meet<T>,
                                                   .meet_each = meet_each<T>,
                                                   .weigh = weigh,
                                                   .add = add,
                                                   .drain = drain,
                                                   .center = center<T>,
                                                   .number_edges = number_edges<T>,
                                                   .spread_edges = spread_edges<T>,
                                                   .read_edges = read_edges<T>,
                                                   .sweep_down = sweep_down<T>,
                                                   .sweep_up = sweep_up<T>};

}  // namespace
}  // namespace aimle
