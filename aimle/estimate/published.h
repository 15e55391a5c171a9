// The targets that reproduce published numbers. They use the noise exactly as the authors' code
// adds it, although other choices are better.
#pragma once

#include "aimle/estimate/target.h"

namespace aimle {

/// The paper's rule (lambda = alpha ||theta|| / ||d||, alpha changed by steps) and the authors'
/// variant of it. With these
///   * the two directions of an edge have separate noise. Otherwise they share it, and directed
///     scores are the same model as the undirected theta_ij + theta_ji;
///   * noise over grids of costs is Gumbel at temperature 1 by default, and not centred. Otherwise
///     it is Normal of another scale by default, and always centred.
inline bool is_published(const Target& target) {
  const auto* adaptive = std::get_if<AdaptiveTarget>(&target);
  if (adaptive == nullptr) return false;
  return adaptive->reference || (adaptive->scale == AdaptiveTarget::Scale::kTheta &&
                                 adaptive->rule == AdaptiveTarget::Rule::kAdditive);
}

}  // namespace aimle
