// The table of solvers: include this to have them all, and to hold any of them in one variable.
#pragma once

#include <cstdint>
#include <variant>

#include "aimle/map/argmax.h"
#include "aimle/map/grid_path.h"
#include "aimle/map/spanning_tree.h"
#include "aimle/map/topk.h"

namespace aimle {

using Solver = std::variant<Argmax, TopK, SpanningTree, GridPath>;

static_assert(MapSolver<Argmax> && MapSolver<TopK> && MapSolver<SpanningTree> &&
              MapSolver<GridPath>);

/// What is known of the number of ones in the solutions of a solver.
struct SolutionSize {
  bool fixed = false;  // all solutions of an instance have the same number
  int64_t ones = -1;   // that number; < 0: unknown. A k per row stands in for it.
};

inline SolutionSize solution_size(const Argmax&) { return {.fixed = true, .ones = 1}; }
inline SolutionSize solution_size(const TopK& solver) { return {.fixed = true, .ones = solver.k}; }
inline SolutionSize solution_size(const SpanningTree& solver) {
  const int64_t edges = solver.vertices - 1;
  return {.fixed = true,
          .ones = solver.layout == SpanningTree::Layout::kDirected ? 2 * edges : edges};
}
inline SolutionSize solution_size(const GridPath&) { return {}; }
inline SolutionSize solution_size(const Solver& solver) {
  return std::visit([](const auto& concrete) { return solution_size(concrete); }, solver);
}

}  // namespace aimle
