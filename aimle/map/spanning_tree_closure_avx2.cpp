#include <immintrin.h>

#include <cstring>

#include "aimle/map/spanning_tree_avx2.h"
#include "aimle/map/transpose_avx2.h"

namespace aimle::avx2 {
namespace {

constexpr int kLanes = 8;
constexpr int kMaxVertices = kMaxClosureVertices;
constexpr int kMaxEdges = kMaxVertices * (kMaxVertices - 1) / 2;

/// Calls `body.operator()<kWidth>(begin)` for consecutive tiles of at most six that cover
/// [begin, end); the last two have about the same width.
template <class Body>
[[gnu::always_inline]] inline void for_tiles(int begin, int end, const Body& body) {
#pragma GCC unroll 1
  while (begin < end) {
    const int left = end - begin;
    const int width = left <= 6 ? left : left >= 12 ? 6 : (left + 1) / 2;
    switch (width) {
      case 1:
        body.template operator()<1>(begin);
        break;
      case 2:
        body.template operator()<2>(begin);
        break;
      case 3:
        body.template operator()<3>(begin);
        break;
      case 4:
        body.template operator()<4>(begin);
        break;
      case 5:
        body.template operator()<5>(begin);
        break;
      case 6:
        body.template operator()<6>(begin);
        break;
    }
    begin += width;
  }
}

/// The edge {i, j}, i < j, is number row(i, n) + j.
[[gnu::always_inline]] inline int row(int i, int n) { return i * (2 * n - i - 1) / 2 - i - 1; }

/// Eight rows of a batch, entry by entry across the lanes: scores first, then z in their place.
template <bool directed>
struct Entries {
  __m256 at[directed ? 2 * kMaxEdges : kMaxEdges];

