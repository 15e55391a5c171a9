// Thresholds and partners of the edges of a graph, given its maximum spanning tree; what they are
// is said in thresholds.h. Private to aimle/estimate.
//
// In O(n^2) for n vertices, by two sweeps over a walk of the tree that are loops over rows of
// numbers without branches (threshold_kernels.h):
//
//   downwards  an edge that is out needs the lightest edge on the path between its ends. The path
//              to a vertex is the path to its parent and one edge more.
//   upwards    an edge of the tree needs the heaviest other edge across the cut that it leaves:
//              what lies below it against the rest. What lies below a vertex is the vertex and
//              what lies below its children.
//
// Of equal weights the lower index is the better edge, as for the solver.
#pragma once

#include <cstdint>
#include <vector>

#include "aimle/base/aligned.h"
#include "aimle/estimate/threshold_kernels.h"
#include "aimle/map/spanning_tree.h"

namespace aimle {

template <class T>
class TreeThresholds {
 public:
  explicit TreeThresholds(const SpanningTree& solver);

  /// Finds the partners of all edges; `bits` is a tree, packed. Entries of x that are masked are
  /// not read.
  void find(const T* x, const bool* mask, const uint8_t* bits);

  /// The entry with which j would change places, -1 if there is none; of directed trees the one of
  /// the edge's two that comes first.
  int64_t partner(int64_t j) const;

  /// For all entries, threshold_j = t_j, not finite where j has no partner, and difference_j = what
  /// <d, z> gains by j in the place of its partner. Directed trees choose both directions of an
  /// edge together: t_j is what this direction needs, given the other one, and d is added over
  /// both.
  void write(const T* x, const T* d, T* threshold, double* difference);

 private:
  using Number = EdgeNumber<T>;

  void read_tree(const uint8_t* bits);
  void walk();

  int64_t vertices_, edges_;
  bool directed_;
  int64_t stride_;  // of rows by vertex

  struct Ends {
    int32_t low, high;
  };
  std::vector<Ends> ends_;                 // of an edge
  std::vector<uint32_t> entry_, reverse_;  // the entries of an edge, equal if undirected
  std::vector<uint32_t> edge_;             // of an entry
  std::vector<T> weight_;                  // of an edge, then of none: infinite
  std::vector<Number> number_;             // of an edge that could enter
  std::vector<double> gain_;               // of an edge, then of none
  std::vector<uint32_t> partner_;          // of an edge; edges_ if it has none

  // The tree, as lists of neighbours.
  struct Neighbour {
    int32_t vertex;
    int32_t next;  // -1 at the end
    Number edge;
  };
  std::vector<int32_t> first_;
  std::vector<Neighbour> neighbour_;

  // The walk from vertex 0, which finishes a branch before the next; by place.
  struct Step {
    int32_t vertex;
    int32_t up;  // the place of its parent
    Number edge;
  };
  std::vector<Step> stack_;
  std::vector<int64_t> vertex_, up_, end_;
  std::vector<int64_t> place_;        // of a vertex
  std::vector<Number> above_, best_;  // the edge to the parent, and the best that could replace it
  AlignedVector<Number> light_, heavy_;  // see threshold_kernels.h
};

}  // namespace aimle
