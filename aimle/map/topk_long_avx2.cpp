#include <immintrin.h>

#include "aimle/map/choose_avx2.h"
#include "aimle/map/topk_avx2.h"

namespace aimle::avx2 {
namespace {

/// The group maxima are taken over this many leading entries; the rest is compared with the
/// resulting bound.
constexpr int64_t kHead = 4096;
/// Entries tested at once against the bound.
constexpr int64_t kBlock = 32;
/// Up to this many numbers are ranked by comparing all pairs.
constexpr int64_t kFew = 32;

/// For each of the 256 choices of lanes: their indices, compacted.
struct PackTable {
  uint64_t lanes[256] = {};
  constexpr PackTable() {
    for (unsigned mask = 0; mask < 256; ++mask) {
      int filled = 0;
      for (unsigned lane = 0; lane < 8; ++lane) {
        if ((mask >> lane & 1) != 0) lanes[mask] |= uint64_t{lane} << (8 * filled++);
      }
    }
  }
};
constexpr PackTable kPack;

/// Appends the lanes of v where `keep` is set; writes 8 floats. Returns the new end.
[[gnu::always_inline]] inline float* append(float* end, __m256 v, __m256 keep) {
  const auto mask = static_cast<unsigned>(_mm256_movemask_ps(keep));
  const __m256i lanes =
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(&kPack.lanes[mask])));
  _mm256_storeu_ps(end, _mm256_permutevar8x32_ps(v, lanes));
  return end + __builtin_popcount(mask);
}

inline void pad(float* end) { _mm256_storeu_ps(end, _mm256_set1_ps(kMasked)); }

inline __m256 greater(__m256 a, __m256 b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }

/// The k-th largest of 8 * kVectors numbers: the smallest of those that fewer than k exceed.
template <int kVectors>
[[gnu::always_inline]] inline float kth_by_rank(const float* values, int64_t count, int64_t k) {
  __m256 v[kVectors];
  __m256i above[kVectors];
  for (int q = 0; q < kVectors; ++q) {
    v[q] = _mm256_loadu_ps(values + 8 * q);
    above[q] = _mm256_setzero_si256();
  }
  for (int64_t i = 0; i < count; ++i) {
    const __m256 one = _mm256_broadcast_ss(values + i);
    for (int q = 0; q < kVectors; ++q) {
      above[q] = _mm256_sub_epi32(above[q], _mm256_castps_si256(greater(one, v[q])));
    }
  }
  const __m256i wanted = _mm256_set1_epi32(static_cast<int>(k));
  __m256 least = _mm256_set1_ps(kInfinity);
  for (int q = 0; q < kVectors; ++q) {
    const __m256 among = _mm256_castsi256_ps(_mm256_cmpgt_epi32(wanted, above[q]));
    least = _mm256_min_ps(least, _mm256_blendv_ps(_mm256_set1_ps(kInfinity), v[q], among));
  }
  return horizontal_min(least);
}

/// count <= kFew; the values are padded to a multiple of 8 with -inf.
inline float kth_of_few(const float* values, int64_t count, int64_t k) {
  if (count <= 8) return kth_by_rank<1>(values, count, k);
  if (count <= 16) return kth_by_rank<2>(values, count, k);
  if (count <= 24) return kth_by_rank<3>(values, count, k);
  return kth_by_rank<4>(values, count, k);
}

