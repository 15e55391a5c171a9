// The loops over the entries of one row for thresholds, for the instruction set in use.
//
// The same source is compiled for every instruction set (threshold_loops.h) and gives the same bits
// on each. Private to aimle/estimate.
#pragma once

#include <cstdint>
#include <type_traits>

#include "aimle/estimate/fixed_sum.h"
#include "aimle/estimate/passes.h"
#include "aimle/estimate/target.h"

namespace aimle {

/// A flag per entry: all ones, or zero.
using Flag = uint64_t;

/// How a row compares with its two rivals: the threshold and the gain of the partner, for entries
/// that are in and for those that are out. If it is not `met`, an entry has no weight.
struct Meeting {
  double threshold = 0.0;
  double gain = 0.0;
  bool met = false;
};

/// Values shared by the samples of an example.
template <class T>
struct ThresholdExample {
  const T* theta;
  int64_t n;
  const Flag* free;  // null: all are
  double sign;       // of theta in the scores
  double tau;
  double shift = 0.0;  // subtracted from the scores, to centre their noise
};

/// A sample of argmax or top-k, whose entries all have the same two rivals.
template <class T>
struct RowSwaps {
  Meeting in;
  Meeting out;
  const uint8_t* bits;  // its solution
  const T* d;           // its gradient
};

/// A row of argmax or top-k.
template <class T>
struct ThresholdRow {
  ThresholdExample<T> example;
  RowSwaps<T> swaps;
  KeptRivals rivals;
  const T* x;        // [n] its scores; null: the rivals are known
  const bool* mask;  // [n] or null
  int64_t chosen;    // entries in a solution
  bool solved;       // whether it has one
};

/// A sample whose entries have one threshold each.
struct EachSwaps {
  double* difference;  // the change of <d, z> by the entry, 0 if there is no weight
  Flag* valid;         // whether there is one
};

/// Rows are laid out in groups of four entries, with the last one of a row padded: padding is
/// neither in nor valid.
inline constexpr int64_t kThresholdGroup = 4;
constexpr int64_t whole_groups(int64_t n) {
  return (n + kThresholdGroup - 1) / kThresholdGroup * kThresholdGroup;
}

/// The solutions of rows, packed, one after the other. Values per entry are in rows of `stride`
/// numbers, whole groups.
struct SolutionRows {
  const uint8_t* bits;
  int64_t count;
  int64_t n;
  int64_t stride;
};

/// The effect of the cap, as counts of weights and sums over entries; entry j of every sample goes
/// to partial sum j mod 32 (fixed_sum.h).
struct CappedPartials {
  int64_t weights = 0;
  int64_t capped = 0;
  alignas(64) double mass[kSumLanes] = {};  // of w |d_j - d_m| without the cap
  alignas(64) double lost[kSumLanes] = {};  // the part removed by the cap
};

/// The same, summed.
struct CappedTotals {
  int64_t weights = 0;
  int64_t capped = 0;
  double mass = 0.0;
  double lost = 0.0;
};

/// An edge of a graph as one number, larger is better: its weight, mapped to integers in the same
/// order, in the upper bits, and its index, with lower ones larger, in the lower bits.
__extension__ using WideEdgeNumber = __int128;
template <class T>
using EdgeNumber = std::conditional_t<std::is_same_v<T, float>, int64_t, WideEdgeNumber>;
template <class T>
inline constexpr EdgeNumber<T> kNoEdge = EdgeNumber<T>{1} << (8 * sizeof(EdgeNumber<T>) - 1);
template <class Number>
[[gnu::always_inline]] inline uint32_t edge_of(Number number) {
  return ~static_cast<uint32_t>(number);
}
template <class T>
[[gnu::always_inline]] inline T weight_of(EdgeNumber<T> number) {
  using Bits = std::conditional_t<std::is_same_v<T, float>, int32_t, int64_t>;
  constexpr int kSign = 8 * sizeof(Bits) - 1;
  const auto ordered = static_cast<Bits>(number >> 32);
  return __builtin_bit_cast(T, ordered ^ ((ordered >> kSign) & ~(Bits{1} << kSign)));
}

/// A tree from vertex 0 on, parents before their children. Rows by vertex are `stride` long, a
/// multiple of 8, those of ranks `rank_stride`, a multiple of 32, and sets of vertices have `words`
/// words.
struct TreeWalk {
  int64_t vertices;
  int64_t stride;
  int64_t rank_stride;
  int64_t words;
  const int64_t* vertex;  // [vertices] in the order of the walk
  const int64_t* parent;  // [vertices] of the vertex at a place of the walk, from place 1 on
  const uint64_t* below;  // [vertices, words] the vertices below a vertex, itself included
};

/// The place of an edge of a tree among its edges, the lightest first.
using EdgeRank = uint16_t;
inline constexpr EdgeRank kNoRank = 0xffff;
/// Tables by rank have space for at least this many.
inline constexpr int64_t kLeastRanks = 32;

/// The edges of a tree by rank: their weights, and what they gain.
template <class T>
struct RankedEdges {
  const T* weight;
  const double* gain;
};

/// A step of a chain, [labels, labels] each; rows of numbers by label are `stride` long, a multiple
/// of 8.
template <class T>
struct ChainStep {
  int64_t labels;
  int64_t stride;
  const T* x;
  const bool* mask;  // or null
  const T* d;
};

/// A label sequence, or part of one: the sum of its scores, and that of its d.
struct ChainSum {
  double score = 0.0;
  double gain = 0.0;
};

/// By label, those of the best parts that end, or begin, with it.
struct ChainSums {
  const double* score;
  const double* gain;
};

/// Lattices of the same size, one per lane (ThresholdKernels::lattice_lanes). What belongs to an
/// entry or cell of all of them is contiguous.
template <class T>
struct LatticeGroup {
  int64_t height;
  int64_t width;
  uint32_t moves;               // bit m: move m is allowed
  const T* x;                   // [entries, lanes], -inf if masked
  const T* d;                   // [entries, lanes]
  const uint8_t* chosen;        // [entries] bit i: the entry is in the solution of lattice i
  const uint8_t* corner;        // [cells] bit i: the cell is the last one of lattice i
  const double* solution;       // [lanes] the sum of x over it
  const double* solution_gain;  // [lanes] the sum of d
  double* memory;               // lattice_numbers(height, width)
  // Results. Thresholds, not finite if there is none, and differences are those of entries that
  // are out, in rows `stride` numbers apart, one per lattice.
  double* threshold;
  double* difference;
  int64_t stride;
  double* other;       // [height + width, lanes] of the best path that avoids the solution's entry
  double* other_gain;  // [height + width, lanes]
};

template <class T>
struct ThresholdKernels {
  /// free_j: whether j is allowed and not infinite. Returns their number; if all, writes nothing.
  int64_t (*find_free)(const T* theta, const bool* mask, int64_t n, Flag* free);

