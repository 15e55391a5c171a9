#include "experiments/engine/adam.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

namespace aimle::experiments {
namespace {

/// On a GPU a block of the fused kernel takes up to 65,536 entries of a tensor, so a small model
/// would leave most of the chip idle. This many slices avoid that; more would need more launches.
constexpr int64_t kSlices = 64;
constexpr int64_t kAlignment = 1024;  // entries of a slice are a multiple of it

/// The arguments of the fused kernel: lists of equal lengths.
struct FusedLists {
  std::vector<at::Tensor> parameters, gradients, first, second, steps;

  void add(const at::Tensor& parameter, const at::Tensor& gradient, const at::Tensor& m,
           const at::Tensor& v, const at::Tensor& step) {
    parameters.push_back(parameter);
    gradients.push_back(gradient);
    first.push_back(m);
    second.push_back(v);
    steps.push_back(step);
  }
};

}  // namespace

Adam::Adam(const std::map<std::string, at::Tensor>& parameters, AdamOptions options)
    : options_(options) {
  for (const auto& [name, parameter] : parameters) {
    parameters_.push_back(parameter);
    first_.push_back(at::zeros_like(parameter.detach()));
    second_.push_back(at::zeros_like(parameter.detach()));
    state_["first." + name] = first_.back();
    state_["second." + name] = second_.back();
    entries_ += parameter.numel();
  }
  TORCH_CHECK(!parameters_.empty(), "[aimle::Adam] expected parameters but got none");
  steps_ = at::zeros({}, parameters_[0].options().dtype(at::kFloat).requires_grad(false));
  state_["steps"] = steps_;
  sum_.emplace(parameters_);
}

void Adam::zero_grad() {
  for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
}

void Adam::step() {
  const at::NoGradGuard no_grad;
  sum_->finish();
  steps_.add_(1);
  FusedLists lists;
  const int64_t slice = (entries_ / kSlices / kAlignment + 1) * kAlignment;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor parameter = parameters_[i].detach(), &gradient = parameters_[i].grad();
    if (!gradient.defined()) continue;
    if (!parameter.is_cuda() || !parameter.is_contiguous() || !gradient.is_contiguous()) {
      lists.add(parameter, gradient, first_[i], second_[i], steps_);
      continue;
    }
    const auto slices = [slice](const at::Tensor& x) { return x.view({-1}).split(slice); };
    const auto p = slices(parameter), g = slices(gradient);
    const auto m = slices(first_[i]), v = slices(second_[i]);
    for (size_t j = 0; j < p.size(); ++j) lists.add(p[j], g[j], m[j], v[j], steps_);
  }
  if (lists.parameters.empty()) return;
  at::_fused_adam_(lists.parameters, lists.gradients, lists.first, lists.second,
                   /*max_exp_avg_sqs=*/{}, lists.steps, options_.lr, options_.beta1, options_.beta2,
                   options_.weight_decay, options_.eps, /*amsgrad=*/false, /*maximize=*/false);
}

}  // namespace aimle::experiments
