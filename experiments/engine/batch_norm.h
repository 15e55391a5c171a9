// Batch norm over the whole batch, also where processes share it: in training with gradients, means
// and variances are those of all their rows. Evaluation never communicates.
//
// In training on a GPU, matrices have kernels of their own (batch_norm_kernel.h).
#pragma once

#include <torch/nn/modules/batchnorm.h>

namespace aimle::experiments {

/// The parameters and buffers of a module.
struct NormTensors {
  at::Tensor weight, bias, running_mean, running_var, batches;
};

/// x [rows, C, ...] normalised by the statistics of all processes' rows, which move the running
/// ones; differentiable. The module is in training mode.
at::Tensor batch_norm_over_processes(torch::nn::BatchNormOptions options, const at::Tensor& x,
                                     const NormTensors& tensors);

/// Whether processes share the batch of a module in training.
bool shares_statistics();

/// The same for a matrix x and this process alone, by the kernels.
at::Tensor batch_norm_on_device(torch::nn::BatchNormOptions options, const at::Tensor& x,
                                const NormTensors& tensors);

/// Whether the kernels take x.
bool suits_norm_kernel(const at::Tensor& x, const NormTensors& tensors);

template <class Base>
class SharedBatchNormImpl : public Base {
 public:
  using Base::Base;
  at::Tensor forward(const at::Tensor& x) {
    if (!this->is_training()) return Base::forward(x);
    const NormTensors tensors = {this->weight, this->bias, this->running_mean, this->running_var,
                                 this->num_batches_tracked};
    if (shares_statistics()) return batch_norm_over_processes(this->options, x, tensors);
    if (suits_norm_kernel(x, tensors)) return batch_norm_on_device(this->options, x, tensors);
    return Base::forward(x);
  }
};
class BatchNorm1dImpl : public SharedBatchNormImpl<torch::nn::BatchNorm1dImpl> {
 public:
  using SharedBatchNormImpl::SharedBatchNormImpl;
};
TORCH_MODULE(BatchNorm1d);
class BatchNorm2dImpl : public SharedBatchNormImpl<torch::nn::BatchNorm2dImpl> {
 public:
  using SharedBatchNormImpl::SharedBatchNormImpl;
};
TORCH_MODULE(BatchNorm2d);

}  // namespace aimle::experiments
