// The two networks for maps.
//
// CombResnet18 (Vlastelica et al., ICLR 2020): the first stages of ResNet18, cut where a feature
// map has 2K x 2K pixels, pooled to one cost per cell. The solver does the rest.
//
//   conv 7x7/2 (64) - BN - ReLU - maxpool 3x3/2 - 2 basic blocks (64) - adaptive max pool K x K
//   - mean over channels - |.|                                        [B, 3, 8K, 8K] -> [B, K, K]
//
// ResNet18 (He et al., CVPR 2016), the baseline without a solver: all four stages and K^2 logits,
// one for each cell being on the path.
//
// Initial values as in the public code: blocks Kaiming normal (fan out), batch norm 1 and 0, the
// first convolution and the last layer with PyTorch's defaults.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "experiments/engine/batch_norm.h"

namespace aimle::experiments::warcraft {

/// conv 3x3 - BN - ReLU - conv 3x3 - BN, plus the input (through conv 1x1 - BN where shapes
/// differ), ReLU.
class BasicBlockImpl : public torch::nn::Module {
 public:
  BasicBlockImpl(int64_t from, int64_t to, int64_t stride);
  at::Tensor forward(const at::Tensor& x);

 private:
  torch::nn::Conv2d conv1_, conv2_;
  BatchNorm2d bn1_, bn2_;
  torch::nn::Sequential shortcut_{nullptr};
};
TORCH_MODULE(BasicBlock);

class PathNetImpl : public torch::nn::Module {
 public:
  enum class Kind { kCosts, kMask };
  PathNetImpl(Kind kind, int64_t cells);

  /// kCosts: costs >= 0; kMask: logits. [B, 3, 8K, 8K] -> [B, K, K]
  at::Tensor forward(const at::Tensor& pictures);

 private:
  Kind kind_;
  int64_t cells_;
  torch::nn::Conv2d conv1_;
  BatchNorm2d bn1_;
  torch::nn::Sequential stages_;
  torch::nn::Linear out_{nullptr};
};
TORCH_MODULE(PathNet);

/// Cells in which z [B, S, K, K] and the label [B, K, K] differ: [B, S]. Its gradient in z is
/// 1 - 2 label.
at::Tensor hamming(const at::Tensor& z, const at::Tensor& label);

}  // namespace aimle::experiments::warcraft
