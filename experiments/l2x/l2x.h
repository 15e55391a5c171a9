// Learning to explain (Minervini, Franceschi, Niepert, AAAI 2023, "Learning to Explain"): `aimle
// train l2x`. k words of a review are chosen, and its rating is predicted from them.
//
//   train_loss, val_loss, test_loss   mean squared error of the rating, times 100
//   precision                         share of the words chosen in annotated reviews that people
//                                     marked (or the generator planted), in percent
//
// Validation and test are halves of the held-out reviews, split differently for every seed. In
// evaluation every method chooses the k best scores, without noise.
#pragma once

#include "experiments/engine/experiment.h"

namespace aimle::experiments::l2x {

Experiment experiment();

}  // namespace aimle::experiments::l2x
