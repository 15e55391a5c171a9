#include <immintrin.h>

#include <cstring>

#include "aimle/map/spanning_tree_avx2.h"
#include "aimle/map/transpose_avx2.h"

namespace aimle::avx2 {
namespace {

constexpr int64_t kLanes = 8;
constexpr float kInfinity = __builtin_inff();

constexpr int64_t kWord = 64;  // bits, hence vertices
constexpr int64_t kWordVectors = kWord / kLanes;

/// A row is some vectors of one word, or whole words.
[[gnu::always_inline]] inline int64_t vectors_of(int64_t n) {
  return n <= kWord ? (n + kLanes - 1) / kLanes : (n + kWord - 1) / kWord * kWordVectors;
}

/// Small trees are solved in parallel, to hide the latency of a step.
[[gnu::always_inline]] inline int64_t trees_at_once(int64_t n) { return n <= 64 ? 4 : 1; }

/// One tree under construction. Columns beyond n are vertices that never take part.
struct Prim {
  int64_t n;
  int64_t vectors;     // per row of the matrix
  float* weight;       // [8 vectors, 8 vectors], symmetric
  float* reach;        // [8 vectors], best weight of an edge from the tree to the vertex
  float* cap;          // [8 vectors], +inf outside the tree, -inf inside
  uint64_t* outside;   // one bit per vertex
  int32_t* neighbour;  // [n], the vertex of the tree that each was joined to
  int64_t joined;      // the last vertex that joined
  bool unique;         // no two vertices ever competed with the same weight

