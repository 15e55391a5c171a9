#include "experiments/engine/dense.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

namespace aimle::experiments {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// On a GPU, matrices with fewer rows are summed in one step.
constexpr int64_t kTall = 512;

/// The largest divisor of rows up to its root.
int64_t near_root(int64_t rows) {
  auto parts = static_cast<int64_t>(std::sqrt(static_cast<double>(rows)));
  while (rows % parts != 0) --parts;
  return parts;
}

struct Dense : torch::autograd::Function<Dense> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, bool relu) {
    const at::Tensor y =
        relu ? at::_addmm_activation(bias, x, weight.t()) : at::addmm(bias, x, weight.t());
    ctx->save_for_backward({x, weight, relu ? y : at::Tensor()});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &y = saved[2];
    const at::Tensor dy =
        y.defined() ? at::threshold_backward(gradients[0], y, 0) : gradients[0].contiguous();
    const at::Tensor dx = ctx->needs_input_grad(0) ? at::mm(dy, weight) : at::Tensor();
    return {dx, at::mm(dy.t(), x), sum_of_rows(dy), {}};
  }
};

}  // namespace

at::Tensor dense(const torch::nn::Linear& layer, const at::Tensor& x) {
  return Dense::apply(x, layer->weight, layer->bias, false);
}

at::Tensor dense_relu(const torch::nn::Linear& layer, const at::Tensor& x) {
  return Dense::apply(x, layer->weight, layer->bias, true);
}

at::Tensor sum_of_rows(const at::Tensor& x) {
  const int64_t rows = x.size(0), parts = x.is_cuda() && rows >= kTall ? near_root(rows) : 1;
  if (parts == 1) return x.sum(0);
  return x.view({parts, rows / parts, x.size(1)}).sum(1).sum(0);
}

}  // namespace aimle::experiments
