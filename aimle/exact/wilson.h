// Wilson's algorithm: a random spanning tree from loop-erased random walks.
//
// Wilson, "Generating random spanning trees more quickly than the cover time", STOC 1996. From
// every vertex not yet in the tree a walk goes on, along edges in proportion to their weight, until
// it meets the tree; the last way out of every vertex on it is added. The expected number of steps
// is a mean hitting time of the walk: some n for a complete graph of similar weights, but beyond
// any bound where weights are far apart (two clusters with logits +30 inside and -30 across: 1e26).
//
// Hence `max_steps`. Giving up keeps draws exact as long as another exact method then draws afresh:
// the loops that were erased, and with them the number of steps, are independent of the tree.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace aimle::detail {

class Wilson {
 public:
  void reset(int64_t vertices) {
    n_ = vertices;
    cumulative_.assign(static_cast<size_t>(n_ * n_), 0.0);
  }
  /// Every edge once, before `finish`.
  void set_edge(int64_t i, int64_t j, double weight) {
    cumulative_[static_cast<size_t>(i * n_ + j)] = weight;
    cumulative_[static_cast<size_t>(j * n_ + i)] = weight;
  }
  void finish() {
    root_ = 0;
    for (int64_t i = 0; i < n_; ++i) {
      for (int64_t j = 1; j < n_; ++j) {
        const auto at = static_cast<size_t>(i * n_ + j);
        cumulative_[at] += cumulative_[at - 1];
      }
      if (total(i) > total(root_)) root_ = i;
    }
  }

  /// chosen(i, j) for every edge of one tree, or false after max_steps steps, and nothing chosen.
  /// uniform(step) gives the random number of a step.
  template <class Uniform, class Chosen>
  bool draw(int64_t max_steps, Uniform uniform, Chosen chosen) {
    next_.assign(static_cast<size_t>(n_), 0);
    in_tree_.assign(static_cast<size_t>(n_), 0);
    in_tree_[static_cast<size_t>(root_)] = 1;
    int64_t steps = 0;
    for (int64_t start = 0; start < n_; ++start) {
      for (int64_t i = start; !in_tree_[static_cast<size_t>(i)];) {
        if (steps == max_steps) return false;
        i = next_[static_cast<size_t>(i)] = neighbour(i, uniform(steps++));
      }
      for (int64_t i = start; !in_tree_[static_cast<size_t>(i)];) {
        in_tree_[static_cast<size_t>(i)] = 1;
        i = next_[static_cast<size_t>(i)];
      }
    }
    for (int64_t i = 0; i < n_; ++i) {
      if (i != root_) chosen(i, next_[static_cast<size_t>(i)]);
    }
    return true;
  }

 private:
  double total(int64_t i) const { return cumulative_[static_cast<size_t>(i * n_ + n_ - 1)]; }

  /// The first whose cumulative weight exceeds u of the total; u < 1, so there is one, and its own
  /// weight is not 0.
  int64_t neighbour(int64_t i, double u) const {
    const auto begin = cumulative_.begin() + i * n_;
    const auto found = std::upper_bound(begin, begin + n_, u * total(i));
    if (found != begin + n_) return found - begin;
    return std::lower_bound(begin, begin + n_, total(i)) - begin;  // u * total rounded up to it
  }

  int64_t n_ = 0;
  int64_t root_ = 0;
  std::vector<double> cumulative_;  // of row i over j = 0, 1, ...
  std::vector<int64_t> next_;
  std::vector<uint8_t> in_tree_;
};

}  // namespace aimle::detail
