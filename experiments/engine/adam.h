// Adam (Kingma and Ba, ICLR 2015) over a fused kernel, PyTorch's or, on a GPU, our own
// (adam_kernel.h). Its state is in tensors of fixed addresses: a checkpoint restores them in place,
// and a captured CUDA graph may hold them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/engine/gradient_sum.h"

namespace aimle::experiments {

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
};

class Adam {
 public:
  /// By name, as in the checkpoint.
  Adam(const std::map<std::string, at::Tensor>& parameters, AdamOptions options);

  /// Clears the gradients: the next backward pass provides its own buffers.
  void zero_grad();
  /// Uses the sum of all processes' gradients (gradient_sum.h). Parameters without a gradient are not
  /// changed.
  void step();
  void set_lr(double lr) { options_.lr = lr; }

  /// First and second moments of every parameter, and the number of steps.
  const std::map<std::string, at::Tensor>& state() const { return state_; }

 private:
  AdamOptions options_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> first_;
  std::vector<at::Tensor> second_;
  at::Tensor steps_;
  std::map<std::string, at::Tensor> state_;
  std::optional<GradientSum> sum_;
};

}  // namespace aimle::experiments
