// The source of the threshold kernels for trees, included once per instruction set. Private to
// threshold_loops.h.
#pragma once

#include <type_traits>

#include "aimle/estimate/threshold_kernels.h"
#include "aimle/estimate/threshold_lanes.h"

namespace aimle {
namespace {

template <class Number>
[[gnu::always_inline]] inline Number smaller(Number a, Number b) {
  return a < b ? a : b;
}
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

template <class T>
void read_edges(const TreeWalk& tree, const EdgeNumber<T>* number, uint32_t* __restrict edge,
                T* __restrict weight) {
  const int64_t n = tree.vertices;
  for (int64_t v = 0; v < n; ++v) {
    const EdgeNumber<T>* __restrict row = number + v * tree.stride + v + 1;
    for (int64_t i = 0; i < n - v - 1; ++i) edge[i] = edge_of(row[i]);
    for (int64_t i = 0; i < n - v - 1; ++i) weight[i] = weight_of<T>(row[i]);
    edge += n - v - 1;
    weight += n - v - 1;
  }
}

template <class T>
void sweep_down(const TreeWalk& tree, const EdgeNumber<T>* above, EdgeNumber<T>* light) {
  using Number = EdgeNumber<T>;
  const TreeWalk walk = tree;
  light[walk.vertex[0] * walk.stride + walk.vertex[0]] = kNoPath<T>;
  for (int64_t at = 1; at < walk.vertices; ++at) {
    const int64_t v = walk.vertex[at];
    const Number last = above[at];
    const Number* __restrict parent = light + walk.vertex[walk.up[at]] * walk.stride;
    Number* __restrict row = light + v * walk.stride;
    for (int64_t w = 0; w < walk.stride; ++w) row[w] = smaller(parent[w], last);
    row[v] = kNoPath<T>;
    for (int64_t before = 0; before < at; ++before) {
      const int64_t w = walk.vertex[before];
      light[w * walk.stride + v] = row[w];
    }
  }
}

template <class T>
void sweep_up(const TreeWalk& tree, EdgeNumber<T>* heavy, EdgeNumber<T>* best) {
  using Number = EdgeNumber<T>;
  const TreeWalk walk = tree;
  const int64_t* __restrict place = walk.place;
  for (int64_t at = walk.vertices - 1; at > 0; --at) {
    const Number* __restrict row = heavy + walk.vertex[at] * walk.stride;
    Number* __restrict parent = heavy + walk.vertex[walk.up[at]] * walk.stride;
    const auto below = static_cast<uint64_t>(walk.end[at] - at);
    Number found = kNoEdge<T>;
    for (int64_t w = 0; w < walk.stride; ++w) parent[w] = larger(parent[w], row[w]);
    for (int64_t w = 0; w < walk.stride; ++w) {
      const Number inside = -Number{static_cast<uint64_t>(place[w] - at) < below};
      found = larger(found, (row[w] & ~inside) | (kNoEdge<T> & inside));
    }
    best[at] = found;
  }
}

template <class T>
void subtract_partners(const T* d, const uint32_t* partner, int64_t n,
                       double* __restrict difference) {
  for_lanes(n, [=](auto lanes, int64_t j, auto count) {
    using L = decltype(lanes);
    const typename L::Reals change = L::load(d + j, count) - L::load_at(d, partner + j, count);
    if constexpr (std::is_same_v<decltype(count), int64_t>) {
      for (int64_t i = 0; i < count; ++i) difference[j + i] = change[i];
    } else {
      L::store(change, difference + j);
    }
  });
}

}  // namespace
}  // namespace aimle
