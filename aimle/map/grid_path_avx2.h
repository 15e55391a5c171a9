// The AVX2 form of grid paths for float32. It is entered only where isa() allows it, and gives what
// the portable form gives.
#pragma once

#include "aimle/map/grid_path.h"
#include "aimle/map/grid_walk.h"

namespace aimle::avx2 {

/// What solving needs besides the rows. `cost` and `distance` are padded grids, aligned to 32
/// bytes, whose borders are infinite and stay so; `pending` has 2 * height flags.
struct Scratch {
  float* cost;
  float* distance;
  bool* pending;
};

/// Solves 1 ... grid.lanes grids side by side, one in each lane; grid.lanes is 8 or 16. Sixteen
/// take little longer than eight: two vectors hide each other's latency. False, and nothing
/// written, if the sweeps do not settle in reasonable time, as in a maze.
bool solve_side_by_side(const GridPath& solver, const detail::PaddedGrid& grid,
                        const Rows<float>& rows, const Scratch& scratch,
                        detail::GridWalk<float>& walk);

}  // namespace aimle::avx2
