// GridPath by a group of threads: distances by sweeps over all cells, then the walk backwards
// (map/grid_path.h has the problem and the tie rule).
//
// The distances are the unique solution of d(v) = min over neighbours u of fl(d(u) + c(v)),
// d(source) = c(source), in which every d is the rounded sum along some path. A sweep replaces
// every d(v) by the right-hand side if that is less. Rounding is monotone: a <= b implies fl(a + c)
// <= fl(b + c), so after t sweeps, in any order, d(v) is the smallest rounded sum along paths of up
// to t steps. Since c >= 0 makes no sum smaller than its parts, the fixed point is what Dijkstra
// computes on the CPU, bit for bit. A sweep whose changes are all beyond the target's distance is
// the last: everything that follows from them is beyond it too.
//
// Each thread reads one array and writes another, so that a sweep needs one barrier; the number of
// sweeps, O(HW / threads) each, is that of the cells of the longest path. Large grids are swept in
// place, alternately down and up: a thread may read values of this sweep or of the previous one,
// and the result is the same; most of a path is then covered by the sweep in its direction.
//
// Thread 0 walks backwards. At the first cell with several tight predecessors all threads count the
// cells from the source over tight steps, level by level, and the walk continues by those counts.
#pragma once

#include <cstdint>

#include "aimle/cuda/group.h"
#include "aimle/map/grid_path.h"

namespace aimle::cuda {

/// A grid with a border of walls, like detail::PaddedGrid (map/grid_walk.h): cell (r, c) is at
/// (r + 1) * pitch + c + 1, pitch = width + 1.
struct GridShape {
  int32_t height;
  int32_t width;
  int32_t pitch;
  int32_t padded;  // entries of a padded array
  int32_t source;  // padded, as is the next
  int32_t target;
  int32_t raster_target;
  bool straight;  // 4 neighbours
  bool refuse_negative;
};

inline GridShape grid_shape(const GridPath& solver) {
  const auto height = static_cast<int32_t>(solver.height);
  const auto width = static_cast<int32_t>(solver.width);
  const auto padded = [&](int64_t cell) {
    const auto at = static_cast<int32_t>(cell);
    return (at / width + 1) * (width + 1) + at % width + 1;
  };
  return {.height = height,
          .width = width,
          .pitch = width + 1,
          .padded = (height + 2) * (width + 1) + 1,
          .source = padded(solver.source_cell()),
          .target = padded(solver.target_cell()),
          .raster_target = static_cast<int32_t>(solver.target_cell()),
          .straight = solver.neighbourhood == 4,
          .refuse_negative = solver.negative == GridPath::Negative::kError};
}

/// Memory of one row, all arrays padded: cost and two distances, then the counts of cells.
template <class T>
struct GridScratch {
  T* cost;
  T* distance;
  T* other;
  int32_t* cells;

