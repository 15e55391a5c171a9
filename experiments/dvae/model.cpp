#include "experiments/dvae/model.h"

#include <torch/nn/init.h>

#include <cmath>

#include "experiments/engine/dense.h"

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
  const at::Tensor hidden = dense_relu(encoder1_, dense_relu(encoder0_, x));
  return dense(encoder2_, hidden).view({-1, shape_.rows, shape_.size});
}

at::Tensor DvaeImpl::decode(const at::Tensor& z) {
  const at::Tensor code = z.transpose(1, 2).reshape({-1, shape_.rows * shape_.size});
  const at::Tensor hidden = dense_relu(decoder1_, dense_relu(decoder0_, code));
  return dense(decoder2_, hidden).view({z.size(0), z.size(2), shape_.pixels});
}

}  // namespace aimle::experiments::dvae
