// Wilson's algorithm: a random spanning tree from loop-erased random walks.
//
// Wilson, "Generating random spanning trees more quickly than the cover time", STOC 1996. From
// every vertex not yet in the tree a walk proceeds along edges in proportion to their weight until
// it reaches the tree; the last exit from every vertex on it is added. The expected number of steps
// is a mean hitting time of the walk: some n for a complete graph of similar weights, but unbounded
// if weights are far apart (two clusters with logits +30 inside and -30 across: 1e26).
//
// Hence `max_steps`. Giving up keeps draws exact as long as another exact method then draws again:
// the erased loops, and with them the number of steps, are independent of the tree.
#pragma once

#include <cstdint>

#include "aimle/base/host_device.h"

namespace aimle::detail {

/// Up to this spread of a complete graph's logits, walks are short.
inline constexpr double kWalkSpread = 3;
inline constexpr int64_t kWalkStepsPerVertex = 100;

/// In memory of the caller, on the host or on the device: `set_edge` for every edge, `finish_row`
/// for every vertex, `start`, and then any number of draws.
struct Walks {
  int64_t n;  // vertices
  double*
      cumulative;    // [n, n], zeros at first: the weights, then those of row i over j = 0, 1, ...
  int32_t* next;     // [n]
  uint8_t* in_tree;  // [n]
  int64_t root = 0;

  AIMLE_HD void set_edge(int64_t i, int64_t j, double weight) const {
    cumulative[i * n + j] = cumulative[j * n + i] = weight;
  }
  AIMLE_HD void finish_row(int64_t i) const {
    for (int64_t j = 1; j < n; ++j) cumulative[i * n + j] += cumulative[i * n + j - 1];
  }
  AIMLE_HD void start() {
    root = 0;
    for (int64_t i = 1; i < n; ++i) {
      if (total(i) > total(root)) root = i;
    }
  }

  /// chosen(i, j) for every edge of one tree, or false after max_steps steps, and nothing chosen.
  /// uniform(step) gives the random number of a step.
  template <class Uniform, class Chosen>
  AIMLE_HD bool draw(int64_t max_steps, const Uniform& uniform, const Chosen& chosen) const {
    for (int64_t i = 0; i < n; ++i) in_tree[i] = i == root;
    int64_t steps = 0;
    for (int64_t start = 0; start < n; ++start) {
      for (int64_t i = start; !in_tree[i];) {
        if (steps == max_steps) return false;
        next[i] = neighbour(i, uniform(steps++));
        i = next[i];
      }
      for (int64_t i = start; !in_tree[i]; i = next[i]) in_tree[i] = 1;
    }
    for (int64_t i = 0; i < n; ++i) {
      if (i != root) chosen(i, int64_t{next[i]});
    }
    return true;
  }

 private:
  AIMLE_HD double total(int64_t i) const { return cumulative[i * n + n - 1]; }

  /// The first whose cumulative weight exceeds u of the total, u < 1: its own weight is not 0. If
  /// u * total was rounded up to the total, the last that has a weight.
  AIMLE_HD int32_t neighbour(int64_t i, double u) const {
    const double* row = cumulative + i * n;
    const double wanted = u * total(i);
    const bool exceeds = wanted < total(i);
    int64_t low = 0, high = n - 1;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (exceeds ? row[middle] > wanted : row[middle] >= wanted) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return static_cast<int32_t>(low);
  }
};

}  // namespace aimle::detail
