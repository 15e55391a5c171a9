// The operators as functions for LibTorch programs: solvers, noise, keys and exact distributions,
// with the solver specifications of layer.h. They only call torch.ops.aimle, so devices, gradients
// and errors are those of the ops.
//
//   const at::Tensor key = aimle::draw_key(theta);
//   const at::Tensor z = aimle::exact_sample(aimle::topk(5), theta, key, 100);  // [*batch, 100, n]
//   const at::Tensor mu = aimle::marginals(aimle::topk(5), theta);              // E z
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "aimle/torch/layer.h"

namespace aimle {

/// Which entries may be chosen, and the data of instances besides their scores.
struct RowLimits {
  std::optional<at::Tensor> mask = std::nullopt;  // bool, broadcastable to the scores
  /// int64: for topk the k of every row, broadcastable to *batch; for solvers that take data
  /// [length], or broadcastable to [*batch, length].
  std::optional<at::Tensor> row_data = std::nullopt;
};

/// The best structure of every instance, of the shape of scores; no gradient. A grid takes costs.
at::Tensor solve(const SolverSpec& solver, const at::Tensor& scores, const RowLimits& rows = {});

/// A fresh key, int64 [2] on the device of like, from PyTorch's generator.
at::Tensor draw_key(const at::Tensor& like,
                    const std::optional<at::Generator>& generator = std::nullopt);

/// The same numbers for a layer over theta, drawn on the CPU if that saves a kernel launch.
at::Tensor draw_host_key(const at::Tensor& theta,
                         const std::optional<at::Generator>& generator = std::nullopt);

/// Noise for scores of these sizes, [*batch, samples, *instance] on the device of key: float32.
/// Zeros for NoiseKind::kNone.
at::Tensor sample_noise(const NoiseSpec& noise, const at::Tensor& key, at::IntArrayRef batch,
                        int64_t samples, at::IntArrayRef instance);

// The distribution p(z) ~ exp<scores, z> over the structures of argmax, topk and spanning_tree.

/// log sum_z exp<scores, z>: [*batch]. Differentiable twice.
at::Tensor log_partition(const SolverSpec& solver, const at::Tensor& scores,
                         const RowLimits& rows = {});
/// E z, like scores. Differentiable once.
at::Tensor marginals(const SolverSpec& solver, const at::Tensor& scores,
                     const RowLimits& rows = {});
/// Cov(z) v, like scores: the gradient of <marginals, v>. Differentiable in v.
at::Tensor covariance(const SolverSpec& solver, const at::Tensor& scores, const at::Tensor& v,
                      const RowLimits& rows = {});
/// Independent draws of z: [*batch, samples, n]. No gradient. Do not draw noise with the same key.
at::Tensor exact_sample(const SolverSpec& solver, const at::Tensor& scores, const at::Tensor& key,
                        int64_t samples, const RowLimits& rows = {});
/// The number of structures of instances of these sizes; infinity if it is not known. data
/// [length]: for solvers that take data.
double structure_count(const SolverSpec& solver, at::IntArrayRef instance,
                       const std::optional<std::vector<int64_t>>& data = std::nullopt);
/// Every structure, of any solver, for instances of these sizes: uint8 [N, *instance].
at::Tensor structures(const SolverSpec& solver, at::IntArrayRef instance,
                      std::optional<at::Device> device = std::nullopt,
                      const std::optional<std::vector<int64_t>>& data = std::nullopt);

}  // namespace aimle