  int64_t stride() const { return vectors * kLanes; }
};

/// Entries of columns first .. first + 7 of row i, zero on the diagonal and beyond n; undirected:
/// zero below the diagonal. `x` is the row's part of the scores.
template <bool directed>
[[gnu::always_inline]] inline __m256 masked_entries(const float* x, int32_t i, int32_t first,
                                                    int32_t n) {
  const __m256i j =
      _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(first));
  const __m256i above = _mm256_and_si256(_mm256_cmpgt_epi32(j, _mm256_set1_epi32(i)),
                                         _mm256_cmpgt_epi32(_mm256_set1_epi32(n), j));
  if constexpr (!directed) return _mm256_maskload_ps(x + first - i - 1, above);
  const __m256i below = _mm256_cmpgt_epi32(_mm256_set1_epi32(i), j);
  return _mm256_or_ps(_mm256_maskload_ps(x + first - 1, above),
                      _mm256_maskload_ps(x + first, below));
}

/// Writes the scores to the matrix: both directions, or the blocks that touch the upper triangle.
template <bool directed>
void fill(const Prim& tree, const float* x) {
  const auto n = static_cast<int32_t>(tree.n);
  for (int32_t i = 0; i < n; ++i) {
    float* row = tree.weight + i * tree.stride();
    const int32_t diagonal = i / 8 * 8;
    int32_t first = 0;
    if constexpr (directed) {
      for (; first < diagonal; first += 8) _mm256_store_ps(row + first, _mm256_loadu_ps(x + first));
    }
    first = diagonal;
    _mm256_store_ps(row + first, masked_entries<directed>(x, i, first, n));
    const float* above = x - (directed ? 1 : i + 1);
    for (first += 8; first + 8 <= n; first += 8) {
      _mm256_store_ps(row + first, _mm256_loadu_ps(above + first));
    }
    if (first < n) _mm256_store_ps(row + first, masked_entries<directed>(x, i, first, n));
    x += directed ? n - 1 : n - 1 - i;
  }
}

/// Adds the transpose; false if that leaves a NaN.
template <bool directed>
bool symmetrise(const Prim& tree) {
  const int64_t stride = tree.stride();
  __m256 nan = _mm256_setzero_ps();
  for (int64_t i = 0; i < tree.n; i += kLanes) {
    for (int64_t j = i; j < tree.n; j += kLanes) {
      float* upper = tree.weight + i * stride + j;
      float* lower = tree.weight + j * stride + i;
      __m256 turned[kLanes];
      if (directed || i == j) {
        load_transposed(lower, stride, turned);
        for (int64_t r = 0; r < kLanes; ++r) {
          const __m256 sum = _mm256_add_ps(_mm256_load_ps(upper + r * stride), turned[r]);
          _mm256_store_ps(upper + r * stride, sum);
        }
      }
      load_transposed(upper, stride, turned);
      for (int64_t r = 0; r < kLanes; ++r) {
        nan = _mm256_or_ps(nan, _mm256_cmp_ps(turned[r], turned[r], _CMP_UNORD_Q));
        _mm256_store_ps(lower + r * stride, turned[r]);
      }
    }
  }
  return _mm256_movemask_ps(nan) == 0;
}

void start(Prim& tree) {
  for (int64_t v = 0; v < tree.stride(); ++v) {
    tree.reach[v] = -kInfinity;
    tree.cap[v] = 0 < v && v < tree.n ? kInfinity : -kInfinity;
  }
  for (int64_t first = 0; first < tree.n; first += kWord) {
    const int64_t members = tree.n - first;
    tree.outside[first / kWord] = members < kWord ? (uint64_t{1} << members) - 1 : ~uint64_t{0};
  }
  tree.outside[0] &= ~uint64_t{1};
  tree.joined = 0;
}

[[gnu::always_inline]] inline float largest(__m256 v) {
  __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  m = _mm_max_ps(m, _mm_movehl_ps(m, m));
  m = _mm_max_ss(m, _mm_movehdup_ps(m));
  return _mm_cvtss_f32(m);
}

/// Removes a vertex from the candidates. Whole vectors are written, because a short write would
/// stall the long read that follows.
[[gnu::always_inline]] inline void close(float* cap, int64_t vertex) {
  alignas(32) static constexpr float kClosed[2 * kLanes] = {
      kInfinity,  kInfinity, kInfinity, kInfinity, kInfinity, kInfinity, kInfinity, kInfinity,
      -kInfinity, kInfinity, kInfinity, kInfinity, kInfinity, kInfinity, kInfinity, kInfinity};
  float* block = cap + vertex / kLanes * kLanes;
  const __m256 closed = _mm256_loadu_ps(kClosed + kLanes - vertex % kLanes);
  _mm256_store_ps(block, _mm256_min_ps(_mm256_load_ps(block), closed));
}

/// One bit per vertex of a word: whether its entry equals `value`.
template <int kVectors>
[[gnu::always_inline]] inline uint64_t equal(const float* entries, __m256 value) {
  uint64_t bits = 0;
#pragma GCC unroll 8
  for (int b = 0; b < kVectors; ++b) {
    const __m256 same = _mm256_cmp_ps(_mm256_load_ps(entries + b * kLanes), value, _CMP_EQ_OQ);
    bits |= static_cast<uint64_t>(_mm256_movemask_ps(same)) << (b * kLanes);
  }
  return bits;
}

/// The vertex of the lowest set bit, or `otherwise` if there is none; without a branch, which would
/// be mispredicted.
[[gnu::always_inline]] inline int64_t lowest(uint64_t bits, int64_t word, int64_t otherwise) {
  const int64_t vertex = word * kWord + __builtin_ctzll(bits | uint64_t{1} << (kWord - 1));
  const int64_t none = -int64_t{bits == 0};
  return (vertex & ~none) | (otherwise & none);
}

/// One vertex joins. A row is `words` times kVectors long.
template <int kVectors>
[[gnu::always_inline]] inline void step(Prim& tree, int64_t words) {
  const int64_t stride = words * kVectors * kLanes;
  float* const reach = tree.reach;
  float* const cap = tree.cap;
  uint64_t* const outside = tree.outside;
  const float* row = tree.weight + tree.joined * stride;
  __m256 best = _mm256_set1_ps(-kInfinity);
  for (int64_t word = 0; word < words; ++word) {
#pragma GCC unroll 8
    for (int b = 0; b < kVectors; ++b) {
      const int64_t at = word * kWord + b * kLanes;
      const __m256 value = _mm256_max_ps(_mm256_load_ps(row + at), _mm256_load_ps(reach + at));
      _mm256_store_ps(reach + at, value);
      best = _mm256_max_ps(best, _mm256_min_ps(value, _mm256_load_ps(cap + at)));
    }
  }
  const __m256 weight = _mm256_set1_ps(largest(best));
  int64_t candidates = 0;
  int64_t next = 0;
  for (int64_t word = 0; word < words; ++word) {
    const uint64_t bits = equal<kVectors>(reach + word * kWord, weight) & outside[word];
    candidates += __builtin_popcountll(bits);
    next = lowest(bits, word, next);
  }
  tree.unique &= candidates == 1;
  // Among equal edges to the tree the lowest vertex has the lowest index.
  row = tree.weight + next * stride;
  int64_t neighbour = 0;
  for (int64_t word = words - 1; word >= 0; --word) {
    const uint64_t bits = equal<kVectors>(row + word * kWord, weight) & ~outside[word];
    neighbour = lowest(bits, word, neighbour);
  }
  tree.neighbour[next] = static_cast<int32_t>(neighbour);
  outside[next / kWord] &= ~(uint64_t{1} << next % kWord);
  close(cap, next);
  tree.joined = next;
}

void write(const Prim& tree, bool directed, float* z) {
  const int64_t n = tree.n;
  std::memset(z, 0, sizeof(float) * static_cast<size_t>(directed ? n * (n - 1) : n * (n - 1) / 2));
  for (int64_t v = 1; v < n; ++v) {
    const int64_t u = tree.neighbour[v];
    const int64_t i = u < v ? u : v;
    const int64_t j = u < v ? v : u;
    if (directed) {
      z[i * (n - 1) + j - 1] = z[j * (n - 1) + i] = 1;
    } else {
      z[i * (2 * n - i - 1) / 2 + (j - i - 1)] = 1;
    }
  }
}

template <int kVectors>
[[gnu::noinline]] void grow(Prim* trees, int64_t count) {
  const int64_t words = kVectors == kWordVectors ? trees[0].vectors / kWordVectors : 1;
  for (int64_t joined = 1; joined < trees[0].n; ++joined) {
    for (int64_t t = 0; t < count; ++t) step<kVectors>(trees[t], words);
  }
}

constexpr int64_t kMaxAtOnce = 4;

int64_t floats_per_tree(int64_t n) {
  const int64_t vectors = vectors_of(n);
  return kLanes * vectors * (kLanes * vectors + 4);  // weight, reach, cap, neighbour; outside
}

Prim carve(int64_t n, float* memory) {
  Prim tree{.n = n, .vectors = vectors_of(n)};
  tree.weight = memory;
  tree.reach = tree.weight + tree.stride() * tree.stride();
  tree.cap = tree.reach + tree.stride();
  tree.neighbour = reinterpret_cast<int32_t*>(tree.cap + tree.stride());
  tree.outside = reinterpret_cast<uint64_t*>(tree.neighbour + tree.stride());
  return tree;
}

}  // namespace

