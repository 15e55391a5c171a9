#include "experiments/dvae/losses.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "experiments/dvae/loss_kernel.h"
#include "experiments/engine/on_device.h"

namespace aimle::experiments::dvae {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

LossInputs inputs_of(const at::Tensor& logits, const at::Tensor& x) {
  return {.logits = logits.const_data_ptr<float>(),
          .x = x.const_data_ptr<float>(),
          .theta = nullptr,
          .batch = logits.size(0),
          .samples = logits.size(1),
          .pixels = logits.size(2),
          .rows = 0,
          .size = 0};
}

LossInputs inputs_of(const at::Tensor& logits, const at::Tensor& x, const at::Tensor& theta) {
  LossInputs result = inputs_of(logits, x);
  result.theta = theta.const_data_ptr<float>();
  result.rows = theta.size(1);
  result.size = theta.size(2);
  return result;
}

// The gradients of both losses are written out: PyTorch's take twice as many kernels.

/// BCE with logits l and target x is softplus(l) - x l.
struct ReconstructionLoss : torch::autograd::Function<ReconstructionLoss> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& logits, const at::Tensor& x) {
    ctx->save_for_backward({logits, x});
    if (!has_loss_kernel() || !suit_kernels({logits, x})) {
      return at::softplus(logits).sum(-1) - at::matmul(logits, x.unsqueeze(-1)).squeeze(-1);
    }
    const ops::DeviceContext context(logits);
    const at::Tensor bce = at::empty({logits.size(0), logits.size(1)}, logits.options());
    losses_on_device(inputs_of(logits, x), bce.mutable_data_ptr<float>(), nullptr,
                     context.get().stream);
    return bce;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &logits = saved[0], &x = saved[1];
    return {logits.sigmoid().sub_(x.unsqueeze(1)).mul_(gradients[0].unsqueeze(-1)), {}};
  }
};

/// With l = log q + log size: the sum of q l, whose gradient is that of a softmax with upstream
/// gradient l.
struct SoftmaxKl : torch::autograd::Function<SoftmaxKl> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& theta) {
    const at::Tensor log_q = theta.log_softmax(-1), q = log_q.exp();
    const at::Tensor log_ratio = log_q + std::log(static_cast<double>(theta.size(-1)));
    ctx->save_for_backward({q, log_ratio});
    return (q * log_ratio).sum({1, 2});
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &q = saved[0], &log_ratio = saved[1];
    return {at::_softmax_backward_data(log_ratio * gradients[0].view({-1, 1, 1}), q, -1,
                                       q.scalar_type())};
  }
};

/// The members of TrainingLoss, by three kernels with backward.
struct LossOnDevice : torch::autograd::Function<LossOnDevice> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& logits, const at::Tensor& x,
                               const at::Tensor& theta, const LossWeights& weights) {
    const ops::DeviceContext context(logits);
    const LossInputs inputs = inputs_of(logits, x, theta);
    const at::Tensor bce = at::empty({inputs.batch, inputs.samples}, logits.options());
    const at::Tensor kl = at::empty({inputs.batch}, logits.options());
    const at::Tensor objective = at::empty({}, logits.options());
    const at::Tensor means = at::empty({3}, logits.options().dtype(at::kDouble));
    void* const stream = context.get().stream;
    losses_on_device(inputs, bce.mutable_data_ptr<float>(), kl.mutable_data_ptr<float>(), stream);
    sum_losses_on_device(inputs, bce.const_data_ptr<float>(), kl.const_data_ptr<float>(), weights,
                         {.objective = objective.mutable_data_ptr<float>(),
                          .means = means.mutable_data_ptr<double>()},
                         stream);
    ctx->save_for_backward({logits, x, theta});
    ctx->saved_data["kl"] = weights.kl;
    ctx->saved_data["share"] = weights.share;
    ctx->mark_non_differentiable({bce, means});
    ctx->set_materialize_grads(false);
    return {objective, bce, means};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &logits = saved[0], &x = saved[1], &theta = saved[2];
    if (!gradients[0].defined()) return variable_list(4);
    const ops::DeviceContext context(logits);
    const at::Tensor d_logits = at::empty_like(logits), d_theta = at::empty_like(theta);
    loss_gradients_on_device(
        inputs_of(logits, x, theta),
        {.kl = ctx->saved_data["kl"].toDouble(), .share = ctx->saved_data["share"].toDouble()},
        gradients[0].const_data_ptr<float>(), d_logits.mutable_data_ptr<float>(),
        d_theta.mutable_data_ptr<float>(), context.get().stream);
    return {d_logits, {}, d_theta, {}};
  }
};

}  // namespace

at::Tensor reconstruction_loss(const at::Tensor& logits, const at::Tensor& x) {
  return ReconstructionLoss::apply(logits, x);
}

at::Tensor softmax_kl(const at::Tensor& theta) { return SoftmaxKl::apply(theta); }

TrainingLoss training_loss(const Batch& batch, const at::Tensor& logits, const at::Tensor& x,
                           const at::Tensor& theta, double kl_weight) {
  if (has_loss_kernel() && suit_kernels({logits, x, theta})) {
    const variable_list results =
        LossOnDevice::apply(logits, x, theta, LossWeights{.kl = kl_weight, .share = batch.share});
    return {.objective = results[0], .bce = results[1], .means = results[2]};
  }
  const at::Tensor bce = reconstruction_loss(logits, x), kl = softmax_kl(theta);
  const at::Tensor bce_mean = bce.detach().mean(at::kDouble);
  const at::Tensor kl_mean = kl.detach().mean(at::kDouble);
  const auto samples = static_cast<double>(bce.size(1));
  return {.objective = batch.mean(at::add(bce.sum(1), kl, kl_weight)),
          .bce = bce.detach(),
          .means = at::stack({at::add(bce_mean, kl_mean, 1.0 / samples), bce_mean, kl_mean})};
}

}  // namespace aimle::experiments::dvae
