#pragma once

#include <torch/csrc/autograd/custom_function.h>

namespace aimle::ops {

/// The gradient of a gradient estimate is not defined: differentiating it throws instead of
/// returning zeros. Takes theta so that it is part of the graph for every loss.
struct OnlyOnce : torch::autograd::Function<OnlyOnce> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& dtheta,
                            const at::Tensor&) {
    return dtheta.alias();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list) {  // NOLINT
    TORCH_CHECK(false,
                "[aimle::perturbed_map] expected one backward pass but got a second derivative: a "
                "gradient estimate cannot be differentiated (drop create_graph=True)");
  }
};

}  // namespace aimle::ops
