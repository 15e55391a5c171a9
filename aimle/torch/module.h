// The layer as a torch::nn::Module: moved, saved and switched to eval with the model it is part of.
//
//   struct Net : torch::nn::Module {
//     aimle::PerturbedMap choose = register_module(
//         "choose", aimle::PerturbedMap(aimle::aimle(aimle::topk(10))));
//   };
//
// Header-only, since <torch/nn/module.h> is heavy and the library itself has no use for it.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "aimle/torch/layer.h"

namespace aimle {

class PerturbedMapImpl : public torch::nn::Module {
 public:
  explicit PerturbedMapImpl(LayerOptions options) : layer_(std::move(options)) {
    for (const auto& [name, tensor] : layer_.state()) register_buffer(name, tensor);
  }

  at::Tensor forward(const at::Tensor& theta, const LayerCall& call = {}) {
    return layer_(theta, call);
  }

  void train(bool on = true) override {
    torch::nn::Module::train(on);
    layer_.train(on);
  }

  // The state keeps its float64 and int64 whatever the model's type; only the device follows.
  void to(torch::Device device, torch::Dtype, bool non_blocking = false) override {
    move(device, non_blocking);
  }
  void to(torch::Dtype, bool = false) override {}
  void to(torch::Device device, bool non_blocking = false) override { move(device, non_blocking); }

  const Layer& layer() const { return layer_; }
  std::map<std::string, at::Tensor> stats() const { return layer_.stats(); }

 private:
  void move(torch::Device device, bool non_blocking) {
    for (const auto* tensors : {&layer_.state(), &layer_.constants()}) {
      for (const auto& [name, tensor] : *tensors) {
        tensor.set_data(tensor.to(device, tensor.scalar_type(), non_blocking));
      }
    }
  }

  Layer layer_;
};
TORCH_MODULE(PerturbedMap);

}  // namespace aimle
