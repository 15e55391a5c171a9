// Neural relational inference with latent trees (Minervini, Franceschi, Niepert, AAAI 2023, "Neural
// Relational Inference"; data and models of Paulus et al., NeurIPS 2020): `aimle train nri`.
//
// Objective, to be minimised: the mean of nll + kl (model.h). An epoch is `epoch_steps` steps,
// followed by an evaluation on the validation set, which predicts every frame from the previous
// true one. The test set is evaluated whenever validation has improved:
//
//   val_elbo = -(val_nll + val_kl)  the authors' figure, for one tree and Gumbel scores; see below
//   val_tree_elbo                   = -(val_tree_nll + val_tree_kl): a bound, for trees drawn from
//                                   the scores, with their own KL from uniform trees (evidence.h)
//   val_precision, val_recall       of the links, averaged over graphs; guessing gives 20 %
//   val_accuracy                    share of pairs that are classified correctly
//
// All but the last two lines are divided by the number of points, n, and omit the Gaussian's
// constant.
//
// kl is the KL of Gumbel(theta, 1) from Gumbel(0, 1), summed over links, so that every pair counts
// twice. If trees were drawn with Gumbel noise of temperature 1, -(E nll + kl) would be a bound,
// but a loose one: noisy scores contain more information than the tree made from them. val_elbo
// instead uses the nll of the noise-free tree (unless the method is sst or ste and
// evaluation=authors), and
// most methods use another noise. It is therefore not a bound; it is reported because the paper
// reports it.
//
// evaluation=alike: every method uses its noise-free tree, and batch norm is in eval mode.
// evaluation=authors: sst and ste use noisy trees, the others noise-free ones; links are scored on
// trees perturbed by Gumbel(0, 1), or on their complement if that gives a higher precision (then
// recall is four times the precision); batch norm uses the batch at test.
#pragma once

#include "experiments/engine/experiment.h"

namespace aimle::experiments::nri {

Experiment experiment();

}  // namespace aimle::experiments::nri
