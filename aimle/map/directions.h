// Converts between the two layouts of a graph's edges (spanning_tree.h): rows of n(n-1) directed
// entries and of n(n-1)/2 undirected ones.
//
//   fold    e_{ij} = a_ij + a_ji; for masks: both
//   spread  a_ij = a_ji = e_{ij}
//
// As matrices they are each other's transpose, so each is the other's gradient.
#pragma once

#include <cstdint>
#include <type_traits>

#include "aimle/base/host_device.h"

namespace aimle {

/// The value of an edge, given those of its directions.
template <class T>
AIMLE_HD T folded(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) return a && b;
  return a + b;
}

/// `count` rows; T is float, double or bool.
template <class T>
void fold_directions(int64_t vertices, int64_t count, const T* directed, T* undirected);
template <class T>
void spread_directions(int64_t vertices, int64_t count, const T* undirected, T* directed);

}  // namespace aimle
