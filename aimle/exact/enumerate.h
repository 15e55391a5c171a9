// Enumerates every structure of a solver, and computes expectations of any function of them.
//
//   E f(z) = sum over z of p(z) f(z),     p(z) proportional to exp<x, z>  (GridPath: exp -<c, z>)
//   grad E f(z) = Cov(f(z), z) = sum over z of p(z) (f(z) - E f) z        (GridPath: its negative)
//
// by listing: slow and exact, without any assumption about f. It is used to test the other files of
// this folder and to evaluate the gradient estimators, and is the only exact distribution over grid
// paths. The order of the structures is fixed:
//
//   Argmax        entry 0, 1, ...                                            n structures
//   TopK          lexicographic in the chosen entries: 012, 013, ...         n! / k! (n - k)!
//   SpanningTree  ascending in the chosen edges read as a binary number      vertices^(vertices-2)
//   GridPath      likewise in the cells; the indicators of simple paths,     4 x 4: 3441, with
//                 each once, also where several paths cover the same cells   4 neighbours 138
//   LatticePath   lexicographic in the moves: diagonal, down, right          4 x 4: 63, with two
//   LatticeMoves  likewise                                                   kinds of moves 20, 1
//   Chain         lexicographic in the labels                                labels^length
//   Bernoulli     ascending as binary numbers, the last entry lowest         2^n
//   Assignment    in the order of its tie rule                               m! / (m - n)!, n <= m
//   Arborescence  in the order of its tie rule              (n + 1)^(n - 1); one root: n^(n - 1)
//
// Limits: kMaxStructures; trees of at most 7 vertices; grids of at most 4 x 4 cells. More throws
// std::invalid_argument. Structures of chains shortened by a mask are not among those of the full
// length: list those of the shorter chain. Costs of grids are not clipped here.
#pragma once

#include <vector>

#include "aimle/base/check.h"
#include "aimle/base/function_ref.h"
#include "aimle/map/solver.h"

namespace aimle {

inline constexpr int64_t kMaxStructures = 1'000'000;
inline constexpr int64_t kMaxEnumeratedVertices = 7;
inline constexpr int64_t kMaxEnumeratedSide = 4;

/// Throws std::invalid_argument if there are more than kMaxStructures of these settings, which the
/// message names.
template <class... Settings>
void check_structure_count(double count, const Settings&... settings) {
  AIMLE_CHECK(count <= static_cast<double>(kMaxStructures), "[aimle::enumerate] expected at most ",
              kMaxStructures, " structures but there are more ", settings...);
}

/// z [solver.size()] of 0 and 1, row after row.
inline std::vector<uint8_t> enumerate(const Solver& solver) { return solver.structures(); }

struct Expectation {
  Status status = Status::kOk;
  double value = 0;              // E f(z)
  std::vector<double> gradient;  // with respect to the scores as given, [size]
};

/// E f(z) and its gradient for one row. Masked entries, scores of -inf and costs of +inf are in no
/// structure; if none is left the row is kDisconnected or kTooFewEntries. NaN elsewhere, and the
/// other infinities, are kNaN. Value and gradient of a refused row are NaN.
Expectation expectation(const Solver& solver, const double* scores, const bool* mask,
                        FunctionRef<double(const uint8_t* z)> f);

}  // namespace aimle
