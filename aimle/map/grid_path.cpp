#include "aimle/map/grid_path.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "aimle/base/check.h"
#include "aimle/base/isa.h"
#include "aimle/map/declaration.h"
#include "aimle/map/distance_queue.h"
#include "aimle/map/each_row.h"
#include "aimle/map/grid_path_avx2.h"
#include "aimle/map/grid_walk.h"

namespace aimle {
namespace {

using detail::GridWalk;
using detail::PaddedGrid;

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

/// Copies a row of costs into the padded grid: negative ones become +0, walls infinite.
template <class T>
Status read_costs(const PaddedGrid& grid, GridPath::Negative negative, const T* scores,
                  const bool* mask, T* cost) {
  bool nan = false;
  bool below_zero = false;
  for (int32_t r = 0; r < grid.height; ++r) {
    const int64_t first = int64_t{r} * grid.width;
    T* out = cost + (r + 1) * grid.pitch + 1;
    for (int32_t c = 0; c < grid.width; ++c) {
      const bool wall = mask != nullptr && !mask[first + c];
      const T x = wall ? kInfinity<T> : scores[first + c];
      nan |= x != x;
      below_zero |= x < 0;
      out[c] = x > 0 ? x : T{0};
    }
  }
  if (nan) return Status::kNaN;
  if (below_zero && negative == GridPath::Negative::kError) return Status::kNegativeCost;
  return Status::kOk;
}

/// Dijkstra. The cost of a step is that of the cell it enters, so the first neighbour of a cell to
/// be settled is its nearest: a distance is final when first written and a cell is queued once.
/// Cells that cannot be on a cheapest path may be left infinite.
template <class T>
class Dijkstra {
 public:
  explicit Dijkstra(const PaddedGrid& grid) : grid_(grid), queue_(grid.size) {}

  void fill_distances(const T* cost, T* distance) {
    std::fill_n(distance, grid_.size, kInfinity<T>);
    if (cost[grid_.source] == kInfinity<T>) return;
    distance[grid_.source] = cost[grid_.source];
    queue_.push(cost[grid_.source], grid_.source);
    while (!queue_.empty()) {
      const auto [nearest, u] = queue_.pop();
      if (nearest + cost[grid_.target] > distance[grid_.target]) break;
      for (int i = 0; i < grid_.neighbours; ++i) {
        const int32_t v = u + grid_.step[i];
        if (distance[v] != kInfinity<T>) continue;
        const T through_u = nearest + cost[v];
        if (through_u == kInfinity<T>) continue;
        distance[v] = through_u;
        queue_.push(through_u, v);
      }
    }
    queue_.clear();
  }

 private:
  const PaddedGrid& grid_;
  detail::DistanceQueue<T> queue_;
};

template <class T>
void solve_each(const GridPath& solver, const Rows<T>& rows) {
  const PaddedGrid grid(solver);
  std::vector<T> cost(grid.size, kInfinity<T>);
  std::vector<T> distance(grid.size);
  Dijkstra<T> dijkstra(grid);
  GridWalk<T> walk(grid);
  detail::solve_each_row(
      rows, solver.size(), [&](const T* scores, const bool* mask, T* z, int64_t) {
        const Status status = read_costs(grid, solver.negative, scores, mask, cost.data());
        if (status != Status::kOk) return status;
        dijkstra.fill_distances(cost.data(), distance.data());
        if (distance[grid.target] == kInfinity<T>) return Status::kDisconnected;
        std::fill_n(z, solver.size(), T{0});
        walk.write_path(cost.data(), distance.data(), z);
        return Status::kOk;
      });
}

/// Infinities, aligned for vectors.
class AlignedFloats {
 public:
  explicit AlignedFloats(size_t size)
      : storage_(size + kAlignment / sizeof(float), kInfinity<float>) {
    void* begin = storage_.data();
    size_t space = storage_.size() * sizeof(float);
    data_ = static_cast<float*>(std::align(kAlignment, size * sizeof(float), begin, space));
  }
  float* data() { return data_; }

