#include "aimle/map/grid_walk.h"

namespace aimle::detail {
namespace {

constexpr int32_t kUnseen = -1;

}  // namespace

PaddedGrid::PaddedGrid(const GridPath& solver, int32_t lanes)
    : lanes(lanes),
      height(static_cast<int32_t>(solver.height)),
      width(static_cast<int32_t>(solver.width)),
      pitch((width + 1) * lanes),
      size((height + 2) * pitch + lanes),
      neighbours(solver.neighbourhood),
      step{},
      raster_target(static_cast<int32_t>(solver.target_cell())),
      raster_step{} {
  const auto padded = [&](int32_t cell) {
    return (cell / width + 1) * pitch + (cell % width + 1) * lanes;
  };
  source = padded(static_cast<int32_t>(solver.source_cell()));
  target = padded(raster_target);
  int i = 0;
  for (int32_t dr = -1; dr <= 1; ++dr) {
    for (int32_t dc = -1; dc <= 1; ++dc) {
      if ((dr == 0 && dc == 0) || (neighbours == 4 && dr != 0 && dc != 0)) continue;
      step[i] = dr * pitch + dc * lanes;
      raster_step[i] = dr * width + dc;
      ++i;
    }
  }
}

template <class T>
GridWalk<T>::GridWalk(const PaddedGrid& grid) : grid_(grid) {}

template <class T>
int GridWalk<T>::next_way(int32_t cell, int i, const T* cost, const T* distance) const {
  for (; i < grid_.neighbours; ++i) {
    const int32_t u = cell + grid_.step[i];
    if (distance[u] + cost[cell] != distance[cell]) continue;
    if (seen_.empty() || steps_[u] == steps_[cell] + 1) break;
  }
  return i;
}

template <class T>
void GridWalk<T>::write_path_from(int32_t cell, int32_t raster_cell, const T* cost,
                                  const T* distance, T* z) {
  z[raster_cell] = 1;
  while (cell != grid_.source) {
    int way = next_way(cell, 0, cost, distance);
    if (seen_.empty() && next_way(cell, way + 1, cost, distance) < grid_.neighbours) {
      find_fewest_cells(cell, cost, distance);
      way = next_way(cell, 0, cost, distance);
    }
    cell += grid_.step[way];
    raster_cell += grid_.raster_step[way];
    z[raster_cell] = 1;
  }
  forget_fewest_cells();
}

template <class T>
void GridWalk<T>::find_fewest_cells(int32_t from, const T* cost, const T* distance) {
  if (steps_.empty()) steps_.assign(grid_.size, kUnseen);
  steps_[from] = 0;
  seen_.push_back(from);
  for (size_t head = 0; steps_[grid_.source] == kUnseen; ++head) {
    const int32_t v = seen_[head];
    for (int i = 0; i < grid_.neighbours; ++i) {
      const int32_t u = v + grid_.step[i];
      if (steps_[u] != kUnseen || distance[u] + cost[v] != distance[v]) continue;
      steps_[u] = steps_[v] + 1;
      seen_.push_back(u);
    }
  }
  // From the source outwards, keep what leads to a kept cell one step further from `from`.
  const int32_t last = steps_[grid_.source];
  for (size_t tail = seen_.size(); tail-- > 0;) {
    const int32_t v = seen_[tail];
    bool kept = v == grid_.source;
    if (steps_[v] < last) {
      for (int i = 0; i < grid_.neighbours && !kept; ++i) {
        const int32_t u = v + grid_.step[i];
        kept = steps_[u] == steps_[v] + 1 && distance[u] + cost[v] == distance[v];
      }
    }
    if (!kept) steps_[v] = kUnseen;
  }
}

template <class T>
void GridWalk<T>::forget_fewest_cells() {
  for (const int32_t v : seen_) steps_[v] = kUnseen;
  seen_.clear();
}

template class GridWalk<float>;
template class GridWalk<double>;

}  // namespace aimle::detail
