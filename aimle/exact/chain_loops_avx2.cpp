#include "aimle/exact/chain_loops.h"

namespace aimle::avx2 {

ChainLoops chain_loops() { return kChainLoops; }

}  // namespace aimle::avx2
