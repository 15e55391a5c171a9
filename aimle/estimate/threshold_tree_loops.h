// The source of the threshold kernels for trees, included once per instruction set. Private to
// threshold_loops.h.
#pragma once

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include <type_traits>

#include "aimle/estimate/threshold_kernels.h"
#include "aimle/estimate/threshold_lanes.h"

namespace aimle {
namespace {

template <class Number>
[[gnu::always_inline]] inline Number larger(Number a, Number b) {
  return a < b ? b : a;
}

template <class T>
void number_edges(const T* __restrict weight, int64_t edges, EdgeNumber<T>* __restrict out) {
  using Bits = std::conditional_t<std::is_same_v<T, float>, int32_t, int64_t>;
  constexpr int kSign = 8 * sizeof(Bits) - 1;
  for (int64_t e = 0; e < edges; ++e) {
    const auto bits = __builtin_bit_cast(Bits, weight[e] + T(0));  // -0 becomes +0
    const Bits ordered = bits ^ ((bits >> kSign) & ~(Bits{1} << kSign));
    out[e] = (static_cast<EdgeNumber<T>>(ordered) << 32) | static_cast<uint32_t>(~e);
  }
}

template <class T>
void spread_edges(const TreeWalk& tree, const EdgeNumber<T>* number, EdgeNumber<T>* out) {
  const int64_t n = tree.vertices, stride = tree.stride;
  for (int64_t v = 0; v < n; ++v) {
    EdgeNumber<T>* row = out + v * stride;
    EdgeNumber<T>* column = out + v;
    row[v] = kNoEdge<T>;
    for (int64_t w = v + 1; w < n; ++w) row[w] = number[w - v - 1];
    for (int64_t w = v + 1; w < n; ++w) column[w * stride] = number[w - v - 1];
    number += n - 1 - v;
  }
}

/// The vertices of a row that are below another one, from column w on.
[[gnu::always_inline]] inline uint64_t below_from(const uint64_t* below, int64_t w) {
  return below[w / 64] >> w % 64;
}

template <class T>
void sweep_up(const TreeWalk& tree, EdgeNumber<T>* heavy, EdgeNumber<T>* best) {
  const TreeWalk walk = tree;
  for (int64_t i = walk.vertices - 1; i > 0; --i) {
    const int64_t from = walk.vertex[i] * walk.stride, to = walk.parent[i] * walk.stride;
    const uint64_t* below = walk.below + walk.vertex[i] * walk.words;
    if constexpr (std::is_same_v<T, float>) {
      using L = Lanes<kWideLanes>;
      L::Flags found = L::flags(kNoEdge<T>);
      for (int64_t w = 0; w < walk.stride; w += kWideLanes) {
        const L::Flags inside = L::has(static_cast<int64_t>(below_from(below, w)));
        const L::Flags own = L::load_integers(heavy + from + w);
        const L::Flags parent = L::load_integers(heavy + to + w);
        L::store_integers(own > parent ? own : parent, heavy + to + w);
        const L::Flags crossing = inside ? L::flags(kNoEdge<T>) : own;
        found = crossing > found ? crossing : found;
      }
      best[i] = L::largest(found)[0];
    } else {
      EdgeNumber<T> found = kNoEdge<T>;
      for (int64_t w = 0; w < walk.vertices; ++w) {
        heavy[to + w] = larger(heavy[to + w], heavy[from + w]);
        if ((below_from(below, w) & 1) == 0) found = larger(found, heavy[from + w]);
      }
      best[i] = found;
    }
  }
}

template <class T>
void rank_edges(const EdgeNumber<T>* __restrict number, int64_t count, EdgeRank* __restrict rank) {
  for (int64_t i = 0; i < count; ++i) {
    const EdgeNumber<T> own = number[i];
    int64_t lighter = 0;
    for (int64_t j = 0; j < count; ++j) lighter += number[j] < own;
    rank[i] = static_cast<EdgeRank>(lighter);
  }
}

/// Several ranks of a row.
struct RankLanes {
#if defined(__AVX512BW__)
  static constexpr int kCount = 32;
#else
  static constexpr int kCount = 16;
#endif
  using Ranks [[gnu::vector_size(2 * kCount)]] = EdgeRank;

