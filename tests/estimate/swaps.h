// At which score the entries of a solution enter and leave it, and what that gains.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "aimle/map/solver.h"
#include "aimle/map/swap_finder.h"
#include "aimle/registry/library_solvers.h"
#include "tests/draws.h"

namespace aimle::cases {

/// Solver number `which` of kThresholdSolverCount, of about `size` entries.
inline constexpr int kThresholdSolverCount = 8;
inline Solver draw_threshold_solver(int which, int64_t size, draws::Rng& rng) {
  const auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(size)));
  const auto lattice = [&](auto solver, int64_t cells) {
    constexpr decltype(solver.moves) kMoves[] = {decltype(solver.moves)::kAll,
                                                 decltype(solver.moves)::kStraight,
                                                 decltype(solver.moves)::kDiagonal};
    const int64_t width = draws::uniform(rng, 1, std::max<int64_t>(1, root + 1));
    solver.height = std::max<int64_t>(1, cells / width);
    solver.width = width;
    solver.moves = kMoves[rng() % 3];
    return Solver(solver);
  };
  switch (which) {
    case 0:
      return Argmax{.n = size};
    case 1:
      return TopK{.n = size, .k = draws::uniform(rng, 0, size)};
    case 2:
    case 3:
      return SpanningTree{.vertices = std::max<int64_t>(2, root),
                          .layout = which == 2 ? SpanningTree::Layout::kUndirected
                                               : SpanningTree::Layout::kDirected};
    case 4:
      return Bernoulli{.n = size};
    case 5: {
      const int64_t labels = draws::uniform(rng, 1, std::max<int64_t>(1, root));
      return Chain{.length = 1 + std::max<int64_t>(1, size / (labels * labels)), .labels = labels};
    }
    case 6:
      return lattice(LatticePath{}, size);
    default:
      return lattice(LatticeMoves{}, (size + 2) / 3);
  }
}

struct SwapsOfRow {
  bool solved = true;
  std::vector<double> threshold;   // not finite where there is none
  std::vector<double> difference;  // of <d, z>, with and without j
};

/// Of the solution z of scores x; argmax and top-k by their definition, others by their finder.
template <class T>
SwapsOfRow find_swaps(const Solver& solver, const T* x, const bool* mask, const T* z, const T* d) {
  const int64_t n = solver.size();
  const auto size = static_cast<size_t>(n);
  SwapsOfRow swaps{.threshold = std::vector<double>(size, std::numeric_limits<double>::infinity()),
                   .difference = std::vector<double>(size)};
  if (const auto finder = solver.swap_finder<T>()) {
    std::vector<uint8_t> bits((size + 7) / 8);
    for (size_t j = 0; j < size; ++j) bits[j / 8] |= static_cast<uint8_t>((z[j] == T(1)) << j % 8);
    swaps.solved = finder->find({.x = x, .mask = mask, .bits = bits.data(), .d = d},
                                swaps.threshold.data(), swaps.difference.data());
    return swaps;
  }
  int64_t worst_in = -1, best_out = -1;
  for (int64_t j = 0; j < n; ++j) {
    if (mask != nullptr && !mask[j]) continue;
    if (z[j] == T(1)) {
      if (worst_in < 0 || x[j] <= x[worst_in]) worst_in = j;
    } else if (best_out < 0 || x[j] > x[best_out]) {
      best_out = j;
    }
  }
  for (int64_t j = 0; j < n; ++j) {
    const auto at = static_cast<size_t>(j);
    const int64_t partner = z[j] == T(1) ? best_out : worst_in;
    if (partner < 0) continue;
    swaps.threshold[at] = static_cast<double>(x[partner]);
    swaps.difference[at] = static_cast<double>(d[j]) - static_cast<double>(d[partner]);
  }
  return swaps;
}

}  // namespace aimle::cases
