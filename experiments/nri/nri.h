// Neural relational inference with latent trees (Minervini, Franceschi, Niepert, AAAI 2023, "Neural
// Relational Inference"; data and models of Paulus et al., NeurIPS 2020): `aimle train nri`.
//
// Objective, to be minimised: the mean of nll + kl (model.h); ELBO = -(nll + kl). An epoch is
// `epoch_steps` steps, after which the validation set is measured, predicting every frame from the
// true one before it; the test set is measured whenever validation was never better:
//
//   val_elbo, val_nll, val_kl
//   val_precision, val_recall      of the links, averaged over graphs; guessing gives 20 %
//   val_accuracy                   share of pairs that are told rightly
//
// evaluation=alike: every method shows its noise-free tree, batch norm is in eval mode.
// evaluation=authors: sst and ste show noisy trees, the others noise-free ones; links are scored on
// trees perturbed by Gumbel(0, 1), or on all that is not in them if that gives a higher precision
// (then recall is four times the precision); batch norm uses the batch at test.
#pragma once

#include "experiments/engine/experiment.h"

namespace aimle::experiments::nri {

Experiment experiment();

}  // namespace aimle::experiments::nri