  [[gnu::always_inline]] static Ranks load(const EdgeRank* x) {
    Ranks loaded;
    __builtin_memcpy(&loaded, x, sizeof loaded);
    return loaded;
  }
  [[gnu::always_inline]] static void store(Ranks x, EdgeRank* out) {
    __builtin_memcpy(out, &x, sizeof x);
  }
  [[gnu::always_inline]] static Ranks smaller(Ranks x, EdgeRank rank) {
    const Ranks all = Ranks{} + rank;
    return x < all ? x : all;
  }
  /// yes where a bit is set, otherwise no.
  [[gnu::always_inline]] static Ranks choose(uint64_t bits, Ranks yes, Ranks no) {
#if defined(__AVX512BW__)
    return (Ranks)_mm512_mask_blend_epi16(static_cast<uint32_t>(bits), (__m512i)no, (__m512i)yes);
#else
    const auto one = lanes_of<Ranks>([](int i) { return EdgeRank(1 << i); });
    return ((Ranks{} + static_cast<EdgeRank>(bits)) & one) != 0 ? yes : no;
#endif
  }
};

/// Upwards, the paths from every vertex to those below it; downwards, the others.
inline void find_paths(const TreeWalk& tree, const EdgeRank* rank, EdgeRank* lightest) {
  using L = RankLanes;
  const TreeWalk walk = tree;
  for (int64_t i = walk.vertices - 1; i > 0; --i) {
    const EdgeRank* from = lightest + walk.vertex[i] * walk.rank_stride;
    EdgeRank* to = lightest + walk.parent[i] * walk.rank_stride;
    const uint64_t* below = walk.below + walk.vertex[i] * walk.words;
    for (int64_t w = 0; w < walk.vertices; w += L::kCount) {
      const L::Ranks over = L::smaller(L::load(from + w), rank[i]);
      L::store(L::choose(below_from(below, w), over, L::load(to + w)), to + w);
    }
  }
  for (int64_t i = 1; i < walk.vertices; ++i) {
    const EdgeRank* from = lightest + walk.parent[i] * walk.rank_stride;
    EdgeRank* to = lightest + walk.vertex[i] * walk.rank_stride;
    const uint64_t* below = walk.below + walk.vertex[i] * walk.words;
    for (int64_t w = 0; w < walk.vertices; w += L::kCount) {
      const L::Ranks over = L::smaller(L::load(from + w), rank[i]);
      L::store(L::choose(below_from(below, w), L::load(to + w), over), to + w);
    }
  }
}

#if defined(__AVX512F__)

/// write_paths for tables that fit in registers; `edges` is the number of all edges.
inline void write_short_paths(const TreeWalk& tree, const EdgeRank* lightest,
                              const RankedEdges<float>& ranked, const float* d, double* threshold,
                              double* difference) {
  const int64_t n = tree.vertices, edges = n * (n - 1) / 2;
  const __m512 weight_low = _mm512_loadu_ps(ranked.weight);
  const __m512 weight_high = _mm512_loadu_ps(ranked.weight + 16);
  __m512 gain[2];
  for (int i = 0; i < 2; ++i) {
    const __m256 low = _mm512_cvtpd_ps(_mm512_loadu_pd(ranked.gain + 16 * i));
    const __m256 high = _mm512_cvtpd_ps(_mm512_loadu_pd(ranked.gain + 16 * i + 8));
    gain[i] = _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
  }
  const auto store = [](double* out, __m512 low_and_high, auto change) {
    const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(low_and_high));
    const __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(low_and_high, 1));
    _mm512_storeu_pd(out, change(low, 0));
    _mm512_storeu_pd(out + 8, change(high, 8));
  };
  int64_t row = 0;  // the first edge of vertex v
  for (int64_t v = 0; v < n - 1; ++v) {
    const EdgeRank* ranks = lightest + v * tree.rank_stride + v + 1;
    const int64_t length = n - v - 1;
    int64_t i = 0;
    // What is beyond the row is written again by the next one.
    for (; i < length && row + i + 16 <= edges; i += 16) {
      const __m512i rank =
          _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(ranks + i)));
      const float* change = d + row + i;
      store(threshold + row + i, _mm512_permutex2var_ps(weight_low, rank, weight_high),
            [](__m512d x, int) { return x; });
      store(difference + row + i, _mm512_permutex2var_ps(gain[0], rank, gain[1]),
            [=](__m512d x, int at) {
              return _mm512_sub_pd(_mm512_cvtps_pd(_mm256_loadu_ps(change + at)), x);
            });
    }
    for (; i < length; ++i) {
      threshold[row + i] = static_cast<double>(ranked.weight[ranks[i]]);
      difference[row + i] = static_cast<double>(d[row + i]) - ranked.gain[ranks[i]];
    }
    row += length;
  }
}

#endif

template <class T>
void write_paths(const TreeWalk& tree, const EdgeRank* lightest, const RankedEdges<T>& edges,
                 const T* d, double* threshold, double* difference) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>) {
    if (tree.vertices <= kLeastRanks) {
      return write_short_paths(tree, lightest, edges, d, threshold, difference);
    }
  }
#endif
  for (int64_t v = 0; v < tree.vertices; ++v) {
    const EdgeRank* ranks = lightest + v * tree.rank_stride;
    for (int64_t w = v + 1; w < tree.vertices; ++w) {
      *threshold++ = static_cast<double>(edges.weight[ranks[w]]);
      *difference++ = static_cast<double>(*d++) - edges.gain[ranks[w]];
    }
  }
}

}  // namespace
}  // namespace aimle
