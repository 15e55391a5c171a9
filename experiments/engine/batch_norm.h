// Batch norm over the whole batch, also where processes share it: in training with gradients, means
// and variances are those of all their rows. Evaluation never communicates.
#pragma once

#include <torch/nn/modules/batchnorm.h>

namespace aimle::experiments {

/// x [rows, C, ...] normalised by the statistics of all processes' rows, which move the running
/// ones; differentiable. The module is in training mode.
at::Tensor batch_norm_over_processes(torch::nn::BatchNormOptions options, const at::Tensor& x,
                                     const at::Tensor& weight, const at::Tensor& bias,
                                     at::Tensor running_mean, at::Tensor running_var,
                                     at::Tensor batches);

/// Whether processes share the batch of a module in this mode.
bool shares_statistics(bool training);

template <class Base>
class SharedBatchNormImpl : public Base {
 public:
  using Base::Base;
  at::Tensor forward(const at::Tensor& x) {
    if (!shares_statistics(this->is_training())) return Base::forward(x);
    return batch_norm_over_processes(this->options, x, this->weight, this->bias, this->running_mean,
                                     this->running_var, this->num_batches_tracked);
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
