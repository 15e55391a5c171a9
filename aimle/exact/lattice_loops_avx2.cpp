#include "aimle/exact/lattice_loops.h"

namespace aimle::avx2 {

LatticeLoops lattice_loops() { return kLatticeLoops; }

}  // namespace aimle::avx2
