// Shortest paths on terrain maps (Vlastelica et al., ICLR 2020; Minervini, Franceschi, Niepert,
// AAAI 2023, "Warcraft"): `aimle train warcraft`.
//
// A network maps a picture to a cost for every cell, the solver maps the costs to the cheapest
// path, and the loss is the Hamming distance to the true path; true costs are never used. Noise is
// added as in the library (x = -cost + noise). The samples' losses are summed and their gradients
// of the costs averaged, so that lambda and alpha mean the same for every S.
//
//   --loss fenchel_young   the perturbed Fenchel-Young loss instead of an estimator
//   --model resnet18       the baseline without a solver: binary cross-entropy for every cell
//
//   test_optimal        share of paths as cheap as the true one (within 1e-6): the paper's accuracy
//   test_perfect_match  share of paths equal to the true one
//   test_cost_ratio     mean cost of the predicted path / cost of the true one, over valid paths
//   test_valid          share of predictions that are paths (the solver's always are)
//   test_loss           Hamming distance (resnet18: binary cross-entropy)
//
// The public code evaluates on the test set only; here a validation set, if there is one, selects
// the best epoch.
#pragma once

#include "experiments/engine/experiment.h"

namespace aimle::experiments::warcraft {

Experiment experiment();

}  // namespace aimle::experiments::warcraft
