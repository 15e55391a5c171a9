// What the experiments train: a model with its estimator and optimiser, on data that all runs of a
// command share.
#pragma once

#include <torch/nn/module.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "experiments/engine/adam.h"
#include "experiments/engine/estimator_options.h"

namespace aimle::experiments {

inline std::map<std::string, at::Tensor> parameters_of(const torch::nn::Module& module) {
  std::map<std::string, at::Tensor> result;
  for (const auto& entry : module.named_parameters()) result[entry.key()] = entry.value();
  return result;
}

/// The base of an experiment's own class, which has step and evaluate, and of schedule, pictures and
/// exhibits those that it needs, as in Training.
template <class Data, class Model>
class Learner {
 public:
  Estimator& estimator() const { return *estimator_; }

  std::map<std::string, at::Tensor> model_tensors() const {
    std::map<std::string, at::Tensor> result = parameters_of(*model_);
    for (const auto& entry : model_->named_buffers()) result[entry.key()] = entry.value();
    return result;
  }

  std::map<std::string, at::Tensor> state_tensors() const {
    std::map<std::string, at::Tensor> result;
    for (const auto& [name, tensor] : adam_->state()) result["adam." + name] = tensor;
    for (const auto& [name, tensor] : estimator_->state()) result["estimator." + name] = tensor;
    return result;
  }

  Scalars watch() const { return estimator_state(*estimator_); }

 protected:
  Learner(const Settings& settings, std::shared_ptr<const Data> data, Model model)
      : data_(std::move(data)),
        device_(settings.get<std::string>("device")),
        method_(estimator_info(settings.get<std::string>("method"))),
        model_(std::move(model)) {
    model_->to(device_);
  }

  void use(const Settings& settings, const SolverSpec& solver, const EstimatorOptions& options,
           AdamOptions adam) {
    given_samples_ = given_samples(method_, options);
    estimator_ = make_estimator(settings, solver, options, device_);
    adam_ = std::make_unique<Adam>(parameters_of(*model_), adam);
  }

  /// The objective, with the gradient of theta that the estimator takes from the losses of the
  /// samples, [B, ..., S]: it adds a gradient, not a value.
  at::Tensor with_surrogate(const at::Tensor& objective, const Batch& batch,
                            const at::Tensor& theta, const at::Tensor& z, const at::Tensor& losses,
                            const LayerCall& call = {}) const {
    if (!estimator_->needs_losses()) return objective;
    constexpr std::array<int64_t, 2> kAfterBatch = {1, 2};
    const auto after_batch = at::IntArrayRef(kAfterBatch).slice(0, losses.dim() - 1);
    const at::Tensor scored = estimator_->surrogate(theta, z, losses, call) - losses;
    return objective + batch.mean(scored.sum(after_batch));
  }

  void descend(const at::Tensor& objective) {
    adam_->zero_grad();
    if (!one_.defined()) one_ = at::ones_like(objective);  // else backward makes one in every step
    objective.backward(one_);
    adam_->step();
  }

  Scalars with_stats(Scalars scalars) const {
    for (auto& entry : estimator_stats(*estimator_)) scalars.push_back(std::move(entry));
    return scalars;
  }

  std::shared_ptr<const Data> data_;
  at::Device device_;
  const EstimatorInfo& method_;
  int64_t given_samples_ = 1;  // of a step
  Model model_;
  std::unique_ptr<Estimator> estimator_;
  std::unique_ptr<Adam> adam_;

 private:
  at::Tensor one_;
};

/// The training of an object of a class derived from Learner.
template <class Own>
Training training_of(const std::shared_ptr<Own>& learner, int64_t examples) {
  Training result = {
      .model = learner->model_tensors(),
      .state = learner->state_tensors(),
      .examples = examples,
      .step = [learner](const Batch& batch) { return learner->step(batch); },
      .estimator = {learner, &learner->estimator()},
      .evaluate = [learner](const at::Tensor& key) { return learner->evaluate(key); },
      .watch = [learner] { return learner->watch(); }};
  if constexpr (requires { &Own::schedule; }) {
    result.schedule = [learner](int64_t step) { return learner->schedule(step); };
  }
  if constexpr (requires { &Own::pictures; }) {
    result.pictures = [learner](const at::Tensor& key) { return learner->pictures(key); };
  }
  if constexpr (requires { &Own::exhibits; }) {
    result.exhibits = [learner](const at::Tensor& key) { return learner->exhibits(key); };
  }
  return result;
}

/// Experiment::load, from functions that read the data once and begin a run on them.
template <class Data>
std::function<Start(const Settings&)> loading(
    Data (*load)(const Settings&),
    Training (*begin)(const Settings&, const std::shared_ptr<const Data>&)) {
  return [=](const Settings& settings) -> Start {
    const auto data = std::make_shared<const Data>(load(settings));
    return [=](const Settings& run) { return begin(run, data); };
  };
}

}  // namespace aimle::experiments
