#include "experiments/engine/batch_norm.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "experiments/engine/batch_norm_kernel.h"
#include "experiments/engine/on_device.h"
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

/// The kernels of a matrix x.
struct DeviceNorm : torch::autograd::Function<DeviceNorm> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, const NormTensors& running, double eps,
                            double momentum) {
    const ops::DeviceContext context(x);
    const at::Tensor y = at::empty_like(x);
    const at::Tensor mean = at::empty_like(running.running_mean), inverse = at::empty_like(mean);
    const at::Tensor scratch = scratch_for(x);
    norm_on_device(task(x, weight, bias, mean, inverse, scratch),
                   {.y = y.mutable_data_ptr<float>(),
                    .running_mean = running.running_mean.mutable_data_ptr<float>(),
                    .running_variance = running.running_var.mutable_data_ptr<float>(),
                    .batches = running.batches.mutable_data_ptr<int64_t>(),
                    .eps = eps,
                    .momentum = momentum},
                   context.get().stream);
    ctx->save_for_backward({x, weight, bias, mean, inverse});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &bias = saved[2];
    const ops::DeviceContext context(x);
    const at::Tensor dy = gradients[0].contiguous(), dx = at::empty_like(x);
    const at::Tensor dweight = at::empty_like(weight), dbias = at::empty_like(bias);
    const at::Tensor scratch = scratch_for(x);
    norm_gradients_on_device(task(x, weight, bias, saved[3], saved[4], scratch),
                             {.dy = dy.const_data_ptr<float>(),
                              .dx = dx.mutable_data_ptr<float>(),
                              .dweight = dweight.mutable_data_ptr<float>(),
                              .dbias = dbias.mutable_data_ptr<float>()},
                             context.get().stream);
    return {dx, dweight, dbias, {}, {}, {}};
  }

 private:
  static at::Tensor scratch_for(const at::Tensor& x) {
    return at::empty({norm_scratch(x.size(0), x.size(1))}, x.options().dtype(at::kDouble));
  }

  static NormTask task(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                       const at::Tensor& mean, const at::Tensor& inverse,
                       const at::Tensor& scratch) {
    return {.x = x.const_data_ptr<float>(),
            .weight = weight.const_data_ptr<float>(),
            .bias = bias.const_data_ptr<float>(),
            .mean = mean.mutable_data_ptr<float>(),
            .inverse = inverse.mutable_data_ptr<float>(),
            .scratch = scratch.mutable_data_ptr<double>(),
            .rows = x.size(0),
            .columns = x.size(1)};
  }
};

}  // namespace

bool shares_statistics() { return processes().several() && at::GradMode::is_enabled(); }

at::Tensor batch_norm_over_processes(torch::nn::BatchNormOptions options, const at::Tensor& x,
                                     const NormTensors& tensors) {
  Statistics seen;
  {
    const at::NoGradGuard no_grad;
    seen = shared_statistics(x);
    tensors.batches.add_(1);
    const double momentum = options.momentum().value();
    const auto move = [&](const at::Tensor& running, const at::Tensor& value) {
      running.lerp_(value.to(running.scalar_type()), momentum);
    };
    move(tensors.running_mean, seen.mean);
    move(tensors.running_var, seen.variance * (seen.rows / (seen.rows - 1.0)));
  }
  return SharedNorm::apply(x, tensors.weight, tensors.bias, seen.mean,
                           (seen.variance + options.eps()).rsqrt(), seen.rows);
}

bool suits_norm_kernel(const at::Tensor& x, const NormTensors& tensors) {
  return has_norm_kernel() && tensors.batches.scalar_type() == at::kLong && x.dim() == 2 &&
         x.size(0) > 1 && x.size(1) == tensors.weight.size(0) &&
         suit_kernels({x, tensors.weight, tensors.bias, tensors.running_mean, tensors.running_var});
}

at::Tensor batch_norm_on_device(torch::nn::BatchNormOptions options, const at::Tensor& x,
                                const NormTensors& tensors) {
  return DeviceNorm::apply(x, tensors.weight, tensors.bias, tensors, options.eps(),
                           options.momentum().value());
}

}  // namespace aimle::experiments