  /// The number of set bits among n.
  int64_t (*count_in)(const uint8_t* bits, int64_t n);

  /// Writes the rivals of `count` rows, n < 2^31, all with the same mask.
  void (*keep_rivals)(const T* x, const bool* mask, const uint8_t* bits, int64_t n, int64_t count,
                      std::byte* out);

  /// Determines which are solved, their rivals, and their u: (t - theta) / tau, 0 if an entry has
  /// no weight.
  void (*meet)(ThresholdRow<T>* rows, int64_t count, int64_t stride, double* u);

  /// The same for entries with one threshold each, infinite or NaN if there is none, and whose
  /// differences are set; clears those that do not count. `u` initially contains the thresholds.
  void (*meet_each)(const ThresholdExample<T>& example, const EachSwaps& swaps, double* u);

  /// Turns u of rows into weights before the cap; `scratch` has space for eight more numbers.
  /// Returns whether one exceeds the cap.
  bool (*weigh)(const ThresholdTarget& target, const SolutionRows& rows, double* u,
                double* scratch);

  /// sum_j += factor min(w_j, max_weight) (d_j - d_m) for a row; `exceeds` is the result of weigh.
  /// Processes `count` rows; returns how many are solved. Without a solution the sum is NaN.
  int64_t (*add)(const ThresholdTarget& target, bool exceeds, const ThresholdRow<T>* rows,
                 int64_t count, int64_t stride, const double* weight, CappedPartials& capped,
                 double* sum);
  void (*add_each)(const ThresholdTarget& target, bool exceeds, const EachSwaps& swaps,
                   const double* weight, int64_t n, CappedPartials& capped, double* sum);

