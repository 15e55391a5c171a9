// Neural relational inference with latent trees (Minervini, Franceschi, Niepert, AAAI 2023, "Neural
// Relational Inference"; data and models of Paulus et al., NeurIPS 2020): `aimle train nri`.
//
// Objective, to be minimised: the mean of nll + kl (model.h). An epoch is `epoch_steps` steps,
// after which the validation set is measured, predicting every frame from the true one before it;
// the test set is measured whenever validation was never better:
//
//   val_elbo = -(val_nll + val_kl)  the authors' figure, of one tree and of Gumbel scores; see
//   below val_tree_elbo                   = -(val_tree_nll + val_tree_kl): a bound, of trees drawn
//   from the
//                                   scores and with their own KL from uniform trees (evidence.h)
//   val_precision, val_recall       of the links, averaged over graphs; guessing gives 20 %
//   val_accuracy                    share of pairs that are told rightly
//
// All but the last two lines are by the number of points, n, and without the Gaussian's constant.
//
// kl is the KL of Gumbel(theta, 1) from Gumbel(0, 1), summed over links, so that every pair counts
// twice. If trees were drawn with Gumbel noise of temperature 1, -(E nll + kl) would be a bound,
// and a loose one: noisy scores tell more than the tree that is made of them. val_elbo takes the
// nll of the noise-free tree instead (unless the method is sst or ste and evaluation=authors), and
// the noise of most methods is another: it is no bound of anything, and is reported because the
// paper does.
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
