// Thresholds and partners of the edges of a graph, given its maximum spanning tree; thresholds.h
// defines them. Private to aimle/estimate.
//
// O(n^2) for n vertices, by two sweeps over a walk of the tree, which are loops over rows of
// numbers without branches (threshold_kernels.h):
//
//   downwards  an edge that is out needs the lightest edge on the path between its ends. The path
//              to a vertex is the path to its parent and one edge more.
//   upwards    an edge of the tree needs the heaviest other edge across the cut that removing it
//              makes: the part below it against the rest. The part below a vertex is the vertex and
//              the parts below its children.
//
// Of equal weights the lower index is the better edge, as for the solver.
#pragma once

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

  int64_t read_tree(const uint8_t* bits);
  void walk();
  void find_partners(const T* x, const bool* mask);
  void write(const T* x, const T* d, double* threshold, double* difference);

  int64_t vertices_, edges_, chosen_;
  bool directed_;
  int64_t stride_;  // of rows by vertex

  struct Ends {
    int32_t low, high;
  };
  std::vector<Ends> ends_;                 // of an edge
  std::vector<uint32_t> entry_, reverse_;  // the entries of an edge, equal if undirected
  std::vector<uint32_t> edge_;             // of an entry
  std::vector<T> weight_;                  // of an edge
  std::vector<Number> number_;             // of an edge that could enter
  std::vector<double> gain_;               // of an edge
  std::vector<uint32_t> partner_;          // of an edge; the edge itself if it has none
  std::vector<T> needed_;                  // the weight of the partner, infinite if there is none

  /// A vertex of the tree: the exclusive or of its neighbours and of the edges to them, which is
  /// the remaining one when the others are removed.
  struct Joint {
    int32_t degree;
    int32_t neighbours;
    uint32_t edges;
    int32_t below;  // vertices, itself included

    void join(int32_t vertex, uint32_t edge) {
      degree += 1;
      neighbours ^= vertex;
      edges ^= edge;
    }
  };
  std::vector<Joint> joint_;
  std::vector<int32_t> stripped_;  // children before their parents
  std::vector<int64_t> next_;      // the place of a vertex's next child

  // The depth-first walk from vertex 0, by place.
  std::vector<int64_t> vertex_, up_, end_;
  std::vector<int64_t> place_;        // of a vertex
  std::vector<Number> above_, best_;  // the edge to the parent, and the best that could replace it
  AlignedVector<Number> light_, heavy_;  // see threshold_kernels.h
};

}  // namespace aimle
