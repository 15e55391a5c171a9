#include "experiments/warcraft/model.h"

#include <torch/nn/init.h>

namespace aimle::experiments::warcraft {
namespace {

using torch::nn::Conv2d;

Conv2d conv(int64_t from, int64_t to, int64_t size, int64_t stride) {
  return Conv2d(
      torch::nn::Conv2dOptions(from, to, size).stride(stride).padding(size / 2).bias(false));
}

Conv2d kaiming_conv(int64_t from, int64_t to, int64_t size, int64_t stride) {
  Conv2d made = conv(from, to, size, stride);
  torch::nn::init::kaiming_normal_(made->weight, 0.0, torch::kFanOut, torch::kReLU);
  return made;
}

torch::nn::Sequential stages(PathNetImpl::Kind kind) {
  torch::nn::Sequential made(BasicBlock(64, 64, 1), BasicBlock(64, 64, 1));
  if (kind == PathNetImpl::Kind::kMask) {
    for (const int64_t width : {128, 256, 512}) {
      made->push_back(BasicBlock(width / 2, width, 2));
      made->push_back(BasicBlock(width, width, 1));
    }
  }
  return made;
}

}  // namespace

BasicBlockImpl::BasicBlockImpl(int64_t from, int64_t to, int64_t stride)
    : conv1_(kaiming_conv(from, to, 3, stride)),
      conv2_(kaiming_conv(to, to, 3, 1)),
      bn1_(to),
      bn2_(to) {
  register_module("conv1", conv1_);
  register_module("bn1", bn1_);
  register_module("conv2", conv2_);
  register_module("bn2", bn2_);
  if (stride != 1 || from != to) {
    shortcut_ = torch::nn::Sequential(kaiming_conv(from, to, 1, stride), BatchNorm2d(to));
    register_module("shortcut", shortcut_);
  }
}

at::Tensor BasicBlockImpl::forward(const at::Tensor& x) {
  const at::Tensor inner = bn1_(conv1_(x)).relu_();
  return bn2_(conv2_(inner)).add_(shortcut_ ? shortcut_->forward(x) : x).relu_();
}

PathNetImpl::PathNetImpl(Kind kind, int64_t cells)
    : kind_(kind), cells_(cells), conv1_(conv(3, 64, 7, 2)), bn1_(64), stages_(stages(kind)) {
  register_module("conv1", conv1_);
  register_module("bn1", bn1_);
  register_module("stages", stages_);
  if (kind == Kind::kMask) {
    out_ = torch::nn::Linear(512, cells * cells);
    register_module("out", out_);
  }
}

at::Tensor PathNetImpl::forward(const at::Tensor& pictures) {
  const at::Tensor seen = at::max_pool2d(bn1_(conv1_(pictures)).relu_(), 3, 2, 1);
  const at::Tensor features = stages_->forward(seen);
  if (kind_ == Kind::kMask) return out_(features.mean({2, 3})).view({-1, cells_, cells_});
  const at::Tensor pooled = std::get<0>(at::adaptive_max_pool2d(features, {cells_, cells_}));
  return pooled.mean(1).abs();
}

at::Tensor hamming(const at::Tensor& z, const at::Tensor& label) {
  const at::Tensor t = label.unsqueeze(1);
  return (z * (1 - 2 * t) + t).sum({2, 3});
}

}  // namespace aimle::experiments::warcraft