int64_t prim_scratch(int64_t vertices) {
  return trees_at_once(vertices) * floats_per_tree(vertices) + kLanes;  // and room to align
}

void solve_by_prim(const TreeRows& rows, float* scratch) {
  const int64_t n = rows.vertices;
  const int64_t size = rows.directed ? n * (n - 1) : n * (n - 1) / 2;
  const int64_t at_once = trees_at_once(n);
  scratch = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(scratch) + 31) & ~uintptr_t{31});
  Prim trees[kMaxAtOnce];
  for (int64_t t = 0; t < at_once; ++t) trees[t] = carve(n, scratch + t * floats_per_tree(n));
  for (int64_t begin = 0; begin < rows.count; begin += at_once) {
    const int64_t count = rows.count - begin < at_once ? rows.count - begin : at_once;
    for (int64_t t = 0; t < count; ++t) {
      const float* x = rows.scores + (begin + t) * size;
      if (rows.directed) {
        fill<true>(trees[t], x);
        trees[t].unique = symmetrise<true>(trees[t]);
      } else {
        fill<false>(trees[t], x);
        trees[t].unique = symmetrise<false>(trees[t]);
      }
      start(trees[t]);
    }
    using Grow = void (*)(Prim*, int64_t);
    constexpr Grow kGrow[] = {grow<1>, grow<2>, grow<3>, grow<4>,
                              grow<5>, grow<6>, grow<7>, grow<8>};
    kGrow[trees[0].vectors < kWordVectors ? trees[0].vectors - 1 : kWordVectors - 1](trees, count);
    for (int64_t t = 0; t < count; ++t) {
      if (trees[t].unique) {
        write(trees[t], rows.directed, rows.z + (begin + t) * size);
        rows.status[begin + t] = Status::kOk;
      } else {
        rows.solve_one(rows, begin + t);
      }
    }
  }
}

}  // namespace aimle::avx2
