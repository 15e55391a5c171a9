// Thresholds and partners of the entries of a row; what they are is said in thresholds.h. Private
// to aimle/estimate.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "aimle/estimate/threshold_kernels.h"
#include "aimle/map/solver.h"

namespace aimle {

/// Finds t_j and m_j of the entries of a row. Directed trees choose both directions of an edge
/// together: t_j is then what this direction needs, given the other one, and d is to be folded.
template <class T>
class ThresholdFinder {
 public:
  /// Throws std::invalid_argument for solvers without thresholds (grid paths).
  explicit ThresholdFinder(const Solver& solver);

  /// `in` is z, a Flag per entry; `k` replaces the solver's own (null: does not). m_j = -1
  /// where j has no partner. False if `in` is not a solution, because the row had none.
  bool find(const T* x, const bool* mask, const int64_t* k, const Flag* in, T* threshold,
            int64_t* partner);

  bool is_tree() const { return tree_; }

  /// How many entries a solution has in; `k` replaces the solver's own (null: does not).
  int64_t size_of_solution(const int64_t* k) const { return k != nullptr ? *k : chosen_; }

  /// out_j = what choosing j adds to <d, z>: d_j, directed trees the sum over both directions.
  void fold(const T* d, double* out) const;

 private:
  void find_in_row(const T* x, const bool* mask, const Flag* in, T* threshold,
                   int64_t* partner) const;
  void find_in_tree(const T* x, const bool* mask, const Flag* in, T* threshold, int64_t* partner);
  void read_graph(const T* x, const bool* mask, const Flag* in);
  void order_vertices();

  /// An edge as one number, the larger the better: its weight, then the earlier index. 0 is no
  /// edge.
  using Bits = std::conditional_t<std::is_same_v<T, float>, uint32_t, uint64_t>;
  __extension__ using Wide = unsigned __int128;
  using Key = std::conditional_t<std::is_same_v<T, float>, uint64_t, Wide>;
  static Key key(T weight, int64_t edge);
  static int64_t edge_of(Key key) {
    const uint32_t edge = ~static_cast<uint32_t>(key);
    return edge;
  }

  int64_t n_ = 0;       // entries
  int64_t chosen_ = 0;  // ones in a solution
  bool tree_ = false;
  SpanningTree graph_;

  // Of trees. Vertices are numbered in the order of a walk from vertex 0 that finishes a branch
  // before the next, so that what lies below a vertex is [it, end_[it]).
  std::vector<int64_t> entry_, reverse_;    // the entries of an edge, equal if undirected
  std::vector<T> weight_;                   // of an edge
  std::vector<uint8_t> exists_, in_tree_;   // of an edge
  std::vector<int64_t> best_;               // the partner of an edge, -1 if it has none
  std::vector<int64_t> first_, neighbour_;  // the tree's adjacency
  std::vector<int64_t> vertex_, up_, end_, stack_;
  std::vector<Key> light_;  // [n, n]: the lightest edge on the path between two vertices
  std::vector<Key> heavy_;  // [n, n]: the heaviest other edge from below a vertex to another vertex
};

}  // namespace aimle
