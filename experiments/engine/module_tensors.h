// The tensors of a module, its optimiser and its estimator, for the maps of a Training.
#pragma once

#include <torch/nn/module.h>

#include <map>
#include <string>

#include "aimle/torch/estimator.h"
#include "experiments/engine/adam.h"

namespace aimle::experiments {

inline std::map<std::string, at::Tensor> parameters_of(const torch::nn::Module& module) {
  std::map<std::string, at::Tensor> result;
  for (const auto& entry : module.named_parameters()) result[entry.key()] = entry.value();
  return result;
}

/// Parameters and buffers.
inline std::map<std::string, at::Tensor> tensors_of(const torch::nn::Module& module) {
  std::map<std::string, at::Tensor> result = parameters_of(module);
  for (const auto& entry : module.named_buffers()) result[entry.key()] = entry.value();
  return result;
}

inline std::map<std::string, at::Tensor> state_of(const Adam& adam, const Estimator& estimator) {
  std::map<std::string, at::Tensor> result;
  for (const auto& [name, tensor] : adam.state()) result["adam." + name] = tensor;
  for (const auto& [name, tensor] : estimator.state()) result["estimator." + name] = tensor;
  return result;
}

}  // namespace aimle::experiments