/// The k-th largest of `count` values, which are overwritten; needs space for a block after them.
/// Quickselect; the pivot is the median of 15 spread-out entries.
float kth_largest(float* values, int64_t count, int64_t k) {
  for (uint64_t spread = 1;; ++spread) {
    pad(values + count);
    if (count <= kFew) return kth_of_few(values, count, k);
    alignas(32) float sample[16];
    for (uint64_t i = 0; i < 15; ++i) {
      const uint64_t random = (spread * 15 + i) * 0x9e3779b97f4a7c15u >> 32;
      sample[i] = values[random * static_cast<uint64_t>(count) >> 32];
    }
    sample[15] = kMasked;
    const float pivot = kth_by_rank<2>(sample, 16, 8);
    const __m256 p = _mm256_set1_ps(pivot);
    __m256i above = _mm256_setzero_si256();
    __m256i equal = _mm256_setzero_si256();
    for (int64_t j = 0; j < count; j += 8) {
      const __m256 v = _mm256_loadu_ps(values + j);
      above = _mm256_sub_epi32(above, _mm256_castps_si256(greater(v, p)));
      equal = _mm256_sub_epi32(equal, _mm256_castps_si256(_mm256_cmp_ps(v, p, _CMP_EQ_OQ)));
    }
    const int64_t larger = horizontal_sum(above);
    const int64_t reaching = larger + horizontal_sum(equal);
    if (larger < k && k <= reaching) return pivot;
    float* end = values;
    for (int64_t j = 0; j < count; j += 8) {
      const __m256 v = _mm256_loadu_ps(values + j);
      end = append(end, v, k <= larger ? greater(v, p) : greater(p, v));
    }
    if (k > reaching) k -= reaching;
    count = end - values;
  }
}

/// The largest float below x; -inf is unchanged.
inline float just_below(float x) {
  if (x == kMasked) return x;
  const auto bits = __builtin_bit_cast(int32_t, x);
  return __builtin_bit_cast(float, x > 0 ? bits - 1 : (x == 0 ? INT32_MIN + 1 : bits + 1));
}

inline __m256 load_or_masked(const float* scores, int64_t available) {
  if (available >= 8) return _mm256_loadu_ps(scores);
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i inside = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(available)), lane);
  return _mm256_blendv_ps(_mm256_set1_ps(kMasked), _mm256_maskload_ps(scores, inside),
                          _mm256_castsi256_ps(inside));
}

