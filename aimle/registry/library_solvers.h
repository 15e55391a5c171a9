// The list of the library's solvers and their exact distributions. Everything else is derived from
// it.
#pragma once

#include <type_traits>

#include "aimle/exact/arborescence_distribution.h"
#include "aimle/exact/bernoulli_distribution.h"
#include "aimle/exact/categorical.h"
#include "aimle/exact/chain_distribution.h"
#include "aimle/exact/dag_distribution.h"
#include "aimle/exact/k_subset.h"
#include "aimle/exact/knapsack_distribution.h"
#include "aimle/exact/lattice_distribution.h"
#include "aimle/exact/tree_distribution.h"
#include "aimle/map/arborescence.h"
#include "aimle/map/argmax.h"
#include "aimle/map/assignment.h"
#include "aimle/map/bernoulli.h"
#include "aimle/map/chain.h"
#include "aimle/map/graph_path.h"
#include "aimle/map/grid_path.h"
#include "aimle/map/knapsack.h"
#include "aimle/map/lattice_path.h"
#include "aimle/map/spanning_tree.h"
#include "aimle/map/topk.h"

namespace aimle {

template <class... S>
struct SolverList {
  /// Calls `body(std::type_identity<S>{})` for each of them.
  template <class Body>
  static void for_each(Body body) {
    (body(std::type_identity<S>{}), ...);
  }
};

using LibrarySolvers = SolverList<  //
    Argmax,                         //
    TopK,                           //
    SpanningTree,                   //
    GridPath,                       //
    Bernoulli,                      //
    Assignment,                     //
    Chain,                          //
    Arborescence,                   //
    LatticePath,                    //
    LatticeMoves,                   //
    Knapsack,                       //
    GraphPath,                      //
    DagPath>;

}  // namespace aimle
