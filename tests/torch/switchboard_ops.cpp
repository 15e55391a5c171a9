// The C++ switchboard as ops, so that pytest can compare it with the Python one.
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <torch/library.h>

#include <tuple>

#include "aimle/torch/estimator.h"

namespace aimle {
namespace {

using MaybeTensor = std::optional<at::Tensor>;

/// `steps` passes with the losses <weight, z> + <curvature, z^2> / 2 of every sample. z and theta's
/// gradient of the last one, and the state after it, tensors in the order of their names.
std::tuple<at::Tensor, at::Tensor, std::vector<at::Tensor>> estimate(
    const std::string& name, const std::string& solver_text,
    const std::vector<std::string>& settings, const std::vector<std::string>& values,
    const at::Tensor& theta, const at::Tensor& key, const MaybeTensor& mask, const MaybeTensor& k,
    const at::Tensor& weight, const at::Tensor& curvature, int64_t steps, bool training) {
  const at::AutoGradMode with_gradients(true);
  EstimatorOptions options;
  for (size_t i = 0; i < settings.size(); ++i) set_option(options, settings[i], values[i]);
  const SolverSpec spec = solver(solver_text);
  const auto layer = estimator(name, spec, options);
  layer->to(theta.device());
  layer->train(training);
  const LayerCall call{.mask = mask, .row_data = k, .key = key};
  at::Tensor leaf, z;
  for (int64_t step = 0; step < steps; ++step) {
    leaf = theta.detach().clone().requires_grad_(true);
    z = (*layer)(leaf, call);
    const at::Tensor terms = z.mul(weight).add(z.square().mul(curvature).div(2));
    const at::Tensor losses = terms.flatten(-spec.instance_dims()).sum(-1);
    const at::Tensor total = layer->surrogate(leaf, z, losses, call).sum();
    if (total.requires_grad()) total.backward();
  }
  std::vector<at::Tensor> state;
  for (const auto& [known, tensor] : layer->state()) state.push_back(tensor.clone());
  const at::Tensor gradient = leaf.grad().defined() ? leaf.grad() : theta.new_zeros(theta.sizes());
  return {z.detach(), gradient, state};
}

std::tuple<at::Tensor, at::Tensor> fenchel_young(const std::string& solver_text,
                                                 const at::Tensor& theta, const at::Tensor& target,
                                                 const at::Tensor& key, const MaybeTensor& mask,
                                                 int64_t nb_samples, double temperature) {
  const at::AutoGradMode with_gradients(true);
  const at::Tensor leaf = theta.detach().clone().requires_grad_(true);
  const at::Tensor loss = perturbed_fenchel_young_loss(
      leaf, target, solver(solver_text), {.nb_samples = nb_samples, .temperature = temperature},
      {.mask = mask, .key = key});
  loss.sum().backward();
  return {loss.detach(), leaf.grad()};
}

std::tuple<at::Tensor, at::Tensor> spo_plus(const std::string& solver_text, const at::Tensor& theta,
                                            const at::Tensor& true_theta,
                                            const MaybeTensor& solution, const MaybeTensor& mask) {
  const at::AutoGradMode with_gradients(true);
  const at::Tensor leaf = theta.detach().clone().requires_grad_(true);
  const at::Tensor loss =
      spo_plus_loss(leaf, true_theta, solver(solver_text), {.solution = solution}, {.mask = mask});
  loss.sum().backward();
  return {loss.detach(), leaf.grad()};
}

/// Of every estimator: name, structures and settings (comma-separated), needs_losses, soft.
std::vector<std::vector<std::string>> infos() {
  std::vector<std::vector<std::string>> result;
  const auto joined = [](const std::vector<std::string>& parts) {
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
    return text;
  };
  for (const EstimatorInfo& info : estimators()) {
    result.push_back({info.name, joined(info.structures()), joined(info.settings),
                      info.needs_losses ? "true" : "false", info.soft ? "true" : "false"});
  }
  return result;
}

TORCH_LIBRARY(aimle_switchboard, library) {
  library.def("estimate", estimate);
  library.def("fenchel_young", fenchel_young);
  library.def("spo_plus", spo_plus);
  library.def("infos", infos);
}

}  // namespace
}  // namespace aimle
