// The AVX2 version of grid paths for float32. It is used only if isa() allows it, and gives the
// same result as the portable version.
#pragma once

#include "aimle/map/grid_path.h"
#include "aimle/map/grid_walk.h"

namespace aimle::avx2 {

/// The memory for solving, besides the rows. `cost` and `distance` are padded grids, aligned to 32
/// bytes, whose borders are and remain infinite; `pending` has 2 * height flags.
struct Scratch {
  float* cost;
  float* distance;
  bool* pending;
};

/// Solves 1 ... grid.lanes grids in parallel, one in each lane; grid.lanes is 8 or 16. Sixteen take
/// little longer than eight: two vectors hide each other's latency. Returns false, and writes
/// nothing, if the sweeps do not settle in reasonable time, as in a maze.
bool solve_side_by_side(const GridPath& solver, const detail::PaddedGrid& grid,
                        const Rows<float>& rows, const Scratch& scratch,
                        detail::GridWalk<float>& walk);

}  // namespace aimle::avx2
