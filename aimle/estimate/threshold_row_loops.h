// The source of the threshold kernels for argmax and top-k, included once per instruction set.
// Private to threshold_loops.h.
#pragma once

#include <type_traits>
#include <utility>

#include "aimle/estimate/threshold_add_loops.h"
#include "aimle/estimate/threshold_in_loops.h"
#include "aimle/estimate/threshold_kernels.h"
#include "aimle/estimate/threshold_lanes.h"

namespace aimle {
namespace {

/// -1 if there is none.
struct Rivals {
  int64_t worst_in = -1;
  int64_t best_out = -1;
};

// ---- Rivals -------------------------------------------------------------------------------------

template <class T>
Rivals find_rivals(const T* x, const bool* mask, const uint8_t* bits, int64_t n) {
  Rivals result;
  for (int64_t j = 0; j < n; ++j) {
    if (mask != nullptr && !mask[j]) continue;
    if ((bits[j / 8] >> j % 8 & 1) != 0) {
      if (result.worst_in < 0 || x[j] <= x[result.worst_in]) result.worst_in = j;
    } else if (result.best_out < 0 || x[j] > x[result.best_out]) {
      result.best_out = j;
    }
  }
  return result;
}

#if defined(__AVX512F__)
inline constexpr int kScores = 16;
#elif defined(__AVX2__)
inline constexpr int kScores = 8;
#else
inline constexpr int kScores = 4;
#endif
using Scores = int32_t __attribute__((vector_size(4 * kScores)));

/// The scores of kScores neighbours as integers in the same order.
[[gnu::always_inline]] inline Scores ordered_scores(const float* x) {
  using Floats = float __attribute__((vector_size(4 * kScores)));
  Floats loaded;
  __builtin_memcpy(&loaded, x, sizeof loaded);
  const auto bits = (Scores)(loaded + 0.0f);  // -0 becomes +0
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

/// The best that is out and the worst that is in, lane by lane.
class RivalLanes {
 public:
  /// Entries j ... j + kScores - 1, of which `in` and `out` have a bit each.
  [[gnu::always_inline]] void add(Scores score, int32_t j, uint32_t in, uint32_t out) {
    const Scores at = lanes_of<Scores>([](int i) { return i; }) + j;
    const Scores worse = has(in) & (score <= worst_), better = has(out) & (score > best_);
    worst_ = worse ? score : worst_;
    worst_at_ = worse ? at + 1 : worst_at_;
    best_ = better ? score : best_;
    best_at_ = better ? ~at : best_at_;
  }

  [[gnu::always_inline]] Rivals find() const {
    // Half of each in one vector, then half of those.
    const Keys out = larger_keys(best_, best_at_), in = larger_keys(~worst_, worst_at_);
    constexpr int kHalf = kKeys / 2;
    Keys both = larger(shuffled(out, in, [](int i) { return i < kHalf ? i : i + kHalf; }),
                       shuffled(out, in, [](int i) { return i < kHalf ? i + kHalf : i + kKeys; }));
    if constexpr (kHalf >= 4) both = folded<2>(both);
    if constexpr (kHalf >= 2) both = folded<1>(both);
    return {.worst_in = static_cast<int64_t>(static_cast<uint32_t>(both[kHalf])) - 1,
            .best_out = static_cast<int32_t>(~static_cast<uint32_t>(both[0]))};
  }

 private:
  static constexpr int kKeys = kScores / 2;
  using Keys = int64_t __attribute__((vector_size(8 * kKeys)));

  [[gnu::always_inline]] static Scores has(uint32_t bits) {
    const auto one = lanes_of<Scores>([](int i) { return 1 << i; });
    return ((Scores{} + static_cast<int32_t>(bits)) & one) != 0;
  }
  [[gnu::always_inline]] static Keys larger(Keys a, Keys b) { return a > b ? a : b; }
  /// Lane i is lane place(i) of a and b concatenated.
  template <class Place>
  [[gnu::always_inline]] static Keys shuffled(Keys a, Keys b, Place) {
    return [&]<int... i>(std::integer_sequence<int, i...>) {
      return __builtin_shufflevector(a, b, Place{}(i)...);
    }
    (std::make_integer_sequence<int, kKeys>{});
  }
  template <int kDistance>
  [[gnu::always_inline]] static Keys folded(Keys x) {
    return larger(x, shuffled(x, x, [](int i) { return i ^ kDistance; }));
  }
  /// Of two neighbours the larger pair of score and place, as one integer.
  [[gnu::always_inline]] static Keys larger_keys(Scores score, Scores place) {
    constexpr int64_t kLow = 0xffffffff;
    const Keys even = ((Keys)score << 32) | ((Keys)place & kLow);
    const Keys odd = ((Keys)score & ~kLow) | (((Keys)place >> 32) & kLow);
    return larger(even, odd);
  }

  // Places are encoded so that the larger number is preferred: of equals the last that is in, plus
  // one, and the first that is out, inverted; 0 if there is none.
  Scores worst_ = Scores{} + INT32_MAX, worst_at_ = {};
  Scores best_ = Scores{} + INT32_MIN, best_at_ = {};
};

/// The same without branches, for n < 2^31 entries.
[[gnu::always_inline]] inline Rivals find_rivals(const float* x, const uint8_t* bits, int64_t n) {
  constexpr uint32_t kAll = (1u << kScores) - 1;
  RivalLanes lanes;
  int64_t j = 0;
  for (; j + kScores <= n; j += kScores) {
    uint32_t in = bits[j / 8] >> j % 8 & kAll;
    if constexpr (kScores == 16) in |= uint32_t{bits[j / 8 + 1]} << 8;
    lanes.add(ordered_scores(x + j), static_cast<int32_t>(j), in, in ^ kAll);
  }
  if (j == n) return lanes.find();
  const int64_t first = n > kScores ? n - kScores : 0;
  uint32_t in = 0;
  for (int64_t byte = first / 8, shift = 0; 8 * byte < n; ++byte, shift += 8) {
    in |= uint32_t{bits[byte]} << shift;
  }
  in = in >> first % 8 & kAll;
  if (n > kScores) {  // reads some of them again, which changes nothing
    lanes.add(ordered_scores(x + first), static_cast<int32_t>(first), in, in ^ kAll);
  } else {
    float rest[kScores] = {};
    __builtin_memcpy(rest, x, static_cast<size_t>(n) * sizeof(float));
    lanes.add(ordered_scores(rest), 0, in, ~in & ((1u << n) - 1));
  }
  return lanes.find();
}

// ---- One sample ---------------------------------------------------------------------------------

/// Calls use(all), where all is true_type if every entry has a weight.
template <class T, class Use>
[[gnu::always_inline]] inline void if_all_valid(const ThresholdExample<T>& example,
                                                const RowSwaps<T>& swaps, Use use) {
  if (example.free == nullptr && swaps.in.met && swaps.out.met) {
    use(std::true_type{});
  } else {
    use(std::false_type{});
  }
}

/// Which entries have a weight; `in` marks those that are in.
template <class L, class T, class Count>
[[gnu::always_inline]] inline typename L::Flags valid_lanes(const ThresholdExample<T>& example,
                                                            const RowSwaps<T>& swaps,
                                                            typename L::Flags in, int64_t j,
                                                            Count count) {
  const auto met = [](const Meeting& meeting) { return L::flags(-int64_t{meeting.met}); };
  const typename L::Flags valid = in ? met(swaps.in) : met(swaps.out);
  return example.free == nullptr ? valid : valid & L::load_flags(example.free + j, count);
}

template <class T>
[[gnu::always_inline]] inline KeptRivals rivals_of(const T* x, const bool* mask,
                                                   const uint8_t* bits, int64_t n) {
  const auto find = [=] {
    if constexpr (std::is_same_v<T, float>) {
      if (mask == nullptr) return find_rivals(x, bits, n);
    }
    return find_rivals(x, mask, bits, n);
  };
  const Rivals found = find();
  const auto score = [=](int64_t j) { return j < 0 ? 0.0 : static_cast<double>(x[j]); };
  return {.worst_in = static_cast<int32_t>(found.worst_in),
          .best_out = static_cast<int32_t>(found.best_out),
          .worst_in_score = score(found.worst_in),
          .best_out_score = score(found.best_out)};
}

template <class T>
void keep_rivals(const T* x, const bool* mask, const uint8_t* bits, int64_t n, int64_t count,
                 std::byte* out) {
  for (int64_t r = 0; r < count; ++r, x += n, bits += (n + 7) / 8, out += sizeof(KeptRivals)) {
    const KeptRivals found = rivals_of(x, mask, bits, n);
    __builtin_memcpy(out, &found, sizeof found);
  }
}

template <class T>
[[gnu::always_inline]] inline void meet_one(const ThresholdExample<T>& example,
                                            const KeptRivals& rivals, RowSwaps<T>& swaps,
                                            double* u) {
  const T* d = swaps.d;
  const uint8_t* bits = swaps.bits;
  const auto meeting = [=](int64_t partner, double score) -> Meeting {
    if (partner < 0 || __builtin_isinf(score)) return {};  // unreachable by noise
    return {.threshold = score, .gain = d[partner], .met = true};
  };
  swaps.in = meeting(rivals.best_out, rivals.best_out_score);
  swaps.out = meeting(rivals.worst_in, rivals.worst_in_score);

  const double in_t = swaps.in.threshold, out_t = swaps.out.threshold;
  const double sign = example.sign, tau = example.tau;
  const T* theta = example.theta;
  if_all_valid(example, swaps, [&](auto all) {
    for_lanes(example.n, [&](auto lanes, int64_t j, auto count) {
      using L = decltype(lanes);
      const typename L::Flags in = L::in(bits, j);
      const typename L::Reals t = in ? L::reals(in_t) : L::reals(out_t);
      typename L::Reals value = t - sign * L::load(theta + j, count);
      if (tau != 1.0) value /= tau;  // avoids a slow division
      if constexpr (!all.value) {
        value = valid_lanes<L>(example, swaps, in, j, count) ? value : L::reals(0.0);
      }
      L::store(L::only(value, count), u + j);
    });
  });
}

template <class T>
[[gnu::always_inline]] inline void add_one(const ThresholdTarget& target, bool exceeds,
                                           const ThresholdExample<T>& example,
                                           const RowSwaps<T>& swaps, const double* weight,
                                           CappedPartials& partials, double* sum) {
  const uint8_t* bits = swaps.bits;
  const T* d = swaps.d;
  const double in_gain = swaps.in.gain, out_gain = swaps.out.gain;
  if_all_valid(example, swaps, [&](auto all) {
    const auto valid = [&](auto lanes, int64_t j, auto count) {
      using L = decltype(lanes);
      return valid_lanes<L>(example, swaps, L::in(bits, j), j, count);
    };
    const auto difference = [&](auto lanes, int64_t j, auto count) {
      using L = decltype(lanes);
      const typename L::Flags in = L::in(bits, j);
      const typename L::Reals gain = in ? L::reals(in_gain) : L::reals(out_gain);
      typename L::Reals change = L::load(d + j, count) - gain;
      if constexpr (!all.value) change = valid(lanes, j, count) ? change : L::reals(0.0);
      return L::only(change, count);
    };
    add_weighted(target, exceeds, example.n, weight, difference, valid, partials, sum);
    partials.weights += all.value ? example.n : count_lanes(example.n, valid);
  });
}

// ---- Rows ---------------------------------------------------------------------------------------

template <class T>
void meet(ThresholdRow<T>* rows, int64_t count, int64_t stride, double* u) {
  for (int64_t r = 0; r < count; ++r, u += stride) {
    ThresholdRow<T>& row = rows[r];
    row.solved = count_in(row.swaps.bits, row.example.n) == row.chosen;
    if (row.solved) {
      if (row.x != nullptr) {
        row.rivals = rivals_of(row.x, row.mask, row.swaps.bits, row.example.n);
      }
      meet_one(row.example, row.rivals, row.swaps, u);
    } else {
      for (int64_t j = 0; j < stride; ++j) u[j] = 0.0;
    }
  }
}

template <class T>
int64_t add(const ThresholdTarget& target, bool exceeds, const ThresholdRow<T>* rows, int64_t count,
            int64_t stride, const double* weight, CappedPartials& partials, double* sum) {
  int64_t solved = 0;
  for (int64_t r = 0; r < count; ++r, weight += stride) {
    const ThresholdRow<T>& row = rows[r];
    solved += row.solved;
    if (row.solved) {
      add_one(target, exceeds, row.example, row.swaps, weight, partials, sum);
    } else {
      for (int64_t j = 0; j < row.example.n; ++j) sum[j] = __builtin_nan("");
    }
  }
  return solved;
}

}  // namespace
}  // namespace aimle
