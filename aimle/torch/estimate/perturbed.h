// The formulas of perturbed optimisers, for solutions that any solver gave, native or a callable.
// Ops (ops.cpp) and C++ functions (perturbed.cpp) call these.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "aimle/torch/layer.h"

namespace aimle {

/// How theta was perturbed, and what the solver found. eps and z are [S, *batch, *instance]; z
/// solves `perturbed_scores`.
struct PerturbedSolutions {
  at::Tensor eps;
  at::Tensor z;
  double temperature;  // tau
  Sense sense;
  int64_t instance_dims;
};

/// theta + tau eps, or theta - tau eps of costs: [S, *batch, *instance], without a gradient.
at::Tensor perturbed_scores(const at::Tensor& theta, const at::Tensor& eps, double temperature,
                            Sense sense);

/// nu'(eps) of noise with density exp(-nu(eps)): normal, gumbel or logistic.
at::Tensor noise_score(NoiseKind noise, const at::Tensor& eps);

/// The mean of z [*batch, *instance] with the gradient of the perturbed optimiser.
at::Tensor perturbed_mean(const at::Tensor& theta, const PerturbedSolutions& solutions,
                          const std::optional<at::Tensor>& mask, NoiseKind noise,
                          bool leave_one_out);

/// The perturbed Fenchel-Young loss of every example, [*batch]. clips: whether the solver takes
/// costs below zero as zero.
at::Tensor fenchel_young(const at::Tensor& theta, const at::Tensor& target,
                         const PerturbedSolutions& solutions, const std::optional<at::Tensor>& mask,
                         bool clips);

}  // namespace aimle