 private:
  static constexpr size_t kAlignment = 64;
  std::vector<float> storage_;
  float* data_;
};

/// Whether sweeps in lanes, many of them possibly idle, are faster than Dijkstra grid by grid.
bool sweeps_pay(int64_t cells, int64_t grids) {
  return cells <= 32 * 32 || (cells <= 128 * 128 && grids > 2);
}

/// Solves the rows in groups of `lanes` parallel grids.
void solve_groups(const GridPath& solver, const Rows<float>& rows, int32_t lanes) {
  if (rows.count == 0) return;
  if (!sweeps_pay(solver.size(), rows.count)) return solve_each(solver, rows);
  const PaddedGrid grid(solver, lanes);
  AlignedFloats cost(grid.size);
  AlignedFloats distance(grid.size);
  const auto pending = std::make_unique<bool[]>(2 * solver.height);
  const avx2::Scratch scratch{cost.data(), distance.data(), pending.get()};
  GridWalk<float> walk(grid);
  for (int64_t row = 0; row < rows.count; row += lanes) {
    const int64_t end = std::min(row + lanes, rows.count);
    const auto group = slice(rows, solver.size(), row, end);
    if (!avx2::solve_side_by_side(solver, grid, group, scratch, walk)) solve_each(solver, group);
  }
}

}  // namespace

void GridPath::validate() const {
  AIMLE_CHECK(height >= 1 && width >= 1,
              "[aimle::grid_path] expected height >= 1 and width >= 1 but got height=", height,
              ", width=", width);
  AIMLE_CHECK(height <= kMaxCells && width <= kMaxCells / height,
              "[aimle::grid_path] expected at most ", kMaxCells, " cells but got height=", height,
              ", width=", width);
  AIMLE_CHECK(neighbourhood == 4 || neighbourhood == 8,
              "[aimle::grid_path] expected neighbourhood 4 or 8 but got ", neighbourhood);
  const auto check_cell = [&](const char* name, Cell cell) {
    AIMLE_CHECK(
        -height <= cell.row && cell.row < height && -width <= cell.column && cell.column < width,
        "[aimle::grid_path] expected ", name, " inside the ", height, " x ", width,
        " grid but got (", cell.row, ", ", cell.column, ")");
  };
  check_cell("source", source);
  check_cell("target", target);
}

void GridPath::declare(Declaration<GridPath>& solver) {
  solver.summary = "the cheapest path between two cells of a grid of costs";
  solver.ties = "fewest cells, then raster order";
  solver.setting("neighbourhood", &GridPath::neighbourhood, {{"8", 8}, {"4", 4}},
                 "number of neighbours of a cell");
  solver.setting("source", &GridPath::source, "start of the path");
  solver.setting("target", &GridPath::target, "end of the path");
  solver.setting("negative", &GridPath::negative,
                 {{"clip", Negative::kClip}, {"error", Negative::kError}},
                 "whether costs below zero are clipped to zero or an error");
}

void GridPath::fit(Shape instance) {
  height = instance[0];
  width = instance[1];
  AIMLE_CHECK(height >= 1 && width >= 1,
              "[aimle::grid_path] expected scores of grids of at least 1 x 1 but got ", height,
              " x ", width);
}

void solve_rows(const GridPath& solver, const Rows<float>& rows) {
  if constexpr (kBuiltWithAvx2) {
    if (isa() >= Isa::kAvx2) {
      constexpr int32_t kLanes = 16;
      const int64_t left_over = rows.count % kLanes;
      const int64_t rest = left_over <= kLanes / 2 ? left_over : 0;
      solve_groups(solver, slice(rows, solver.size(), 0, rows.count - rest), kLanes);
      solve_groups(solver, slice(rows, solver.size(), rows.count - rest, rows.count), kLanes / 2);
      return;
    }
  }
  solve_each(solver, rows);
}

void solve_rows(const GridPath& solver, const Rows<double>& rows) { solve_each(solver, rows); }

}  // namespace aimle
