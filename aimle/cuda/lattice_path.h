// The best path through a lattice by a group of threads (map/lattice_path.h has the definition).
//
// The threads of a group process a wave of cells together (map/lattice_part.h). Sums replace the
// scores in the row's memory.
#pragma once

#include <cstdint>

#include "aimle/cuda/group.h"
#include "aimle/map/lattice_part.h"

namespace aimle::cuda {

using aimle::detail::lattice_shape;
using aimle::detail::LatticeShape;

namespace detail {

using aimle::detail::LatticePart;
using aimle::detail::part_of;

/// a + x, or a wall if one of them is.
template <class T>
AIMLE_DEVICE T add_score(T a, T x) {
  const T wall = -static_cast<T>(__builtin_huge_val());
  const T sum = a + x;
  return sum > wall ? sum : wall;
}

/// One cell: the best sum by an allowed move, and the first of the best moves.
template <bool kPerMove, class T>
struct LatticeCells {
  LatticePart part;
  uint32_t moves;
  T* table;  // [cells] of sums, or [cells, 3]: the sum, and the move into the cell

  AIMLE_DEVICE T sum_of(int32_t cell) const { return table[kPerMove ? 3 * cell : cell]; }

  /// Calls way(m) for the moves into (t, u), and keeps the first of the largest.
  template <class Way>
  AIMLE_DEVICE T best(int32_t t, int32_t u, int& move, const Way& way) const {
    T best = -static_cast<T>(__builtin_huge_val());
    move = 0;
    for (int m = 0; m < 3; ++m) {
      if ((moves >> m & 1) == 0 || (t == 0 && m != 2) || (u == 0 && m != 1)) continue;
      const T sum = way(m);
      if (sum > best) {
        best = sum;
        move = m;
      }
    }
    return best;
  }
  AIMLE_DEVICE T best_before(int32_t t, int32_t u, int& move) const {
    const int32_t cell = t * part.pitch + u;
    return best(t, u, move, [&](int m) { return sum_of(part.before(cell, m)); });
  }

  AIMLE_DEVICE void enter(int32_t t, int32_t u) const {
    const int32_t cell = t * part.pitch + u;
    int move;
    if constexpr (kPerMove) {
      const T sum = best(t, u, move, [&](int m) {
        return add_score(sum_of(part.before(cell, m)), table[3 * cell + m]);
      });
      table[3 * cell] = cell == 0 ? T(0) : sum;
      table[3 * cell + 1] = static_cast<T>(move);
    } else {
      const T sum = cell == 0 ? T(0) : best_before(t, u, move);
      table[cell] = add_score(sum, table[cell]);
    }
  }

  AIMLE_DEVICE int move_into(int32_t t, int32_t u) const {
    int move;
    if constexpr (kPerMove) {
      move = static_cast<int>(table[3 * (t * part.pitch + u) + 1]);
    } else {
      best_before(t, u, move);
    }
    return move;
  }

  template <class Chosen>
  AIMLE_DEVICE void walk_back(const Chosen& chosen) const {
    int32_t t = part.height - 1, u = part.width - 1;
    while (t > 0 || u > 0) {
      const int32_t cell = t * part.pitch + u;
      const int move = move_into(t, u);
      chosen(kPerMove ? 3 * cell + move : cell);
      t -= move != 2;
      u -= move != 1;
    }
    if constexpr (!kPerMove) chosen(0);
  }
};

}  // namespace detail

/// The path of one row. `scores.for_each(rank, threads, body)` calls body(entry, score) for a
/// thread's share of the entries; `mask` is the row's or null; `table` has space for the entries of
/// the row; `chosen(entry)` is called once for every entry of the path, by thread 0. Ends with a
/// sync.
template <bool kPerMove, class T, class Group, class Scores, class Chosen>
AIMLE_DEVICE Status solve_lattice(Group& group, const LatticeShape& lattice, const Scores& scores,
                                  const bool* mask, T* table, const Chosen& chosen) {
  const T wall = -static_cast<T>(__builtin_huge_val());
  bool nan = false;
  scores.for_each(group.rank(), group.size(), [&](int64_t j, T x) {
    if (mask != nullptr && !mask[j]) x = wall;
    nan |= x != x;
    table[j] = x;
  });
  if (group.any(nan)) return Status::kNaN;
  const detail::LatticePart part = detail::part_of < kPerMove ? 3 : 1 > (group, lattice, mask);
  if (part.height == 0) return Status::kDisconnected;
  const detail::LatticeCells<kPerMove, T> cells{part, lattice.moves, table};
  part.forward(group, [&](int32_t t, int32_t u) { cells.enter(t, u); });
  if (cells.sum_of(part.last_cell()) == wall) return Status::kDisconnected;
  if (group.rank() == 0) cells.walk_back(chosen);
  group.sync();
  return Status::kOk;
}

}  // namespace aimle::cuda
