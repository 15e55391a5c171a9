#include <immintrin.h>

#include <utility>

#include "aimle/map/choose_avx2.h"
#include "aimle/map/topk_avx2.h"

namespace aimle::avx2 {
namespace {

constexpr int kRows = 8;

/// Batcher's odd-even merge sort for any size: the network of the next power of two without the
/// comparators that touch what is not there.
template <int kSize>
struct Network {
  int count = 0;
  int low[64] = {};
  int high[64] = {};

  constexpr Network() {
    for (int p = 1; p < kSize; p *= 2) {
      for (int q = p; q >= 1; q /= 2) {
        for (int j = q % p; j + q < kSize; j += 2 * q) {
          for (int i = j; i < j + q && i + q < kSize; ++i) {
            if (i / (2 * p) == (i + q) / (2 * p)) {
              low[count] = i;
              high[count++] = i + q;
            }
          }
        }
      }
    }
  }
};

[[gnu::always_inline]] inline void exchange(__m256& a, __m256& b) {
  const __m256 larger = _mm256_max_ps(a, b);
  b = _mm256_min_ps(a, b);
  a = larger;
}

/// Sorts kSize columns lane by lane, largest first; tells which lanes hold a NaN.
template <int kSize>
[[gnu::always_inline]] inline __m256 sort(const float (*columns)[kRows], float (*sorted)[kRows]) {
  static constexpr Network<kSize> network;
  __m256 v[kSize];
  for (int i = 0; i < kSize; ++i) v[i] = _mm256_load_ps(columns[i]);
  __m256 nan = _mm256_cmp_ps(v[0], v[kSize - 1], _CMP_UNORD_Q);
  for (int i = 1; i + 1 < kSize; i += 2) {
    nan = _mm256_or_ps(nan, _mm256_cmp_ps(v[i], v[i + 1], _CMP_UNORD_Q));
  }
  [&]<int... I>(std::integer_sequence<int, I...>) {
    (exchange(v[network.low[I]], v[network.high[I]]), ...);
  }
  (std::make_integer_sequence<int, network.count>());
  for (int i = 0; i < kSize; ++i) _mm256_store_ps(sorted[i], v[i]);
  return nan;
}

/// Eight entries of eight rows, as eight columns.
[[gnu::always_inline]] inline void transpose(const float* rows, int64_t stride,
                                             float (*columns)[kRows]) {
  for (int side = 0; side < 2; ++side) {
    __m256 r[4];  // rows i and i + 4
    for (int i = 0; i < 4; ++i) {
      const float* entry = rows + i * stride + 4 * side;
      r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(entry)),
                                  _mm_loadu_ps(entry + 4 * stride), 1);
    }
    const __m256 low01 = _mm256_unpacklo_ps(r[0], r[1]);
    const __m256 high01 = _mm256_unpackhi_ps(r[0], r[1]);
    const __m256 low23 = _mm256_unpacklo_ps(r[2], r[3]);
    const __m256 high23 = _mm256_unpackhi_ps(r[2], r[3]);
    float(*out)[kRows] = columns + 4 * side;
    _mm256_store_ps(out[0], _mm256_shuffle_ps(low01, low23, 0x44));
    _mm256_store_ps(out[1], _mm256_shuffle_ps(low01, low23, 0xee));
    _mm256_store_ps(out[2], _mm256_shuffle_ps(high01, high23, 0x44));
    _mm256_store_ps(out[3], _mm256_shuffle_ps(high01, high23, 0xee));
  }
}

/// Eight rows in the making: the sorted halves, each behind a +inf, and the rows with a NaN.
template <int kHalf>
struct Sorted {
  alignas(32) float first[kHalf + 1][kRows];
  alignas(32) float second[kHalf + 1][kRows];
  unsigned nan_rows;

  /// Reads up to 8 floats behind the last row if n < 8.
  [[gnu::always_inline]] inline Sorted(const float* rows, int64_t n) {
    alignas(32) float columns[kShortRow][kRows];
    for (int64_t block = 0; block < 2 * kHalf; block += 8) {
      const int64_t begin = block + 8 <= n ? block : (n >= 8 ? n - 8 : 0);
      transpose(rows + begin, n, columns + begin);
    }
    if (n < 2 * kHalf) _mm256_store_ps(columns[n], _mm256_set1_ps(kMasked));
    _mm256_store_ps(first[0], _mm256_set1_ps(kInfinity));
    _mm256_store_ps(second[0], _mm256_set1_ps(kInfinity));
    const __m256 nan =
        _mm256_or_ps(sort<kHalf>(columns, first + 1), sort<kHalf>(columns + kHalf, second + 1));
    nan_rows = static_cast<unsigned>(_mm256_movemask_ps(nan));
  }

  [[gnu::always_inline]] inline __m256 kth_largest(int64_t k) const {
    __m256 best = _mm256_set1_ps(kMasked);
    for (int64_t i = k > kHalf ? k - kHalf : 0; i <= (k < kHalf ? k : kHalf); ++i) {
      best = _mm256_max_ps(best,
                           _mm256_min_ps(_mm256_load_ps(first[i]), _mm256_load_ps(second[k - i])));
    }
    return best;
  }

