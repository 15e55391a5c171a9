#include "experiments/dvae/model.h"

#include <torch/nn/init.h>

#include <cmath>

namespace aimle::experiments::dvae {
namespace {

constexpr int64_t kWide = 512, kNarrow = 256;

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
  const at::Tensor hidden = encoder1_(encoder0_(x).relu_()).relu_();
  return encoder2_(hidden).view({-1, shape_.rows, shape_.size});
}

at::Tensor DvaeImpl::decode(const at::Tensor& z) {
  const at::Tensor code = z.transpose(1, 2).reshape({-1, shape_.rows * shape_.size});
  const at::Tensor hidden = decoder1_(decoder0_(code).relu_()).relu_();
  return decoder2_(hidden).view({z.size(0), z.size(2), shape_.pixels});
}

// BCE with logits l and target x is softplus(l) - x l.
at::Tensor reconstruction_loss(const at::Tensor& logits, const at::Tensor& x) {
  return at::softplus(logits).sum(-1) - at::matmul(logits, x.unsqueeze(-1)).squeeze(-1);
}

at::Tensor softmax_kl(const at::Tensor& theta) {
  const at::Tensor q = theta.softmax(-1);
  const double log_size = std::log(static_cast<double>(theta.size(-1)));
  return (q * ((q + 1e-20).log() + log_size)).sum({1, 2});
}

}  // namespace aimle::experiments::dvae
