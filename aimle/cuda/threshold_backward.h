// The gradient of Difference::kThresholds on the device: aimle/estimate/thresholds.h,
// bit-identical.
//
// A warp per example processes its samples in order: draws the scores again, finds the thresholds
// (thresholds.h, chain_swaps.h, estimate/lattice_swaps.h), and adds the contribution of each entry.
// Entry j belongs to lane j mod 32, as in the CPU's sums of what the cap removed, and the mean over
// the entries is a fixed_sum.
#pragma once

#include "aimle/cuda/passes.h"

namespace aimle::cuda {

/// Throws std::invalid_argument for solvers without thresholds (grid paths), for custom ones whose
/// thresholds only exist on the CPU, and for trees beyond 2^31 entries.
template <class T>
void threshold_backward(const PassSettings& settings, const Solver& solver,
                        const DeviceExamples<T>& examples, const DeviceBackward<T>& pass,
                        const DeviceState& state, const Context& context);

}  // namespace aimle::cuda