  float kth_largest(int64_t k, int row) const {
    float best = kMasked;
    for (int64_t i = k > kHalf ? k - kHalf : 0; i <= (k < kHalf ? k : kHalf); ++i) {
      const float both = first[i][row] < second[k - i][row] ? first[i][row] : second[k - i][row];
      best = best > both ? best : both;
    }
    return best;
  }
};

/// Writes one row; with n < 8 also up to 8 floats behind its end.
template <int kHalf>
[[gnu::always_inline]] inline void choose_short(const float* scores, int64_t n, int64_t k,
                                                float threshold, float* z) {
  const __m256 t = _mm256_set1_ps(threshold);
  uint32_t chosen = 0;
  for (int64_t block = 0; block < 2 * kHalf; block += 8) {
    const int64_t begin = block + 8 <= n ? block : (n >= 8 ? n - 8 : 0);
    const __m256 reaches = _mm256_cmp_ps(_mm256_loadu_ps(scores + begin), t, _CMP_GE_OQ);
    _mm256_storeu_ps(z + begin, _mm256_and_ps(reaches, ones()));
    chosen |= static_cast<uint32_t>(_mm256_movemask_ps(reaches)) << begin;
  }
  if (n < 8) chosen &= (1u << n) - 1;
  const int count = __builtin_popcount(chosen);
  if (count != k) [[unlikely]]
    drop_last_ties(scores, n, threshold, count - k, z);
}

/// Up to eight rows whose scores may be read as eight; `ks` is null where all rows share k.
template <int kHalf>
[[gnu::always_inline]] inline void solve_eight(const float* scores, int64_t n, int64_t k,
                                               const int64_t* ks, int count, float* z,
                                               Status* status) {
  const Sorted<kHalf> sorted(scores, n);
  alignas(32) float thresholds[kRows];
  if (ks == nullptr) {
    const __m256 t = sorted.kth_largest(k);
    _mm256_store_ps(thresholds, t);
    const __m256 few = _mm256_cmp_ps(t, _mm256_set1_ps(kMasked), _CMP_EQ_OQ);
    const unsigned refused = sorted.nan_rows | static_cast<unsigned>(_mm256_movemask_ps(few));
    if (count == kRows && refused == 0) [[likely]] {
      for (int r = 0; r < kRows; ++r) {
        choose_short<kHalf>(scores + r * n, n, k, thresholds[r], z + r * n);
        status[r] = Status::kOk;
      }
      return;
    }
  }
  for (int r = 0; r < count; ++r) {
    const int64_t row_k = ks != nullptr ? ks[r] : k;
    status[r] = Status::kOk;
    if (row_k < 0 || row_k > n) {
      status[r] = Status::kBadK;
    } else if ((sorted.nan_rows >> r & 1) != 0) {
      status[r] = Status::kNaN;
    } else {
      if (ks != nullptr) thresholds[r] = sorted.kth_largest(row_k, r);
      if (thresholds[r] == kMasked) status[r] = Status::kTooFewEntries;
    }
    if (status[r] == Status::kOk) {
      choose_short<kHalf>(scores + r * n, n, row_k, thresholds[r], z + r * n);
    } else {
      fill(z + r * n, n, __builtin_nanf(""));
    }
  }
}

template <int kHalf>
void solve(const TopK& solver, const Rows<float>& rows) {
  const int64_t n = solver.n;
  for (int64_t i = 0; i < rows.count; i += kRows) {
    const int count = static_cast<int>(rows.count - i < kRows ? rows.count - i : kRows);
    const float* scores = rows.scores + i * n;
    const int64_t* ks = rows.k != nullptr ? rows.k + i : nullptr;
    float* z = rows.z + i * n;
    if (count == kRows && n >= 8 && rows.mask == nullptr) {
      solve_eight<kHalf>(scores, n, solver.k, ks, count, z, rows.status + i);
      continue;
    }
    float staged[kRows * kShortRow + 8] = {};
    float staged_z[kRows * kShortRow + 8];
    if (rows.mask != nullptr) {
      copy_unmasked(scores, rows.mask + i * n, count * n, staged);
    } else {
      __builtin_memcpy(staged, scores, sizeof(float) * static_cast<size_t>(count * n));
    }
    solve_eight<kHalf>(staged, n, solver.k, ks, count, staged_z, rows.status + i);
    __builtin_memcpy(z, staged_z, sizeof(float) * static_cast<size_t>(count * n));
  }
}

}  // namespace

void solve_short_rows(const TopK& solver, const Rows<float>& rows) {
  using Solve = void (*)(const TopK&, const Rows<float>&);
  static constexpr Solve kByHalf[] = {
      solve<1>, solve<2>,  solve<3>,  solve<4>,  solve<5>,  solve<6>,  solve<7>,  solve<8>,
      solve<9>, solve<10>, solve<11>, solve<12>, solve<13>, solve<14>, solve<15>, solve<16>};
  kByHalf[(solver.n + 1) / 2 - 1](solver, rows);
}

}  // namespace aimle::avx2
