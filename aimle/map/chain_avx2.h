// The AVX2 version of a step of Chain. It is used only if isa() allows it, and gives the same
// result as the portable version.
#pragma once

#include <cstdint>

namespace aimle::avx2 {

/// ChainSteps::step (chain_steps.h); labels >= 8.
bool chain_step(int64_t labels, const float* before, const float* x, float* after);
/// labels >= 4.
bool chain_step(int64_t labels, const double* before, const double* x, double* after);

}  // namespace aimle::avx2
