// The losses of the discrete VAE: the binary cross-entropy of the pixels, and the authors' penalty
// of the code. On a GPU they and their gradients are kernels of this project (loss_kernel.h).
#pragma once

#include <ATen/core/Tensor.h>

#include "experiments/engine/experiment.h"

namespace aimle::experiments::dvae {

/// logits [B, S, pixels], x [B, pixels] in [0, 1] -> [B, S]
at::Tensor reconstruction_loss(const at::Tensor& logits, const at::Tensor& x);

/// KL(softmax(theta) || uniform), theta [B, rows, size] -> [B]: the authors' penalty for every k
/// and every noise. The KL of the codes themselves is in evidence.h.
at::Tensor softmax_kl(const at::Tensor& theta);

struct TrainingLoss {
  at::Tensor objective;  // mean over the examples of BCE, summed over samples, + kl_weight KL
  at::Tensor bce;        // [B, S], without a gradient
  at::Tensor means;      // float64 [3]: BCE + KL / S, BCE, KL; without a gradient
};

TrainingLoss training_loss(const Batch& batch, const at::Tensor& logits, const at::Tensor& x,
                           const at::Tensor& theta, double kl_weight);

}  // namespace aimle::experiments::dvae
