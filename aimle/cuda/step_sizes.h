// The step sizes on the device; the formulas are those of aimle/estimate/step_size.h.
#pragma once

#include "aimle/cuda/passes.h"

namespace aimle::cuda {

/// lambda [B, R + 2] (R = gradient_rows): the step of every gradient row, the divisor of the
/// example's difference, and the reported one; counted [B, R]: 1 if dy is finite and not zero.
/// `done` [1], if given, is set to zero.
template <class T>
void step_sizes(const PassSettings& settings, const SolutionSize& size,
                const DeviceExamples<T>& examples, const T* dy, const AlphaSource& alpha,
                double* lambda, uint8_t* counted, unsigned* done, const Context& context);

/// The step size of the batch [1], if all examples share one; otherwise null.
template <class T>
const double* batch_lambda(const PassSettings& settings, const SolutionSize& size,
                           const DeviceExamples<T>& examples, const T* dy, const AlphaSource& alpha,
                           const Context& context);

}  // namespace aimle::cuda
