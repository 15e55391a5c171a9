// The best path through a lattice by a group of threads (map/lattice_path.h has the definition).
//
// Cells of an anti-diagonal depend only on the two before it, and cells of a row only on the row
// before if no move goes right: the threads of a group process such a wave of cells together, with
// a sync after each. Sums replace the scores in the row's memory.
#pragma once

#include <cstdint>

#include "aimle/cuda/group.h"
#include "aimle/map/lattice_path.h"

namespace aimle::cuda {

struct LatticeShape {
  int32_t height;
  int32_t width;
  uint32_t moves;  // bit m: move m is allowed

  /// Waves are rows rather than anti-diagonals.
  AIMLE_HD bool by_rows() const { return (moves & 4) == 0; }
  /// The maximum number of cells of a wave.
  int32_t longest_wave() const { return by_rows() || width < height ? width : height; }
};

template <LatticeScores kScores>
LatticeShape lattice_shape(const Lattice<kScores>& solver) {
  return {static_cast<int32_t>(solver.height), static_cast<int32_t>(solver.width),
          static_cast<uint32_t>(solver.moves)};
}

namespace detail {

/// The part of a lattice up to its last corner; its cells keep their indices of the whole.
struct LatticePart {
  int32_t height = 0;
  int32_t width = 0;
  int32_t pitch = 0;
  bool by_rows = false;

  AIMLE_DEVICE int32_t waves() const { return by_rows ? height : height + width - 1; }
  AIMLE_DEVICE int32_t last_cell() const { return (height - 1) * pitch + width - 1; }
  AIMLE_DEVICE int32_t before(int32_t cell, int m) const {
    return cell - (m != 2 ? pitch : 0) - (m != 1 ? 1 : 0);
  }

  /// Calls body(t, u) for this thread's cells of wave k.
  template <class Group, class Body>
  AIMLE_DEVICE void each_of_wave(const Group& group, int32_t k, const Body& body) const {
    const int32_t first = by_rows || k < width ? 0 : k - width + 1;
    const int32_t end = by_rows ? width : (k < height ? k + 1 : height);
    for (int32_t i = first + group.rank(); i < end; i += group.size()) {
      if (by_rows) {
        body(k, i);
      } else {
        body(i, k - i);
      }
    }
  }

  /// body(t, u) for all cells, predecessors first. Ends with a sync.
  template <class Group, class Body>
  AIMLE_DEVICE void forward(Group& group, const Body& body) const {
    for (int32_t k = 0; k < waves(); ++k) {
      each_of_wave(group, k, body);
      group.sync();
    }
  }
  /// The same, successors first.
  template <class Group, class Body>
  AIMLE_DEVICE void backward(Group& group, const Body& body) const {
    for (int32_t k = waves() - 1; k >= 0; --k) {
      each_of_wave(group, k, body);
      group.sync();
    }
  }
};

/// The extent of the unmasked part. Synchronises.
template <int kPerCell, class Group>
AIMLE_DEVICE LatticePart part_of(Group& group, const LatticeShape& lattice, const bool* mask) {
  if (mask == nullptr) return {lattice.height, lattice.width, lattice.width, lattice.by_rows()};
  uint32_t height = 0, width = 0;
  const int32_t entries = lattice.height * lattice.width * kPerCell;
  for (int32_t j = group.rank(); j < entries; j += group.size()) {
    if (!mask[j]) continue;
    const auto cell = static_cast<uint32_t>(j / kPerCell);
    const auto columns = static_cast<uint32_t>(lattice.width);
    const uint32_t t = cell / columns, u = cell - t * columns;
    height = t + 1;  // they ascend
    width = u + 1 > width ? u + 1 : width;
  }
  height = group.max(height);
  width = group.max(width);
  return {static_cast<int32_t>(height), static_cast<int32_t>(width), lattice.width,
          lattice.by_rows()};
}

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
