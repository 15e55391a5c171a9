// An estimator that is a perturb-and-MAP layer.
#pragma once

#include <utility>

#include "aimle/torch/estimator.h"
#include "aimle/torch/layer.h"

namespace aimle {

class LayerEstimator : public Estimator {
 public:
  LayerEstimator(const EstimatorInfo& info, LayerOptions options)
      : Estimator(info), layer_(std::move(options)) {}

  at::Tensor forward(const at::Tensor& theta, const LayerCall& call) const override {
    return layer_(theta, call);
  }
  void train(bool on) override {
    Estimator::train(on);
    layer_.train(on);
  }
  const Tensors& state() const override { return layer_.state(); }
  const Tensors& constants() const override { return layer_.constants(); }
  void defer_updates() override { layer_.defer_updates(); }
  at::Tensor waiting_counts() const override { return layer_.waiting_counts(); }
  void apply_counts(const at::Tensor& sum) override { layer_.apply_counts(sum); }
  Tensors stats() const override { return layer_.stats(); }

 protected:
  const LayerOptions& options() const { return layer_.options(); }

 private:
  Layer layer_;
};

}  // namespace aimle
