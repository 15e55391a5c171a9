// LatticePath and LatticeMoves: the best monotone path from corner to corner of a lattice, which
// aligns two sequences.
//
//   z = argmax over indicators of paths from (0, 0) to the last corner of <x, z>
//
// A lattice has height x width cells (t, u). A path enters a cell by one of three moves, of which
// the setting `moves` allows some:
//
//   0  diagonal  from (t - 1, u - 1)     all       the three of them (dynamic time warping)
//   1  down      from (t - 1, u)         straight  down and right (transducers)
//   2  right     from (t, u - 1)         diagonal  diagonal and down: every t has exactly one u
//                                                  (monotonic alignment search, forced alignment)
// Two layouts of a row, which are two solvers:
//   LatticePath   x[t, u] is the score of a cell, and z marks the cells of the path, including both
//                 ends;
//   LatticeMoves  x[t, u, m] is the score of entering (t, u) by move m, and z marks the moves of
//                 the path. The last dimension is 3 for any `moves`. No move enters (0, 0), and the
//                 path of a 1 x 1 lattice has no move.
//
// Scores are added from the first corner on, rounded in their type at every step:
//   LatticePath   d(0, 0) = x(0, 0);  d(t, u) = fl(max over moves m of d(before m) + x(t, u))
//   LatticeMoves  d(0, 0) = 0;        d(t, u) = max over moves m of fl(d(before m) + x(t, u, m))
// Ties: the lower move wins wherever these maxima are tied, going backwards from the last corner.
//
// A mask removes cells (LatticeMoves: moves), and sets the size of a row: the last corner is that
// of the smallest rectangle from (0, 0) on that contains all unmasked cells (those with an unmasked
// move). A mask of the first T rows and U columns therefore makes a T x U lattice, and padding is
// never read; holes and bands inside are walls. Scores of -inf are also walls, but do not move the
// corner; +inf is larger than every number. Without a path to the corner (everything masked, the
// corner itself a wall, a sum that overflows to -inf) the row is kDisconnected. NaN in any unmasked
// entry is kNaN, which takes precedence.
//
// O(height width). float32 with AVX2: up to sixteen lattices in parallel across the lanes.
//
//   aimle::solve(aimle::LatticePath{.height = 40, .width = 12}, rows);
#pragma once

#include "aimle/base/host_device.h"
#include "aimle/map/map.h"

namespace aimle {

/// Whether the scores of a lattice belong to cells or moves.
enum class LatticeScores { kCells, kMoves };

template <LatticeScores kScores>
struct Lattice {
  static constexpr bool kPerMove = kScores == LatticeScores::kMoves;
  static constexpr std::string_view kName = kPerMove ? "lattice_moves" : "lattice_path";
  static constexpr Sense kSense = Sense::kMax;
  static constexpr int64_t kInstanceDims = kPerMove ? 3 : 2;
  static constexpr int64_t kPerCell = kPerMove ? 3 : 1;
  static constexpr int64_t kMaxCells = int64_t{1} << 28;
  /// Bit m: move m is allowed.
  enum class Moves : uint8_t { kDiagonal = 0b011, kStraight = 0b110, kAll = 0b111 };

  int64_t height = 0;
  int64_t width = 0;
  Moves moves = Moves::kAll;

  int64_t cells() const { return height * width; }
  int64_t size() const { return kPerCell * cells(); }
  double work_ns() const { return 20.0 + static_cast<double>(size()); }
  SolutionSize solution_size() const { return {}; }
  void validate() const;
  std::vector<uint8_t> structures() const;
  double structure_count() const;
  /// For the thresholds of its entries (swap_finder.h).
  template <class T>
  std::unique_ptr<SwapFinder<T>> swap_finder() const;

  static void declare(Declaration<Lattice>& solver);
  void fit(Shape instance);
  std::vector<int64_t> shape_for(int64_t n) const {
    const int64_t tall = moves == Moves::kDiagonal ? 2 * n : n;  // a square has one path there
    return kPerMove ? std::vector<int64_t>{tall, n, 3} : std::vector<int64_t>{tall, n};
  }
};

using LatticePath = Lattice<LatticeScores::kCells>;
using LatticeMoves = Lattice<LatticeScores::kMoves>;

extern template struct Lattice<LatticeScores::kCells>;
extern template struct Lattice<LatticeScores::kMoves>;

void solve_rows(const LatticePath& solver, const Rows<float>& rows);
void solve_rows(const LatticePath& solver, const Rows<double>& rows);
void solve_rows(const LatticeMoves& solver, const Rows<float>& rows);
void solve_rows(const LatticeMoves& solver, const Rows<double>& rows);

namespace detail {

/// The rows and columns up to the last corner of one row; none if everything is masked.
struct LatticeExtent {
  int64_t height = 0;
  int64_t width = 0;
};

/// `mask` is the row's, [height, width, per_cell], or null.
LatticeExtent lattice_extent(int64_t height, int64_t width, int64_t per_cell, const bool* mask);

}  // namespace detail
}  // namespace aimle
