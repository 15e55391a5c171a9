#include "experiments/engine/batch_norm.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "experiments/engine/processes.h"

namespace aimle::experiments {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// All dimensions but that of the channels.
std::vector<int64_t> dims_of(const at::Tensor& x) {
  std::vector<int64_t> dims = {0};
  for (int64_t d = 2; d < x.dim(); ++d) dims.push_back(d);
  return dims;
}

/// [C] as it is multiplied with x.
at::Tensor along(const at::Tensor& channel, const at::Tensor& x) {
  std::vector<int64_t> sizes(static_cast<size_t>(x.dim()), 1);
  sizes[1] = -1;
  return channel.to(x.scalar_type()).view(sizes);
}

struct Statistics {
  at::Tensor mean, variance;  // float64 [C]
  at::Tensor rows;            // float64 [1]: values a channel, over all processes
};

Statistics shared_statistics(const at::Tensor& x) {
  const int64_t channels = x.size(1);
  const auto rows = static_cast<double>(x.numel() / channels);
  const auto [variance, mean] = at::var_mean(x, dims_of(x), /*correction=*/0);
  const at::Tensor m = mean.to(at::kDouble);
  const at::Tensor message = at::cat(
      {m * rows, (variance.to(at::kDouble) + m * m) * rows, at::full({1}, rows, m.options())});
  sum_over_processes(message);
  const at::Tensor all = message.narrow(0, 2 * channels, 1);
  const at::Tensor shared = message.narrow(0, 0, channels) / all;
  const at::Tensor squares = message.narrow(0, channels, channels) / all;
  return {.mean = shared, .variance = (squares - shared * shared).clamp_min(0), .rows = all};
}

struct SharedNorm : torch::autograd::Function<SharedNorm> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, const at::Tensor& mean,
                            const at::Tensor& inverse, const at::Tensor& rows) {
    ctx->save_for_backward({x, weight, mean, inverse, rows});
    return at::addcmul(along(bias - mean * inverse * weight, x), x, along(inverse * weight, x));
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &mean = saved[2], &inverse = saved[3];
    const at::Tensor& dy = gradients[0];
    const int64_t channels = x.size(1);
    const at::Tensor normal = (x - along(mean, x)) * along(inverse, x);
    const at::Tensor dbias = dy.sum(dims_of(x)), dweight = (dy * normal).sum(dims_of(x));
    const at::Tensor message = at::cat({dbias, dweight}).to(at::kDouble);
    sum_over_processes(message);
    const at::Tensor means = message / saved[4];
    const at::Tensor dx = (dy - along(means.narrow(0, 0, channels), x) -
                           normal * along(means.narrow(0, channels, channels), x)) *
                          along(inverse * weight, x);
    return {dx, dweight.to(weight.scalar_type()), dbias.to(weight.scalar_type()), {}, {}, {}};
  }
};

}  // namespace

bool shares_statistics(bool training) {
  return training && processes().several() && at::GradMode::is_enabled();
}

at::Tensor batch_norm_over_processes(torch::nn::BatchNormOptions options, const at::Tensor& x,
                                     const at::Tensor& weight, const at::Tensor& bias,
                                     at::Tensor running_mean, at::Tensor running_var,
                                     at::Tensor batches) {
  Statistics seen;
  {
    const at::NoGradGuard no_grad;
    seen = shared_statistics(x);
    batches.add_(1);
    const double momentum = options.momentum().value();
    running_mean.lerp_(seen.mean.to(running_mean.scalar_type()), momentum);
    running_var.lerp_(
        (seen.variance * (seen.rows / (seen.rows - 1.0))).to(running_var.scalar_type()), momentum);
  }
  return SharedNorm::apply(x, weight, bias, seen.mean, (seen.variance + options.eps()).rsqrt(),
                           seen.rows);
}

}  // namespace aimle::experiments
