// Chain: the best label sequence y of a chain of `length` positions with `labels` labels each, from
// scores of the edges between neighbouring positions (a linear-chain CRF; Viterbi).
//
//   z = argmax over sequences y of sum over t of x[t, y_t, y_t+1],   t = 0 ... length - 2
//   z[t, i, j] = 1 where y_t = i and y_t+1 = j, else 0
//
// A row is [length - 1, labels, labels] in row-major order. z has one edge per position, and
// consecutive edges agree in the label they share. Scores of labels (emissions) are folded into
// edges first: `aimle.chain_scores` in Python. A chain of length 1 has no edges: its row is empty.
//
// Sums run from the first position to the last, rounded in the type of the scores at every step:
//   d_0(i) = 0;  d_t+1(j) = max over i of fl(d_t(i) + x[t, i, j]).
// Ties: the lowest last label j with the largest d; then, going backwards, the lowest label i with
// fl(d_t(i) + x[t, i, j]) = d_t+1(j).
//
// Masked edges, and scores of -inf, are never chosen. If they leave no sequence the row is
// kDisconnected; a sum that overflows to -inf counts as none. NaN in an unmasked edge is kNaN,
// which takes precedence over kDisconnected. +inf is larger than every number.
//
// A mask can shorten chains: trailing positions whose edges are all masked are past the end of the
// chain, and z is zero there. A fully masked row is a chain of length 1: z is zero, and the row is
// kOk. Scores of -inf do not shorten a chain.
//
// O(length labels^2) time, O(length labels) memory besides the row; the columns j of a step are
// spread over the lanes of vectors.
//
//   aimle::solve(aimle::Chain{.length = 12, .labels = 5}, rows);
#pragma once

#include "aimle/map/map.h"

namespace aimle {

struct Chain {
  static constexpr std::string_view kName = "chain";
  static constexpr Sense kSense = Sense::kMax;
  static constexpr int64_t kInstanceDims = 3;
  static constexpr int64_t kMaxLength = int64_t{1} << 30;
  /// A label fits into 16 bits.
  static constexpr int64_t kMaxLabels = 65'536;

  int64_t length = 0;
  int64_t labels = 0;

  int64_t steps() const { return length - 1; }
  int64_t edges_per_step() const { return labels * labels; }
  int64_t size() const { return steps() * edges_per_step(); }
  double work_ns() const { return 100.0 + 0.5 * static_cast<double>(size()); }
  /// The number follows from the row's mask.
  SolutionSize solution_size() const { return {.fixed = true}; }
  void validate() const;
  /// In ascending order of the labels, the last position fastest.
  std::vector<uint8_t> structures() const;
  double structure_count() const;
  /// For the thresholds of its entries (swap_finder.h).
  template <class T>
  std::unique_ptr<SwapFinder<T>> swap_finder() const;

  static void declare(Declaration<Chain>& solver);
  void fit(Shape instance);
  /// `n` is used for what the settings leave open.
  std::vector<int64_t> shape_for(int64_t n) const {
    const int64_t open = labels > 0 ? labels : n;
    return {(length > 0 ? length : n) - 1, open, open};
  }
};

void solve_rows(const Chain& solver, const Rows<float>& rows);
void solve_rows(const Chain& solver, const Rows<double>& rows);

/// The steps of a row up to the last one with an unmasked edge.
inline int64_t chain_steps(int64_t steps, int64_t edges_per_step, const bool* mask) {
  if (mask == nullptr) return steps;
  int64_t entries = steps * edges_per_step;
  while (entries > 0 && !mask[entries - 1]) --entries;
  return (entries + edges_per_step - 1) / edges_per_step;
}

}  // namespace aimle
