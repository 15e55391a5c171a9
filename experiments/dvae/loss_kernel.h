// The losses of the discrete VAE (losses.h) and their gradients, in one kernel each: a block computes
// the cross-entropy of one sample, or the KL of one example.
#pragma once

#include <cstdint>

namespace aimle::experiments::dvae {

/// float32, contiguous, on the current device.
struct LossInputs {
  const float* logits;  // [batch, samples, pixels]
  const float* x;       // [batch, pixels]
  const float* theta;   // [batch, rows, size]; null: no KL
  int64_t batch, samples, pixels, rows, size;
};

struct LossWeights {
  double kl;     // of the KL, next to the sum of the samples' cross-entropies
  double share;  // of the mean over the examples
};

struct LossOutputs {
  float* objective;  // a single number
  double* means;     // loss, cross-entropy and KL, as TrainingLoss::means
};

/// Whether the program was built with GPU kernels.
bool has_loss_kernel();

/// Starts the kernel of the losses on a stream: bce [batch, samples] and kl [batch].
void losses_on_device(const LossInputs& inputs, float* bce, float* kl, void* stream);

/// Their weighted sum and their means.
void sum_losses_on_device(const LossInputs& sizes, const float* bce, const float* kl,
                          const LossWeights& weights, const LossOutputs& outputs, void* stream);

/// The gradients of the objective, times the number at `upstream`: like logits and theta.
void loss_gradients_on_device(const LossInputs& inputs, const LossWeights& weights,
                              const float* upstream, float* d_logits, float* d_theta, void* stream);

}  // namespace aimle::experiments::dvae