  [[gnu::always_inline]] __m256 weight(int i, int j, int n) const {
    if constexpr (!directed) return at[row(i, n) + j];
    return _mm256_add_ps(at[i * (n - 1) + j - 1], at[j * (n - 1) + i]);
  }
  [[gnu::always_inline]] void set(int i, int j, int n, __m256 z) {
    if constexpr (directed) {
      at[i * (n - 1) + j - 1] = at[j * (n - 1) + i] = z;
    } else {
      at[row(i, n) + j] = z;
    }
  }
  /// The last block of eight entries overlaps the one before, so that no memory outside the rows is
  /// accessed.
  [[gnu::always_inline]] void load(const float* x, int size) {
    for (int block = 0; block < size; block += kLanes) {
      const int begin = block + kLanes <= size ? block : size - kLanes;
      load_transposed(x + begin, size, at + begin);
    }
  }
  [[gnu::always_inline]] void store(float* z, int size) const {
    for (int block = 0; block < size; block += kLanes) {
      const int begin = block + kLanes <= size ? block : size - kLanes;
      store_transposed(at + begin, z + begin, size);
    }
  }
};

/// through_{i, j} = the best bottleneck between i and j by way of vertices below both.
template <bool directed>
[[gnu::always_inline]] inline void eliminate(const Entries<directed>& entries, int n,
                                             __m256* through) {
#pragma GCC unroll 1
  for (int i = 0; i < n - 1; ++i) {
    for_tiles(
        i + 1, n, [&]<int kWidth>(int j) __attribute__((always_inline)) {
          __m256 value[kWidth];
          for (int c = 0; c < kWidth; ++c) value[c] = entries.weight(i, j + c, n);
          const __m256* from_k = through - 1;
#pragma GCC unroll 1
          for (int k = 0; k < i; ++k) {
            const __m256 to_i = from_k[i];
            for (int c = 0; c < kWidth; ++c) {
              value[c] = _mm256_max_ps(value[c], _mm256_min_ps(to_i, from_k[j + c]));
            }
            from_k += n - k - 2;
          }
          for (int c = 0; c < kWidth; ++c) through[row(i, n) + j + c] = value[c];
        });
  }
}

/// From the last vertex to the first: the bottleneck between k and j > k is the best over i > k of
/// going from k to i through vertices below both, and from i to j by any path. Scores are replaced
/// by z; bit r of the result means that row r has n - 1 such edges, which are then the tree.
template <bool directed>
[[gnu::always_inline]] inline int put_back(Entries<directed>& entries, int n,
                                           const __m256* through) {
  __m256 bottleneck[kMaxVertices * kMaxVertices];
  __m256i count = _mm256_setzero_si256();
  __m256 nan = _mm256_setzero_ps();
  for (int i = 0; i < n; ++i) bottleneck[i * n + i] = _mm256_set1_ps(__builtin_inff());
#pragma GCC unroll 1
  for (int k = n - 2; k >= 0; --k) {
    for_tiles(
        k + 1, n, [&]<int kWidth>(int j) __attribute__((always_inline)) {
          const __m256* from_k = through + row(k, n);
          const __m256* to_j = bottleneck + (k + 1) * n + j;
          __m256 value[kWidth];
          for (int c = 0; c < kWidth; ++c) value[c] = _mm256_min_ps(from_k[k + 1], to_j[c]);
#pragma GCC unroll 1
          for (int i = k + 2; i < n; ++i) {
            const __m256 to_i = from_k[i];
            to_j += n;
            for (int c = 0; c < kWidth; ++c) {
              value[c] = _mm256_max_ps(value[c], _mm256_min_ps(to_i, to_j[c]));
            }
          }
          for (int c = 0; c < kWidth; ++c) {
            bottleneck[k * n + j + c] = bottleneck[(j + c) * n + k] = value[c];
            const __m256 w = entries.weight(k, j + c, n);
            const __m256 in_tree = _mm256_cmp_ps(w, value[c], _CMP_GE_OQ);
            entries.set(k, j + c, n, _mm256_and_ps(in_tree, _mm256_set1_ps(1)));
            count = _mm256_sub_epi32(count, _mm256_castps_si256(in_tree));
            nan = _mm256_or_ps(nan, _mm256_cmp_ps(w, w, _CMP_UNORD_Q));
          }
        });
  }
  const __m256i is_tree = _mm256_cmpeq_epi32(count, _mm256_set1_epi32(n - 1));
  return _mm256_movemask_ps(_mm256_andnot_ps(nan, _mm256_castsi256_ps(is_tree)));
}

/// Solves eight rows; bit r of the result means that row r is done.
template <bool directed>
[[gnu::noinline]] int solve_eight(int n, const float* x, float* z) {
  const int size = directed ? n * (n - 1) : n * (n - 1) / 2;
  Entries<directed> entries;
  __m256 through[kMaxEdges];
  entries.load(x, size);
  eliminate(entries, n, through);
  const int done = put_back(entries, n, through);
  entries.store(z, size);
  return done;
}

/// Fewer than eight rows, padded with zeros.
[[gnu::noinline]] int solve_fewer(int (*solve)(int, const float*, float*), int n, const float* x,
                                  float* z, int size, int count) {
  float padded_x[kLanes * 2 * kMaxEdges], padded_z[kLanes * 2 * kMaxEdges];
  const size_t bytes = sizeof(float) * static_cast<size_t>(count * size);
  const size_t rest = sizeof(float) * static_cast<size_t>((kLanes - count) * size);
  std::memcpy(padded_x, x, bytes);
  std::memset(padded_x + count * size, 0, rest);
  const int done = solve(n, padded_x, padded_z);
  std::memcpy(z, padded_z, bytes);
  return done;
}

}  // namespace

void solve_by_closure(const TreeRows& rows) {
  const auto n = static_cast<int>(rows.vertices);
  const int size = rows.directed ? n * (n - 1) : n * (n - 1) / 2;
  const auto solve = rows.directed ? solve_eight<true> : solve_eight<false>;
  for (int64_t begin = 0; begin < rows.count; begin += kLanes) {
    const int64_t left = rows.count - begin;
    const int count = left < kLanes ? static_cast<int>(left) : kLanes;
    const float* x = rows.scores + begin * size;
    float* z = rows.z + begin * size;
    const int done = count == kLanes ? solve(n, x, z) : solve_fewer(solve, n, x, z, size, count);
    for (int r = 0; r < count; ++r) {
      if (done >> r & 1) {
        rows.status[begin + r] = Status::kOk;
      } else {
        rows.solve_one(rows, begin + r);
      }
    }
  }
}

}  // namespace aimle::avx2
