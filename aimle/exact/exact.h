// The table of exact distributions: include this to have them all, and to hold any of them.
#pragma once

#include <variant>

#include "aimle/exact/categorical.h"
#include "aimle/exact/k_subset.h"
#include "aimle/exact/tree_distribution.h"

namespace aimle {

/// By the settings of the solver whose structures they are over.
using Distribution = std::variant<Argmax, TopK, SpanningTree>;

static_assert(ExactDistribution<Argmax> && ExactDistribution<TopK> &&
              ExactDistribution<SpanningTree>);

}  // namespace aimle
