// The source of the threshold kernels for trees, included once per instruction set. Private to
// threshold_loops.h.
#pragma once

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
void sweep_up(const TreeWalk& tree, const EdgeNumber<T>* above, const double* above_gain,
              const TreePaths<T>& paths, EdgeNumber<T>* heavy, EdgeNumber<T>* best) {
  const TreeWalk walk = tree;
  for (int64_t i = walk.vertices - 1; i > 0; --i) {
    const int64_t from = walk.vertex[i] * walk.stride, to = walk.parent[i] * walk.stride;
    const uint64_t* below = walk.below + walk.vertex[i] * walk.words;
    const EdgeNumber<T> last = above[i];
    const double last_gain = above_gain[i];
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
        const L::Flags light = L::load_integers(paths.light + from + w);
        const L::Reals gain = L::load(paths.gain + from + w, L::Whole{});
        const L::Flags lighter = light < L::flags(last);
        const L::Flags next = lighter ? light : L::flags(last);
        const L::Reals next_gain = lighter ? gain : L::reals(last_gain);
        L::store_integers(inside ? next : L::load_integers(paths.light + to + w),
                          paths.light + to + w);
        L::store(inside ? next_gain : L::load(paths.gain + to + w, L::Whole{}),
                 paths.gain + to + w);
      }
      best[i] = L::largest(found)[0];
    } else {
      EdgeNumber<T> found = kNoEdge<T>;
      for (int64_t w = 0; w < walk.vertices; ++w) {
        heavy[to + w] = larger(heavy[to + w], heavy[from + w]);
        if ((below_from(below, w) & 1) == 0) {
          found = larger(found, heavy[from + w]);
          continue;
        }
        const bool lighter = paths.light[from + w] < last;
        paths.light[to + w] = lighter ? paths.light[from + w] : last;
        paths.gain[to + w] = lighter ? paths.gain[from + w] : last_gain;
      }
      best[i] = found;
    }
  }
}

template <class T>
void sweep_down(const TreeWalk& tree, const EdgeNumber<T>* above, const double* above_gain,
                const TreePaths<T>& paths) {
  const TreeWalk walk = tree;
  for (int64_t i = 1; i < walk.vertices; ++i) {
    const int64_t to = walk.vertex[i] * walk.stride, from = walk.parent[i] * walk.stride;
    const uint64_t* below = walk.below + walk.vertex[i] * walk.words;
    const EdgeNumber<T> last = above[i];
    const double last_gain = above_gain[i];
    if constexpr (std::is_same_v<T, float>) {
      using L = Lanes<kWideLanes>;
      for (int64_t w = 0; w < walk.stride; w += kWideLanes) {
        const L::Flags inside = L::has(static_cast<int64_t>(below_from(below, w)));
        const L::Flags light = L::load_integers(paths.light + from + w);
        const L::Reals gain = L::load(paths.gain + from + w, L::Whole{});
        const L::Flags lighter = light < L::flags(last);
        const L::Flags next = lighter ? light : L::flags(last);
        const L::Reals next_gain = lighter ? gain : L::reals(last_gain);
        L::store_integers(inside ? L::load_integers(paths.light + to + w) : next,
                          paths.light + to + w);
        L::store(inside ? L::load(paths.gain + to + w, L::Whole{}) : next_gain,
                 paths.gain + to + w);
      }
    } else {
      for (int64_t w = 0; w < walk.vertices; ++w) {
        if ((below_from(below, w) & 1) != 0) continue;
        const bool lighter = paths.light[from + w] < last;
        paths.light[to + w] = lighter ? paths.light[from + w] : last;
        paths.gain[to + w] = lighter ? paths.gain[from + w] : last_gain;
      }
    }
  }
}

template <class T>
void write_paths(const TreeWalk& tree, const TreePaths<T>& paths, const T* d, double* threshold,
                 double* difference) {
  using L = Lanes<kWideLanes>;
  const int64_t n = tree.vertices, edges = n * (n - 1) / 2;
  int64_t row = 0;  // the first edge of vertex v
  for (int64_t v = 0; v < n; ++v) {
    const EdgeNumber<T>* light = paths.light + v * tree.stride + v + 1;
    const double* gain = paths.gain + v * tree.stride + v + 1;
    int64_t i = 0;
    if constexpr (std::is_same_v<T, float>) {
      // What is beyond the row is written again by the next one.
      for (; i < n - v - 1 && row + i + kWideLanes <= edges; i += kWideLanes) {
        const int64_t e = row + i;
        L::store(L::weights(light + i), threshold + e);
        L::store(L::load(d + e, L::Whole{}) - L::load(gain + i, L::Whole{}), difference + e);
      }
    }
    for (; i < n - v - 1; ++i) {
      threshold[row + i] = static_cast<double>(weight_of<T>(light[i]));
      difference[row + i] = static_cast<double>(d[row + i]) - gain[i];
    }
    row += n - v - 1;
  }
}

}  // namespace
}  // namespace aimle
