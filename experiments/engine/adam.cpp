#include "experiments/engine/adam.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "experiments/engine/adam_kernel.h"
#include "experiments/engine/on_device.h"

namespace aimle::experiments {

Adam::Adam(const std::map<std::string, at::Tensor>& parameters, AdamOptions options)
    : options_(options) {
  for (const auto& [name, parameter] : parameters) {
    parameters_.push_back(parameter);
    first_.push_back(at::zeros_like(parameter.detach()));
    second_.push_back(at::zeros_like(parameter.detach()));
    state_["first." + name] = first_.back();
    state_["second." + name] = second_.back();
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
  std::vector<AdamTensor> on_device;
  std::vector<at::Tensor> parameters, gradients, first, second, steps;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor parameter = parameters_[i].detach(), &gradient = parameters_[i].grad();
    if (!gradient.defined()) continue;
    if (has_adam_kernel() && suit_kernels({parameter, gradient})) {
      on_device.push_back({.parameter = parameter.mutable_data_ptr<float>(),
                           .gradient = gradient.const_data_ptr<float>(),
                           .first = first_[i].mutable_data_ptr<float>(),
                           .second = second_[i].mutable_data_ptr<float>(),
                           .size = parameter.numel()});
      continue;
    }
    parameters.push_back(parameter);
    gradients.push_back(gradient);
    first.push_back(first_[i]);
    second.push_back(second_[i]);
    steps.push_back(steps_);
  }
  if (!on_device.empty()) {
    const ops::DeviceContext context(steps_);
    step_on_device(
        on_device,
        {options_.lr, options_.beta1, options_.beta2, options_.eps, options_.weight_decay},
        steps_.const_data_ptr<float>(), context.get().stream);
  }
  if (parameters.empty()) return;
  at::_fused_adam_(parameters, gradients, first, second, /*max_exp_avg_sqs=*/{}, steps, options_.lr,
                   options_.beta1, options_.beta2, options_.weight_decay, options_.eps,
                   /*amsgrad=*/false, /*maximize=*/false);
}

}  // namespace aimle::experiments
