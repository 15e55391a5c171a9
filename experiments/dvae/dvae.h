// The discrete VAE on MNIST (Minervini, Franceschi, Niepert, AAAI 2023, "Discrete Variational
// Auto-Encoder"): `aimle train dvae`.
//
// Measured on the test set after every epoch, in nats per image:
//
//   test_loss                the authors' figure: BCE + KL(softmax theta)/S, S noisy samples (as
//                            train_loss). The weight of KL decreases with the number of samples.
//   test_nelbo               E BCE + KL, both for codes drawn from q (evidence.h): a bound on
//                            -log p(x), comparable between all settings. E BCE is estimated with K
//                            codes; K is --bound_codes, 10 by default.
//   test_iwK                 the importance-weighted bound of K codes, for binarised digits
//   test_code_kl             KL of q from the uniform prior
//   test_bce                 BCE of a noisy sample
//   test_kl_softmax          KL(softmax theta), the authors' penalty
//   test_bce_kl_softmax      BCE + KL(softmax theta), one noisy sample: a bound for k = 1 and
//                            Gumbel noise of temperature 1, but not for other k and temperatures
//   test_bce_kl_softmax_map  BCE + KL(softmax theta), the noise-free code: never a bound
//
// Noisy samples are perturb-and-MAP with the run's noise for every method, including those trained
// on soft samples. q has the temperature of that noise. For k = 1 and Gumbel noise q is the
// distribution of noisy samples; for other k or noise their probabilities are not known, and
// test_nelbo and test_iwK use codes drawn exactly from the same scores instead. With a validation
// split the same is measured on it, as val_loss and so on.
#pragma once

#include "experiments/engine/experiment.h"

namespace aimle::experiments::dvae {

Experiment experiment();

}  // namespace aimle::experiments::dvae
