#include "experiments/engine/dense.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include "experiments/engine/dense_kernel.h"
#include "experiments/engine/on_device.h"

namespace aimle::experiments {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor activated(at::Tensor y, Activation activation) {
  return activation == Activation::kElu ? at::elu_(y) : y;
}

/// The gradient of an activation's input, and its sum over the rows.
struct Passed {
  at::Tensor gradient, sums;
};

Passed pass_on_device(const at::Tensor& given, const at::Tensor& output, Activation activation) {
  const ops::DeviceContext context(given);
  const int64_t rows = given.size(0), columns = given.size(1);
  const bool keeps = activation == Activation::kNone;
  const at::Tensor gradient = keeps ? given : at::empty_like(given);
  const at::Tensor sums = at::empty({columns}, given.options());
  const at::Tensor scratch = at::empty({layer_gradient_scratch(rows, columns)}, given.options());
  pass_on_device({.given = given.const_data_ptr<float>(),
                  .output = keeps ? nullptr : output.const_data_ptr<float>(),
                  .passed = keeps ? nullptr : gradient.mutable_data_ptr<float>(),
                  .sums = sums.mutable_data_ptr<float>(),
                  .scratch = scratch.mutable_data_ptr<float>(),
                  .rows = rows,
                  .columns = columns},
                 activation, context.get().stream);
  return {gradient, sums};
}

Passed pass(const at::Tensor& upstream, const at::Tensor& output, Activation activation) {
  const at::Tensor given = upstream.contiguous();
  if (has_dense_kernel() && suit_kernels({given})) {
    return pass_on_device(given, output, activation);
  }
  const at::Tensor gradient = activation == Activation::kRelu
                                  ? at::threshold_backward(given, output, 0)
                              : activation == Activation::kElu
                                  ? at::elu_backward(given, 1, 1, 1, /*is_result=*/true, output)
                                  : given;
  return {gradient, gradient.sum(0)};
}

struct Dense : torch::autograd::Function<Dense> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, Activation activation) {
    const at::Tensor y = activation == Activation::kRelu
                             ? at::_addmm_activation(bias, x, weight.t())
                             : activated(at::addmm(bias, x, weight.t()), activation);
    ctx->save_for_backward({x, weight, activation == Activation::kNone ? at::Tensor() : y});
    ctx->saved_data["activation"] = static_cast<int64_t>(activation);
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    const auto activation = static_cast<Activation>(ctx->saved_data["activation"].toInt());
    const auto [dy, bias] = pass(gradients[0], saved[2], activation);
    const at::Tensor dx = ctx->needs_input_grad(0) ? at::mm(dy, weight) : at::Tensor();
    return {dx, at::mm(dy.t(), x), bias, {}};
  }
};

}  // namespace

at::Tensor affine(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return Dense::apply(x, weight, bias, Activation::kNone);
}

at::Tensor affine_relu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return Dense::apply(x, weight, bias, Activation::kRelu);
}

at::Tensor dense(const torch::nn::Linear& layer, const at::Tensor& x) {
  return affine(x, layer->weight, layer->bias);
}

at::Tensor dense_relu(const torch::nn::Linear& layer, const at::Tensor& x) {
  return affine_relu(x, layer->weight, layer->bias);
}

at::Tensor dense_elu(const torch::nn::Linear& layer, const at::Tensor& x) {
  return Dense::apply(x, layer->weight, layer->bias, Activation::kElu);
}

at::Tensor sum_of_rows(const at::Tensor& x) { return pass(x, {}, Activation::kNone).sums; }

}  // namespace aimle::experiments
