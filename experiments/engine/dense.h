// Fully connected layers of the experiments' models: torch::nn::Linear, computed with fewer and
// faster kernels on a GPU.
//
// ReLU is part of the product's kernel. In backward the gradient through the activation and that of
// the bias are one kernel (dense_kernel.h).
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/linear.h>

namespace aimle::experiments {

/// x weight' + bias for a matrix x [rows, inputs].
at::Tensor dense(const torch::nn::Linear& layer, const at::Tensor& x);
/// The same, then max(0, .).
at::Tensor dense_relu(const torch::nn::Linear& layer, const at::Tensor& x);

/// The same with ELU.
at::Tensor dense_elu(const torch::nn::Linear& layer, const at::Tensor& x);

/// The first two without a module: weight [outputs, inputs].
at::Tensor affine(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
at::Tensor affine_relu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// The sum over the rows of a matrix.
at::Tensor sum_of_rows(const at::Tensor& x);

}  // namespace aimle::experiments
