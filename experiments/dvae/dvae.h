// The discrete VAE on MNIST (Minervini, Franceschi, Niepert, AAAI 2023, "Discrete Variational
// Auto-Encoder"): `aimle train dvae`.
//
// The authors' test loss is BCE + KL/S on noisy samples: KL counts less the more samples there are.
// It is reported as test_loss, and beside it what can be compared between all settings:
//
//   test_loss         BCE + KL/S, S noisy samples (train_loss alike)
//   test_bce          BCE of a noisy sample
//   test_kl           KL
//   test_bound        BCE + KL, one noisy sample
//   test_bound_map    BCE + KL, the noise-free code
//
// Noisy samples are perturb-and-MAP with the run's noise, for every method, also those that are
// trained on soft samples. With a validation split, val_loss and val_bound are measured alike.
//
// Without --target_norm the adaptive step aims for c = min(k, size - k) changed entries, the
// forward one for 1.
#pragma once

#include "experiments/engine/experiment.h"

namespace aimle::experiments {

Experiment dvae();

}  // namespace aimle::experiments
