// Thresholds and partners of the edges of a graph, given its maximum spanning tree; thresholds.h
// defines them. Private to aimle/estimate.
//
// O(n^2) for n vertices, by two sweeps over the tree, which are loops over rows of numbers without
// branches (threshold_kernels.h):
//
//   upwards    an edge of the tree needs the heaviest other edge across the cut that removing it
//              makes: the part below it against the rest. The part below a vertex is the vertex and
//              the parts below its children. An edge that is out needs the lightest edge on the
//              path between its ends: for a vertex and one below it, that from a child on and the
//              edge to the child.
//   downwards  the path from a vertex to one that is not below it is the edge to its parent and
//              the path from there.
//
// The lightest edges are represented by their ranks in the tree, which are short, so that a row of
// them is a vector or two.
//
// Of equal weights the lower index is the better edge, as for the solver.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "aimle/base/aligned.h"
#include "aimle/estimate/threshold_kernels.h"
#include "aimle/map/spanning_tree.h"
#include "aimle/map/swap_finder.h"

namespace aimle {

template <class T>
class TreeThresholds final : public SwapFinder<T> {
 public:
  explicit TreeThresholds(const SpanningTree& solver);

  /// Masked entries of x are not read. Directed trees choose both directions of an edge together: a
  /// threshold is what this direction needs, given the other one, and d is added over both.
  bool find(const SwapRow<T>& row, double* threshold, double* difference) override;

  /// The entry with which j would be swapped in the row processed last, -1 if there is none; for
  /// directed trees the first of the edge's two entries.
  int64_t partner(int64_t j) const;

 private:
  using Number = EdgeNumber<T>;

  struct Ends {
    int32_t low, high;
  };

  int64_t read_tree(const SwapRow<T>& row);
  template <int kWords>
  void walk();
  void take_edges();
  void rank_edges(const T* d);
  void find_partners(const SwapRow<T>& row);
  void write_undirected(const SwapRow<T>& row, double* threshold, double* difference);
  void write_directed(const SwapRow<T>& row, double* threshold, double* difference);
  TreeWalk tree() const;
  RankedEdges<T> ranked() const {
    return {.weight = ranked_weight_.data(), .gain = ranked_gain_.data()};
  }
  int64_t edge_between(int64_t v, int64_t w) const {
    return first_[std::min(v, w)] + std::max(v, w);
  }
  bool is_masked(const bool* mask, int64_t e) const {
    return mask != nullptr && (!mask[entry_[e]] || !mask[reverse_[e]]);
  }
  double gain_of(const T* d, int64_t e) const {
    const auto gain = static_cast<double>(d[entry_[e]]);
    return directed_ ? gain + static_cast<double>(d[reverse_[e]]) : gain;
  }

  int64_t vertices_, edges_, chosen_;
  bool directed_;
  int64_t stride_, rank_stride_;  // of rows by vertex
  int64_t words_;                 // of a set of vertices

  std::vector<Ends> ends_;                 // of an entry
  std::vector<int64_t> first_;             // edge {v, w}, v < w, is first_[v] + w
  std::vector<uint32_t> entry_, reverse_;  // the entries of an edge, equal if undirected
  std::vector<T> weight_;                  // of an edge
  std::vector<Number> number_;             // of an edge that could enter, otherwise kNoEdge
  std::vector<uint64_t> neighbours_;       // [vertices, words] within the tree

  // See TreeWalk.
  std::vector<int64_t> vertex_, parent_;
  std::vector<uint64_t> below_;
  std::vector<Number> above_, best_;  // the edge to the parent, and the best that could replace it
  std::vector<EdgeRank> rank_;        // of the edge to the parent
  AlignedVector<Number> heavy_;       // see threshold_kernels.h
  AlignedVector<EdgeRank> lightest_;

  // Of an edge of the tree, by rank.
  std::vector<T> ranked_weight_;
  std::vector<double> ranked_gain_;
  std::vector<uint32_t> ranked_edge_;
};

}  // namespace aimle