  /// Adds up the partial sums and clears them.
  CappedTotals (*drain)(CappedPartials& capped);

  /// out_j = scale (sum_j - their mean) over the free entries, 0 elsewhere; sum_j = 0. The mean is
  /// only subtracted if `centred`. Returns how many free results are zero.
  int64_t (*write_gradient)(double* sum, const Flag* free, int64_t free_count, bool centred,
                            double scale, int64_t n, T* out);

  /// The numbers of the edges 0, 1, ...
  void (*number_edges)(const T* weight, int64_t edges, EdgeNumber<T>* out);

  /// out[v, w] = out[w, v] = the number of their edge; kNoEdge for v = w.
  void (*spread_edges)(const TreeWalk& tree, const EdgeNumber<T>* number, EdgeNumber<T>* out);

  /// best[i] = the heaviest edge from below vertex i of the walk to the rest, where heavy[v, w] is
  /// the edge between two vertices; overwrites the latter.
  void (*sweep_up)(const TreeWalk& tree, EdgeNumber<T>* heavy, EdgeNumber<T>* best);

  /// rank[i] = how many of the `count` numbers are less than the i-th.
  void (*rank_edges)(const EdgeNumber<T>* number, int64_t count, EdgeRank* rank);

  /// lightest[v, w] = the rank of the lightest edge between two vertices, where rank[i] is that of
  /// the edge from vertex i of the walk to its parent. Its diagonal is kNoRank.
  void (*find_paths)(const TreeWalk& tree, const EdgeRank* rank, EdgeRank* lightest);

  /// The weight of the lightest edge between the ends of every edge, and d_e - its gain, a T.
  void (*write_paths)(const TreeWalk& tree, const EdgeRank* lightest, const RankedEdges<T>& edges,
                      const T* d, double* threshold, double* difference);

  /// after_j = max over i of before_i + x_ij, from_j = the lowest i of the largest; `wide` has
  /// space for [labels, stride].
  void (*step_forward)(const ChainStep<T>& step, double* wide, const double* before, double* after,
                       int64_t* from);
  /// before_i = max over j of x_ij + after_j, to_i = the lowest j of the largest. after_j is -inf
  /// from `labels` on.
  void (*step_back)(const ChainStep<T>& step, double* wide, const double* after, double* before,
                    int64_t* to);
  /// Threshold and difference of edges that are out.
  void (*write_step)(const ChainStep<T>& step, const ChainSums& prefix, const ChainSums& suffix,
                     const ChainSum& solution, double* threshold, double* difference);

  /// How many lattices are processed together.
  int64_t lattice_lanes;
  int64_t lattice_numbers(int64_t height, int64_t width) const {
    const int64_t vectors = (height + 3) * (width + 1) + 2 * (height + width);
    return 2 * lattice_lanes * vectors;
  }
  /// out[j, lane] = rows[lane][j] for j < n.
  void (*interleave)(const T* const* rows, int64_t n, T* out);
  /// With a score for every cell, or for every move.
  void (*find_lattices_of_cells)(const LatticeGroup<T>& group);
  void (*find_lattices_of_moves)(const LatticeGroup<T>& group);
};

template <class T>
const ThresholdKernels<T>& threshold_kernels();

}  // namespace aimle
