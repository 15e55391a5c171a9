// The parts of a gradient that come from the losses of samples, as surrogates: the losses
// themselves, with a gradient for theta. Ops (ops.cpp) and classes (score.cpp) call these.
#pragma once

#include <ATen/core/Tensor.h>

#include "aimle/torch/functions.h"

namespace aimle {

/// The losses of z, one for every sample, with the score function's gradient for theta [*batch, n].
at::Tensor sfe_surrogate(const SolverSpec& solver, const at::Tensor& theta, const at::Tensor& z,
                         const at::Tensor& losses, const RowLimits& rows, bool leave_one_out);

struct CovarianceSettings {
  double share;        // of the gradient
  double temperature;  // of the noise
  Sense sense;
  int64_t instance_dims;
};

/// The losses of z, one for every sample, with share * Cov(f, z) / temperature for theta
/// [*batch, *instance]. Just the losses for one sample.
at::Tensor covariance_surrogate(const at::Tensor& theta, const at::Tensor& z,
                                const at::Tensor& losses, const CovarianceSettings& settings);

/// x, with its gradient scaled.
at::Tensor scale_gradient(const at::Tensor& x, double scale);

}  // namespace aimle
