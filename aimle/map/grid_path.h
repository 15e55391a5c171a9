// GridPath: the cheapest path between two cells of a grid whose cells have costs.
//
//   z = argmin over indicators of paths from source to target of <c, z>
//
// Both ends count. A step goes to one of the 8 (or 4) neighbours; a diagonal step costs the same as
// a straight one, namely the cost of the cell it enters. Any height x width, rows in raster order.
//
// Distances are sums from the source, rounded in the type of the costs at every step:
//   d(source) = c(source);  d(v) = min over neighbours u of fl(d(u) + c(v)).
// Ties, in this order: least cost d; fewest cells; raster order. Precisely: u is tight for v if
// fl(d(u) + c(v)) = d(v); cells(v) = 1 + min over tight u of cells(u); and going backwards from the
// target, the predecessor is the first u in raster order that is tight and has cells(u) + 1 =
// cells(v). cells decreases at every step, so there are no loops even if costs are zero.
//
// Costs below zero are clipped to zero (`Negative::kClip`, needed for perturbed costs) or make the
// row kNegativeCost (`Negative::kError`). +inf and masked cells are walls; if they separate source
// and target (or cover one of them) the row is kDisconnected. A distance that overflows to infinity
// counts as no path. NaN in an unmasked cell is kNaN. Precedence: kNaN, kNegativeCost,
// kDisconnected.
//
// Dijkstra with a heap, O(HW log HW); float32 with AVX2: up to sixteen grids of up to 128 x 128 in
// parallel across the lanes, their rows swept down and up until nothing changes. Rounding is
// monotone, so both give the same distances, bit for bit.
//
//   aimle::solve(aimle::GridPath{.height = 12, .width = 12}, rows);
#pragma once

#include "aimle/map/map.h"

namespace aimle {

struct GridPath {
  static constexpr std::string_view kName = "grid_path";
  static constexpr Sense kSense = Sense::kMin;
  static constexpr bool kHasCosts = true;
  static constexpr int64_t kInstanceDims = 2;
  enum class Negative { kClip, kError };
  static constexpr int64_t kMaxCells = int64_t{1} << 28;

  int64_t height = 0;
  int64_t width = 0;
  int neighbourhood = 8;
  Cell source = {0, 0};
  Cell target = {-1, -1};
  Negative negative = Negative::kClip;

  int64_t size() const { return height * width; }
  /// Raster indices.
  int64_t source_cell() const { return raster(source); }
  int64_t target_cell() const { return raster(target); }
  double work_ns() const { return 50.0 + 3.0 * static_cast<double>(size()); }
  SolutionSize solution_size() const { return {}; }
  void validate() const;
  std::vector<uint8_t> structures() const;
  /// For grids that are small enough to list; infinity for larger ones.
  double structure_count() const;

  static void declare(Declaration<GridPath>& solver);
  void fit(Shape instance);
  std::vector<int64_t> shape_for(int64_t n) const { return {n, n}; }

 private:
  int64_t raster(Cell cell) const {
    const int64_t row = cell.row < 0 ? height + cell.row : cell.row;
    return row * width + (cell.column < 0 ? width + cell.column : cell.column);
  }
};

void solve_rows(const GridPath& solver, const Rows<float>& rows);
void solve_rows(const GridPath& solver, const Rows<double>& rows);

}  // namespace aimle
