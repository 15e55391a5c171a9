// From distances to the path: going backwards from target to source by GridPath's tie rule
// (grid_path.h), and the padded layout shared with the searches. Not part of the public API.
#pragma once

#include <cstdint>
#include <vector>

#include "aimle/map/grid_path.h"

namespace aimle::detail {

/// A grid with a border of walls, so that no step needs a bounds check. Cell (r, c) is at
/// (r + 1) * pitch + c + 1 cells; pitch is width + 1 because one border column serves both the
/// right end of a row and the left end of the next. A cell has `lanes` entries, one per parallel
/// grid; indices and steps count entries, and a grid's arrays begin at its lane.
struct PaddedGrid {
  explicit PaddedGrid(const GridPath& solver, int32_t lanes = 1);

  int32_t lanes;
  int32_t height;
  int32_t width;
  int32_t pitch;
  int32_t size;
  int32_t source;
  int32_t target;
  int neighbours;
  int32_t step[8];  // to the neighbours, in raster order
  /// The same in a row of scores.
  int32_t raster_target;
  int32_t raster_step[8];
};

/// Goes backwards from the target over tight predecessors. While a cell has only one, that is the
/// step; at the first cell with several, one breadth-first search over tight predecessors
/// determines which of them are on a path with the fewest cells.
template <class T>
class GridWalk {
 public:
  explicit GridWalk(const PaddedGrid& grid);

  /// Sets z to 1 on the path; z initially is zeros, [height * width]. `cost` and `distance` are
  /// padded, infinite on walls and on the border. Every cell on a tight path from source to target
  /// must have its exact distance, every other one at least its distance; the target's is finite.
  void write_path(const T* cost, const T* distance, T* z) {
    write_path_from(grid_.target, grid_.raster_target, cost, distance, z);
  }
  /// The rest of a walk that has reached `cell`.
  void write_path_from(int32_t cell, int32_t raster_cell, const T* cost, const T* distance, T* z);

 private:
  /// The first neighbour, from the i-th on, that the walk may take; `neighbours` if there is none.
  int next_way(int32_t cell, int i, const T* cost, const T* distance) const;
  void find_fewest_cells(int32_t from, const T* cost, const T* distance);
  void forget_fewest_cells();

  const PaddedGrid& grid_;
  /// Steps to the start of the search, kept only on paths with the fewest cells; otherwise kUnseen.
  std::vector<int32_t> steps_;
  std::vector<int32_t> seen_;
};

extern template class GridWalk<float>;
extern template class GridWalk<double>;

}  // namespace aimle::detail
