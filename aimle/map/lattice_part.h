// The part of a lattice that a row uses, as groups of threads (cuda/group.h) go through it.
//
// Cells of an anti-diagonal depend only on the two before it, and cells of a row only on the row
// before if no move goes right: the threads of a group process such a wave of cells together, with
// a sync after each. A single thread goes from row to row.
#pragma once

#include <cstdint>

#include "aimle/base/host_device.h"
#include "aimle/map/lattice_path.h"

namespace aimle::detail {

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

/// The part of a lattice up to its last corner; its cells keep their indices of the whole.
struct LatticePart {
  int32_t height = 0;
  int32_t width = 0;
  int32_t pitch = 0;
  bool by_rows = false;

  AIMLE_EITHER int32_t waves() const { return by_rows ? height : height + width - 1; }
  AIMLE_EITHER int32_t last_cell() const { return (height - 1) * pitch + width - 1; }
  AIMLE_EITHER int32_t before(int32_t cell, int m) const {
    return cell - (m != 2 ? pitch : 0) - (m != 1 ? 1 : 0);
  }

  /// Calls body(t, u) for this thread's cells of wave k.
  template <class Group, class Body>
  AIMLE_EITHER void each_of_wave(const Group& group, int32_t k, const Body& body) const {
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
  AIMLE_EITHER void forward(Group& group, const Body& body) const {
    if (group.size() == 1) {
      for (int32_t t = 0; t < height; ++t) {
        for (int32_t u = 0; u < width; ++u) body(t, u);
      }
      return;
    }
    for (int32_t k = 0; k < waves(); ++k) {
      each_of_wave(group, k, body);
      group.sync();
    }
  }
  /// The same, successors first.
  template <class Group, class Body>
  AIMLE_EITHER void backward(Group& group, const Body& body) const {
    if (group.size() == 1) {
      for (int32_t t = height - 1; t >= 0; --t) {
        for (int32_t u = width - 1; u >= 0; --u) body(t, u);
      }
      return;
    }
    for (int32_t k = waves() - 1; k >= 0; --k) {
      each_of_wave(group, k, body);
      group.sync();
    }
  }
};

/// The extent of the unmasked part. Synchronises.
template <int kPerCell, class Group>
AIMLE_EITHER LatticePart part_of(Group& group, const LatticeShape& lattice, const bool* mask) {
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

}  // namespace aimle::detail
