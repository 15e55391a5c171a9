// Which targets stand for published numbers, and therefore see the noise as the authors' code adds
// it, where we would do better.
#pragma once

#include "aimle/estimate/target.h"

namespace aimle {

/// The paper's rule (lambda = alpha ||theta|| / ||d||, alpha moved by steps) and the authors'
/// variant of it. With these
///   * the two directions of an edge have a noise each. Otherwise they share one, and directed
///     scores are the same model as the undirected theta_ij + theta_ji;
///   * noise over grids of costs is Gumbel at temperature 1 unless another is given, and added as
///     it is. Otherwise it is Normal of another scale by default, and centred in any case.
inline bool is_published(const Target& target) {
  const auto* adaptive = std::get_if<AdaptiveTarget>(&target);
  if (adaptive == nullptr) return false;
  return adaptive->reference || (adaptive->scale == AdaptiveTarget::Scale::kTheta &&
                                 adaptive->rule == AdaptiveTarget::Rule::kAdditive);
}

}  // namespace aimle
