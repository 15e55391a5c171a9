// The layer and the estimators as torch::nn::Modules: moved, saved and switched to eval with the
// model they are part of.
//
//   struct Net : torch::nn::Module {
//     aimle::LayerModule choose = register_module(
//         "choose", aimle::LayerModule(aimle::aimle(aimle::topk(10))));
//     aimle::EstimatorModule pick = register_module(
//         "pick", aimle::EstimatorModule("sst", aimle::topk(10), aimle::EstimatorOptions{}));
//   };
//
// Header-only, because <torch/nn/module.h> is heavy and the library itself does not need it.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/serialize/input-archive.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "aimle/torch/estimator.h"
#include "aimle/torch/layer.h"

namespace aimle {

/// Wraps anything with `state()`, `stats()`, `train(on)`, `to(device)` and a call operator. The
/// state is saved; it keeps its types whatever the model's, but follows its device.
template <class Held>
class HoldingModule : public torch::nn::Module {
 public:
  explicit HoldingModule(std::unique_ptr<Held> held) : held_(std::move(held)) {
    for (const auto& [name, tensor] : held_->state()) register_buffer(name, tensor);
  }

  at::Tensor forward(const at::Tensor& theta, const LayerCall& call = {}) {
    return (*held_)(theta, call);
  }

  void train(bool on = true) override {
    torch::nn::Module::train(on);
    held_->train(on);
  }

  void to(torch::Device device, torch::Dtype, bool non_blocking = false) override {
    held_->to(device, non_blocking);
  }
  void to(torch::Dtype, bool = false) override {}
  void to(torch::Device device, bool non_blocking = false) override {
    held_->to(device, non_blocking);
  }

  std::map<std::string, at::Tensor> stats() const { return held_->stats(); }

  /// Archives without the sizes of a function's solutions, as older ones are, load too: the layer
  /// keeps its own.
  void load(torch::serialize::InputArchive& archive) override {
    for (auto& buffer : named_buffers(/*recurse=*/false)) {
      const bool found = archive.try_read(buffer.key(), buffer.value(), /*is_buffer=*/true);
      if (!found && buffer.key() != "sizes") archive.read(buffer.key(), buffer.value(), true);
    }
  }

 protected:
  Held& held() { return *held_; }
  const Held& held() const { return *held_; }

 private:
  std::unique_ptr<Held> held_;
};

class LayerModuleImpl : public HoldingModule<Layer> {
 public:
  explicit LayerModuleImpl(LayerOptions options)
      : HoldingModule(std::make_unique<Layer>(std::move(options))) {}

  const Layer& layer() const { return held(); }
};
TORCH_MODULE(LayerModule);

class EstimatorModuleImpl : public HoldingModule<Estimator> {
 public:
  EstimatorModuleImpl(const std::string& name, SolverSpec solver,
                      const EstimatorOptions& options = {})
      : HoldingModule(::aimle::estimator(name, std::move(solver), options)) {}

  /// The losses with theta's gradient; see Estimator::surrogate.
  at::Tensor surrogate(const at::Tensor& theta, const at::Tensor& z, const at::Tensor& losses,
                       const LayerCall& call = {}) const {
    return held().surrogate(theta, z, losses, call);
  }

  Estimator& estimator() { return held(); }
  const Estimator& estimator() const { return held(); }
};
TORCH_MODULE(EstimatorModule);

}  // namespace aimle
