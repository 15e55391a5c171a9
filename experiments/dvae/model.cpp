#include "experiments/dvae/model.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/init.h>

#include <cmath>

#include "experiments/engine/dense.h"

namespace aimle::experiments::dvae {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kWide = 512, kNarrow = 256;

// The gradients of both losses are written out: PyTorch's take twice as many kernels.

/// BCE with logits l and target x is softplus(l) - x l.
struct ReconstructionLoss : torch::autograd::Function<ReconstructionLoss> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& logits, const at::Tensor& x) {
    ctx->save_for_backward({logits, x});
    return at::softplus(logits).sum(-1) - at::matmul(logits, x.unsqueeze(-1)).squeeze(-1);
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

}  // namespace

DvaeImpl::DvaeImpl(Shape shape)
    : shape_(shape),
      encoder0_(shape.pixels, kWide),
      encoder1_(kWide, kNarrow),
      encoder2_(kNarrow, shape.rows * shape.size),
      decoder0_(shape.rows * shape.size, kNarrow),
      decoder1_(kNarrow, kWide),
      decoder2_(kWide, shape.pixels) {
  const auto add = [&](const char* name, torch::nn::Linear& linear) {
    register_module(name, linear);
    torch::nn::init::xavier_uniform_(linear->weight, std::sqrt(2.0));
    torch::nn::init::zeros_(linear->bias);
  };
  add("encoder0", encoder0_);
  add("encoder1", encoder1_);
  add("encoder2", encoder2_);
  add("decoder0", decoder0_);
  add("decoder1", decoder1_);
  add("decoder2", decoder2_);
}

at::Tensor DvaeImpl::encode(const at::Tensor& x) {
  const at::Tensor hidden = dense_relu(encoder1_, dense_relu(encoder0_, x));
  return dense(encoder2_, hidden).view({-1, shape_.rows, shape_.size});
}

at::Tensor DvaeImpl::decode(const at::Tensor& z) {
  const at::Tensor code = z.transpose(1, 2).reshape({-1, shape_.rows * shape_.size});
  const at::Tensor hidden = dense_relu(decoder1_, dense_relu(decoder0_, code));
  return dense(decoder2_, hidden).view({z.size(0), z.size(2), shape_.pixels});
}

at::Tensor reconstruction_loss(const at::Tensor& logits, const at::Tensor& x) {
  return ReconstructionLoss::apply(logits, x);
}

at::Tensor softmax_kl(const at::Tensor& theta) { return SoftmaxKl::apply(theta); }

}  // namespace aimle::experiments::dvae