  static int64_t bytes(int64_t padded) {
    const int64_t size = padded * static_cast<int64_t>(3 * sizeof(T) + sizeof(int32_t));
    return (size + 15) / 16 * 16;
  }
  AIMLE_DEVICE static GridScratch at(void* memory, int64_t padded) {
    T* cost = static_cast<T*>(memory);
    return {cost, cost + padded, cost + 2 * padded, reinterpret_cast<int32_t*>(cost + 3 * padded)};
  }
};

namespace detail {

template <class T>
AIMLE_DEVICE T infinity() {
  return static_cast<T>(__builtin_huge_val());
}

template <class T>
AIMLE_DEVICE T lesser(T a, T b) {
  return a < b ? a : b;
}

/// Calls visit(u, raster step) for the neighbours of v in raster order, until it returns true.
template <bool kStraight, class Visit>
AIMLE_DEVICE bool any_neighbour(const GridShape& grid, int32_t v, Visit visit) {
  for (int32_t r = -1; r <= 1; ++r) {
    for (int32_t c = -1; c <= 1; ++c) {
      if ((r == 0 && c == 0) || (kStraight && r != 0 && c != 0)) continue;
      if (visit(v + r * grid.pitch + c, r * grid.width + c)) return true;
    }
  }
  return false;
}

/// The least distance of a neighbour.
template <bool kStraight, class T>
AIMLE_DEVICE T nearest(const GridShape& grid, const T* distance, int32_t v) {
  const T* above = distance + v - grid.pitch;
  const T* here = distance + v;
  const T* below = distance + v + grid.pitch;
  T least = lesser(lesser(above[0], below[0]), lesser(here[-1], here[1]));
  if constexpr (!kStraight) {
    least = lesser(least, lesser(above[-1], above[1]));
    least = lesser(least, lesser(below[-1], below[1]));
  }
  return least;
}

/// Padded cells with walls and border, as loops over them run: from the first cell to the last.
AIMLE_DEVICE int32_t first_cell(const GridShape& grid) { return grid.pitch + 1; }
AIMLE_DEVICE int32_t end_of_cells(const GridShape& grid) { return (grid.height + 1) * grid.pitch; }

template <class T, class Group, class Scores>
AIMLE_DEVICE Status read_costs(Group& group, const GridShape& grid, const Scores& scores,
                               const bool* mask, const GridScratch<T>& scratch) {
  const T inf = infinity<T>();
  for (int32_t v = group.rank(); v < grid.padded; v += group.size()) {
    const int32_t row = v / grid.pitch - 1, column = v % grid.pitch - 1;
    scratch.distance[v] = scratch.other[v] = inf;
    if (row < 0 || row >= grid.height || column < 0) scratch.cost[v] = inf;
  }
  uint32_t worst = 0;
  scores.for_each(group.rank(), group.size(), [&](int64_t at, T x) {
    const auto cell = static_cast<int32_t>(at);
    const int32_t row = cell / grid.width;
    if (mask != nullptr && !mask[cell]) x = inf;
    if (x < 0) worst = worst > 1 ? worst : 1;
    if (x != x) worst = 2;
    scratch.cost[(row + 1) * grid.pitch + cell - row * grid.width + 1] = x > 0 ? x : T{0};
  });
  worst = group.max(worst);
  if (worst == 2) return Status::kNaN;
  return worst == 1 && grid.refuse_negative ? Status::kNegativeCost : Status::kOk;
}

/// Sweeps over all cells until nothing relevant changes: values beyond the target's lead to nothing
/// below it. `update(values, v)` returns the new value of cell v, at most the old one.
template <bool kInPlace, class Value, class Group, class Update>
AIMLE_DEVICE void sweep_to_rest(Group& group, const GridShape& grid, Value*& values, Value*& other,
                                const Update& update) {
  const int32_t first = first_cell(grid), last = end_of_cells(grid) - 1;
  bool again = true, upwards = false;
  while (again) {
    const Value limit = values[grid.target];
    bool changed = false;
    for (int32_t i = group.rank(); i <= last - first; i += group.size()) {
      const int32_t v = upwards ? last - i : first + i;
      const Value before = values[v], after = update(values, v);
      changed |= after < before && after <= limit;
      if constexpr (kInPlace) {
        if (after < before) values[v] = after;
      } else {
        other[v] = after;
      }
    }
    again = group.any(changed);
    if constexpr (kInPlace) {
      upwards = !upwards;
    } else {
      Value* const swept = other;
      other = values;
      values = swept;
    }
  }
}

/// Fills `scratch.distance`; `scratch.other` is free afterwards.
template <bool kStraight, bool kInPlace, class T, class Group>
AIMLE_DEVICE void fill_distances(Group& group, const GridShape& grid, GridScratch<T>& scratch) {
  if (group.rank() == 0) scratch.distance[grid.source] = scratch.cost[grid.source];
  group.sync();
  sweep_to_rest<kInPlace>(
      group, grid, scratch.distance, scratch.other, [&](const T* distance, int32_t v) {
        const T through = nearest<kStraight>(grid, distance, v) + scratch.cost[v];
        return lesser(through, distance[v]);
      });
}

/// cells(v) over tight steps from the source, up to the target's. In `scratch.cells`, which may be
/// swapped with `scratch.other`.
template <bool kStraight, bool kInPlace, class T, class Group>
AIMLE_DEVICE void count_cells(Group& group, const GridShape& grid, GridScratch<T>& scratch) {
  constexpr int32_t kUnseen = 0x3fffffff;
  const T* const distance = scratch.distance;
  auto* other = reinterpret_cast<int32_t*>(scratch.other);
  for (int32_t v = group.rank(); v < grid.padded; v += group.size()) {
    scratch.cells[v] = other[v] = v == grid.source ? 1 : kUnseen;
  }
  group.sync();
  sweep_to_rest<kInPlace>(group, grid, scratch.cells, other, [&](const int32_t* cells, int32_t v) {
    int32_t least = cells[v];
    // Without writes in place the first count of a cell is its last.
    if ((!kInPlace && least != kUnseen) || !(distance[v] < infinity<T>())) return least;
    const T cost = scratch.cost[v];
    any_neighbour<kStraight>(grid, v, [&](int32_t u, int32_t) {
      if (cells[u] + 1 < least && distance[u] + cost == distance[v]) least = cells[u] + 1;
      return false;
    });
    return least;
  });
}

/// Walks backwards from `at` while the step is unique, calling chosen for the cells it reaches;
/// returns where it stopped.
template <bool kStraight, bool kCounted, class T, class Chosen>
AIMLE_DEVICE int32_t walk(const GridShape& grid, const GridScratch<T>& scratch, int32_t at,
                          Chosen chosen) {
  int32_t raster = (at / grid.pitch - 1) * grid.width + at % grid.pitch - 1;
  while (at != grid.source) {
    const T cost = scratch.cost[at], distance = scratch.distance[at];
    int32_t next = -1, next_raster = 0, ways = 0;
    any_neighbour<kStraight>(grid, at, [&](int32_t u, int32_t step) {
      bool tight = scratch.distance[u] + cost == distance;
      if constexpr (kCounted) tight = tight && scratch.cells[u] + 1 == scratch.cells[at];
      if (tight && ways++ == 0) {
        next = u;
        next_raster = raster + step;
      }
      return kCounted && ways > 0;
    });
    if (!kCounted && ways > 1) break;
    at = next;
    raster = next_raster;
    chosen(raster);
  }
  return at;
}

template <bool kStraight, bool kInPlace, class T, class Group, class Scores, class Chosen>
AIMLE_DEVICE Status solve_grid(Group& group, const GridShape& grid, const Scores& scores,
                               const bool* mask, GridScratch<T> scratch, Chosen chosen) {
  const Status status = read_costs(group, grid, scores, mask, scratch);
  if (status != Status::kOk) return status;
  fill_distances<kStraight, kInPlace>(group, grid, scratch);
  if (scratch.distance[grid.target] == infinity<T>()) return Status::kDisconnected;
  uint32_t stopped = 0;
  if (group.rank() == 0) {
    chosen(grid.raster_target);
    stopped = static_cast<uint32_t>(walk<kStraight, false>(grid, scratch, grid.target, chosen));
  }
  const auto at = static_cast<int32_t>(group.max(stopped));
  if (at == grid.source) return Status::kOk;
  count_cells<kStraight, kInPlace>(group, grid, scratch);
  if (group.rank() == 0) walk<kStraight, true>(grid, scratch, at, chosen);
  group.sync();
  return Status::kOk;
}

}  // namespace detail

/// The path of one row. `scores.for_each(rank, threads, body)` calls body(cell, cost) for a
/// thread's share of the cells; `mask` is the row's or null; `chosen(cell)` is called once for
/// every cell of the path, by thread 0. Ends with a sync.
template <bool kInPlace = false, class T, class Group, class Scores, class Chosen>
AIMLE_DEVICE Status solve_grid(Group& group, const GridShape& grid, const Scores& scores,
                               const bool* mask, GridScratch<T> scratch, Chosen chosen) {
  if (grid.straight) {
    return detail::solve_grid<true, kInPlace>(group, grid, scores, mask, scratch, chosen);
  }
  return detail::solve_grid<false, kInPlace>(group, grid, scores, mask, scratch, chosen);
}

}  // namespace aimle::cuda
