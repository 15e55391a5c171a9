// From the scores of pairs to the links of a tree, and the gradient of each pair.
//
// A pair {i, j} is two links. Here the pair's gradient is the sum of its links' gradients. The
// authors' solver reads its n (n-1) scores in one direction and writes its tree in both, so that
//
//   d        of a pair is that of its link with sender < receiver; the other link is ignored
//   lambda   = alpha ||theta|| / ||dy||, both norms over all links; both directions are alike, so
//            norms over pairs give the same ratio on average
//   count    of non-zeros is twice that of the pairs: target_norm and initial_gbar are halved
//   result   (z_L - z_R) / lambda is in both links of a pair, so its score gets it twice
//   lambda of imle: theta - lambda d is solved, but the difference is not divided by lambda
#pragma once

#include "aimle/torch/estimator.h"
#include "experiments/engine/options.h"
#include "experiments/nri/model.h"

namespace aimle::experiments::nri {

/// How the gradient of links becomes one of scores.
struct LinkGradient {
  bool one_way = false;  // use only the link of a pair with sender < receiver
  double factor = 1.0;   // on the estimator's result
};

/// By the options `directions` and `divide` and the method; `options` are those of its estimator.
LinkGradient link_gradient(const Settings& settings, const EstimatorOptions& options);

struct Choice {
  at::Tensor pairs;  // [B, S, n (n-1) / 2]
  at::Tensor links;  // [B, S, n (n-1)]
};

/// Trees for scores theta [B, n (n-1) / 2].
Choice choose(const Estimator& estimator, const Wiring& wiring, const LinkGradient& gradient,
              const at::Tensor& theta, const at::Tensor& key);

}  // namespace aimle::experiments::nri
