// The table of solvers: include this to have them all, and to hold any of them in one variable.
#pragma once

#include <variant>

#include "aimle/map/argmax.h"
#include "aimle/map/grid_path.h"
#include "aimle/map/spanning_tree.h"
#include "aimle/map/topk.h"

namespace aimle {

using Solver = std::variant<Argmax, TopK, SpanningTree, GridPath>;

static_assert(MapSolver<Argmax> && MapSolver<TopK> && MapSolver<SpanningTree> &&
              MapSolver<GridPath>);

}  // namespace aimle
