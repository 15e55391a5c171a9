// The AVX2 version of lattice paths for float32. It is used only if isa() allows it, and gives the
// same result as the portable version.
#pragma once

#include "aimle/map/lattice_path.h"

namespace aimle::avx2 {

struct LatticeSize {
  int64_t height;
  int64_t width;
  unsigned moves;  // bit m: move m is allowed
  bool per_move;
};

/// How each lane reached a cell, one bit for each.
struct LatticeStep {
  uint16_t down;   // by move 1, unless by move 2
  uint16_t right;  // by move 2
  uint16_t alive;  // at all
};

/// The memory for solving, besides the rows, with `lanes` floats per entry, aligned to 32 bytes.
struct LatticeScratch {
  float* scores;       // a row of cells: 3 width + 8 entries
  float* sums;         // 2 (width + 1) entries
  LatticeStep* steps;  // a step for each cell
};

/// Solves 1 ... lanes lattices in parallel, one in each lane; lanes is 8 or 16.
void solve_side_by_side(const LatticeSize& size, int lanes, const Rows<float>& rows,
                        const LatticeScratch& scratch);

}  // namespace aimle::avx2
