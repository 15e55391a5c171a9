// The gradient of Difference::kThresholds on the device: aimle/estimate/thresholds.h, the same
// bits.
//
// A warp per example goes through its samples in order: draw the scores again, find the thresholds
// (thresholds.h, chain_swaps.h, estimate/lattice_swaps.h), add what each entry gains. Entry j belongs to lane j mod 32, which is how the CPU
// sums what the cap took, and the mean over the entries is a fixed_sum.
#pragma once

#include "aimle/cuda/passes.h"

namespace aimle::cuda {

/// Throws std::invalid_argument for solvers without thresholds (grid paths), for those of a user's
/// own whose thresholds are known to the CPU alone, and for trees beyond 2^31 entries.
template <class T>
void threshold_backward(const PassSettings& settings, const Solver& solver,
                        const DeviceExamples<T>& examples, const DeviceBackward<T>& pass,
                        const DeviceState& state, const Context& context);

}  // namespace aimle::cuda
