// The formulas of the composed estimators that take solutions, from any solver. They are the
// kernels of ops (ops.cpp), and are called by the C++ classes; those that draw samples themselves
// are in sampled.h. Sizes may be symbolic: PyTorch traces through them.
//
// tau is the temperature of the noise, negative if theta are costs.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

namespace aimle {

using MaybeTensor = std::optional<at::Tensor>;

// ---- score.cpp: losses, one for every sample of z, with a gradient for theta ----

/// The score function; mask, k and solver as in the call that returned z.
at::Tensor sfe_surrogate(const at::Tensor& theta, const at::Tensor& z, const at::Tensor& losses,
                         const MaybeTensor& mask, const MaybeTensor& row_data,
                         const std::string& solver, bool leave_one_out);

/// share * Cov(f, z) / tau. Zero for one sample.
at::Tensor covariance_surrogate(const at::Tensor& theta, const at::Tensor& z,
                                const at::Tensor& losses, double share, double tau,
                                int64_t instance_dims);

/// x, with its gradient scaled.
at::Tensor scale_gradient(const at::Tensor& x, double scale);

// ---- perturbed.cpp: z solves theta + tau eps; both are [S, *batch, *instance] ----

/// nu'(eps) of noise with density exp(-nu(eps)): "normal", "gumbel" or "logistic".
at::Tensor noise_score(const at::Tensor& eps, const std::string& noise);

/// The mean of z with the gradient of the perturbed optimiser.
at::Tensor perturbed_mean(const at::Tensor& theta, const at::Tensor& eps, const at::Tensor& z,
                          const MaybeTensor& mask, const std::string& noise, double tau,
                          int64_t instance_dims, bool leave_one_out);

/// The perturbed Fenchel-Young loss of every example, [*batch]. clips: whether the solver clips
/// costs below zero to zero.
at::Tensor fenchel_young(const at::Tensor& theta, const at::Tensor& target, const at::Tensor& eps,
                         const at::Tensor& z, const MaybeTensor& mask, double tau,
                         int64_t instance_dims, bool clips);

// ---- spo_plus.cpp: costs is whether the solver needs costs >= 0 ----

/// 2 theta - true_theta, whose solution the loss needs; given to a solver of costs clipped at zero.
at::Tensor spo_plus_scores(const at::Tensor& theta, const at::Tensor& true_theta, bool costs);

/// The SPO+ loss of every example, [*batch]; z solves scores, solution the true coefficients.
at::Tensor spo_plus(const at::Tensor& scores, const at::Tensor& z, const at::Tensor& solution,
                    const MaybeTensor& mask, bool maximise, int64_t instance_dims, bool costs);

/// `spo_plus_loss` (estimator.h) by the text of the solver and the name of the sense.
at::Tensor spo_plus_loss_by_name(const at::Tensor& theta, const at::Tensor& true_theta,
                                 const MaybeTensor& solution, const MaybeTensor& mask,
                                 const MaybeTensor& row_data, const std::string& solver,
                                 const std::string& sense);

// ---- perturbed_map.cpp ----

/// `project` (layer.h) by the name of the projection: "std", "mean", "norm" or "none".
at::Tensor project_by_name(const at::Tensor& theta, const std::string& projection,
                           int64_t instance_dims, const MaybeTensor& mask);

}  // namespace aimle
