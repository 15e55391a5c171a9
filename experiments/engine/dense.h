// Fully connected layers of the experiments' models: torch::nn::Linear, computed with fewer and
// faster kernels on a GPU.
//
// ReLU is part of the product's kernel. The gradient of the bias, a sum over rows, is summed in two
// steps: PyTorch's reduction of a tall matrix uses only a few blocks.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/linear.h>

namespace aimle::experiments {

/// x weight' + bias for a matrix x [rows, inputs].
at::Tensor dense(const torch::nn::Linear& layer, const at::Tensor& x);
/// The same, then max(0, .).
at::Tensor dense_relu(const torch::nn::Linear& layer, const at::Tensor& x);

/// The sum over the rows of a matrix.
at::Tensor sum_of_rows(const at::Tensor& x);

}  // namespace aimle::experiments