/// The k-th largest of the maxima of 8 * kVectors groups, which at least k scores reach; also looks
/// for NaN. The entries after the last full block are in no group.
template <int kVectors>
float bound_of_groups(const float* scores, int64_t n, int64_t k, __m256& nan) {
  __m256 largest[kVectors];
  for (__m256& v : largest) v = _mm256_set1_ps(kMasked);
  for (int64_t j = 0; j + kBlock <= n; j += kBlock) {
    for (int q = 0; q < kBlock / 8; ++q) {
      const __m256 v = _mm256_loadu_ps(scores + j + 8 * q);
      largest[q % kVectors] = _mm256_max_ps(v, largest[q % kVectors]);
      nan = _mm256_or_ps(nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    }
  }
  alignas(32) float maxima[8 * kVectors];
  for (int q = 0; q < kVectors; ++q) _mm256_store_ps(maxima + 8 * q, largest[q]);
  return kth_by_rank<kVectors>(maxima, 8 * kVectors, k);
}

/// Finds the k-th largest score of rows of length n.
class Selection {
 public:
  Selection(int64_t n, int64_t largest_k)
      : n_(n), survivors_(capacity(largest_k)), selecting_(capacity(largest_k)) {}

  /// -inf if fewer than k scores exceed it, +inf if k = 0. Meaningless if a score is NaN.
  float threshold(const float* scores, int64_t k) {
    nan_ = _mm256_setzero_ps();
    bound_ = k > 0 ? kMasked : kInfinity;
    end_ = survivors_.data();
    k_ = k;
    const int64_t head = n_ < kHead ? n_ : kHead;
    if (k == 0) {
      filter<true>(scores, 0, n_);
      return kInfinity;
    }
    if (k <= 4 && n_ >= 64) {
      bound_ = just_below(bound_of_groups<1>(scores, head, k, nan_));
    } else if (k <= 12 && n_ >= 64) {
      bound_ = just_below(bound_of_groups<2>(scores, head, k, nan_));
    } else if (k <= 24 && n_ >= 128) {
      bound_ = just_below(bound_of_groups<4>(scores, head, k, nan_));
    } else {
      filter<true>(scores, 0, n_);
      return kth_survivor();
    }
    filter<false>(scores, 0, head);
    filter<true>(scores, head, n_);
    return kth_survivor();
  }

  bool saw_nan() const { return _mm256_movemask_ps(nan_) != 0; }

 private:
  /// The number of survivors at which they are pruned.
  static int64_t limit(int64_t k) { return 3 * k + 128; }
  int64_t capacity(int64_t k) const { return (n_ < limit(k) ? n_ : limit(k)) + kBlock; }

  /// Appends the scores above the bound to the survivors. After the last full block it always looks
  /// for NaN.
  template <bool kLookForNaN>
  void filter(const float* scores, int64_t begin, int64_t end) {
    __m256 bound = _mm256_set1_ps(bound_);
    int64_t j = begin;
    for (; j + kBlock <= end; j += kBlock) {
      __m256 v[4];
      __m256 keep[4];
      for (int q = 0; q < 4; ++q) {
        v[q] = _mm256_loadu_ps(scores + j + 8 * q);
        keep[q] = greater(v[q], bound);
      }
      if constexpr (kLookForNaN) {
        nan_ = _mm256_or_ps(nan_, _mm256_or_ps(_mm256_cmp_ps(v[0], v[1], _CMP_UNORD_Q),
                                               _mm256_cmp_ps(v[2], v[3], _CMP_UNORD_Q)));
      }
      const __m256 any =
          _mm256_or_ps(_mm256_or_ps(keep[0], keep[1]), _mm256_or_ps(keep[2], keep[3]));
      if (_mm256_movemask_ps(any) == 0) continue;
      for (int q = 0; q < 4; ++q) end_ = append(end_, v[q], keep[q]);
      if (end_ - survivors_.data() >= limit(k_)) [[unlikely]] {
        thin_out();
        bound = _mm256_set1_ps(bound_);
      }
    }
    for (; j < end; j += 8) {
      const __m256 v = load_or_masked(scores + j, end - j);
      nan_ = _mm256_or_ps(nan_, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
      end_ = append(end_, v, greater(v, bound));
    }
  }

  /// Keeps the k largest survivors. Later scores must exceed the smallest of them.
  [[gnu::noinline]] void thin_out() {
    float* const begin = survivors_.data();
    const int64_t count = end_ - begin;
    __builtin_memcpy(selecting_.data(), begin, sizeof(float) * static_cast<size_t>(count));
    bound_ = kth_largest(selecting_.data(), count, k_);
    const __m256 bound = _mm256_set1_ps(bound_);
    pad(end_);
    end_ = begin;
    for (int64_t j = 0; j < count; j += 8) {
      const __m256 v = _mm256_loadu_ps(begin + j);
      end_ = append(end_, v, greater(v, bound));
    }
    while (end_ < begin + k_) *end_++ = bound_;
  }

  float kth_survivor() {
    const int64_t count = end_ - survivors_.data();
    return count < k_ ? kMasked : kth_largest(survivors_.data(), count, k_);
  }

  int64_t n_;
  Scratch survivors_;
  Scratch selecting_;
  __m256 nan_ = _mm256_setzero_ps();
  float* end_ = nullptr;
  float bound_ = kMasked;
  int64_t k_ = 0;
};

}  // namespace

void solve_long_rows(const TopK& solver, const Rows<float>& rows) {
  const int64_t n = solver.n;
  Selection selection(n, rows.k != nullptr ? n : solver.k);
  const Scratch unmasked(rows.mask != nullptr ? n : 0);
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t k = rows.k != nullptr ? rows.k[i] : solver.k;
    const float* scores = rows.scores + i * n;
    float* z = rows.z + i * n;
    if (rows.mask != nullptr) {
      copy_unmasked(scores, rows.mask + i * n, n, unmasked.data());
      scores = unmasked.data();
    }
    float threshold = 0;
    Status& status = rows.status[i];
    if (k < 0 || k > n) {
      status = Status::kBadK;
    } else {
      threshold = selection.threshold(scores, k);
      status = selection.saw_nan()    ? Status::kNaN
               : threshold == kMasked ? Status::kTooFewEntries
                                      : Status::kOk;
    }
    if (status == Status::kOk) {
      choose(scores, n, k, threshold, z);
    } else {
      fill(z, n, __builtin_nanf(""));
    }
  }
}

}  // namespace aimle::avx2
