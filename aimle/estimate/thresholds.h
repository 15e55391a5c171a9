// Thresholds: the gradient of argmax, top-k and spanning trees from one solve, without a step size.
//
// Hold all noise but that of entry j. The solution then depends on x_j only through whether it
// exceeds a threshold t_j: above, j is in; below, its partner m_j is in instead. So with noise of
// density p and distribution F, temperature tau, and u_j = (t_j - theta_j) / tau,
//
//   d/dtheta_j E f(z) = E[ p(u_j) / tau (f(z with j) - f(z with m_j)) ]
//
// One solve tells t_j and m_j for every j, in time linear in the number of entries:
//
//   argmax, top-k   j in: the best entry that is out; j out: the worst entry that is in
//   spanning tree   j in: the heaviest edge outside the tree across the cut that j leaves;
//                   j out: the lightest edge on the tree path between the ends of j
//
// and a Taylor expansion gives the difference of f from d, the gradient of f at the z that was
// seen:
//
//   kFirst      g_j = p(u_j) (d_j - d_m) / tau
//   kTrapezoid  g_j = 1/2 w_j (d_j - d_m) / tau,  w_j = p/(1 - F) if j is in, p/F if it is out,
//
// the trapezoid weighing each of the two states by how seldom it is seen, so that its expectation
// uses the gradients at both: unbiased for every quadratic f, where kFirst is for linear f only.
// No structure changes if the same number is added to all theta, so the mean of g is subtracted.
//
// Weights (threshold_weight.h): Gumbel p/F = e^-u, p/(1 - F) <= 1; Logistic both <= 1; Normal about
// |u|. Those beyond max_weight are cut to it, a bias that the report measures. Noise without a
// density in closed form is refused: for Sum-of-Gamma F ~ u^(iterations/k) at its lower end, and
// with k >= iterations w has no second moment. Without noise (evaluation) nothing is left to chance
// and kFirst is used, at the density and temperature given.
//
// All in float64 and in a fixed order, so that every machine finds the same bits: an entry's
// samples one after the other; the mean over the entries, and the totals of the report over entries
// and then over examples, in the order of fixed_sum.h.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "aimle/estimate/estimator.h"

namespace aimle {

/// Finds t_j and m_j of the entries of a row. Directed trees choose both directions of an edge
/// together: t_j is then what this direction needs, given the other one, and d is to be folded.
template <class T>
class ThresholdFinder {
 public:
  /// Throws std::invalid_argument for solvers without thresholds (grid paths).
  explicit ThresholdFinder(const Solver& solver);

  /// `chosen` is z, a byte per entry; `k` replaces the solver's own (null: does not). m_j = -1
  /// where j has no partner. False if `chosen` is not a solution, because the row had none.
  bool find(const T* x, const bool* mask, const int64_t* k, const uint8_t* chosen, T* threshold,
            int64_t* partner);

  /// out_j = what choosing j adds to <d, z>: d_j, directed trees the sum over both directions.
  void fold(const T* d, double* out) const;

 private:
  void find_in_row(const T* x, const bool* mask, const uint8_t* chosen, T* threshold,
                   int64_t* partner) const;
  void find_in_tree(const T* x, const bool* mask, const uint8_t* chosen, T* threshold,
                    int64_t* partner);
  void read_graph(const T* x, const bool* mask, const uint8_t* chosen);
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

/// The gradient of Difference::kThresholds; `pass.bits` is what forward wrote.
template <class T>
BackwardReport threshold_backward(const EstimatorSettings& settings, const Solver& solver,
                                  const Examples<T>& examples, const BackwardPass<T>& pass,
                                  const Executor& executor);

}  // namespace aimle
