// Argmax: the one-hot vector of the largest score.
//
//   z = argmax over unit vectors e_j of <x, e_j>; the lowest index wins a tie.
//
// O(n). -inf counts as masked, +inf is larger than every number; a row without choosable entries is
// kTooFewEntries. NaN in a masked entry does not matter.
//
//   aimle::solve(aimle::Argmax{.n = 5}, rows);
#pragma once

#include "aimle/map/map.h"

namespace aimle {

struct Argmax {
  static constexpr std::string_view kName = "argmax";
  static constexpr Sense kSense = Sense::kMax;
  static constexpr Swaps kSwaps = Swaps::kEntry;

  int64_t n = 0;

  int64_t size() const { return n; }
  double work_ns() const { return 5.0 + 0.25 * static_cast<double>(n); }
  SolutionSize solution_size() const { return {.fixed = true, .ones = 1}; }
  void validate() const;
  std::vector<uint8_t> structures() const;
  double structure_count() const { return static_cast<double>(n); }

  static void declare(Declaration<Argmax>& solver);
  void fit(Shape instance) { n = instance[0]; }
};

void solve_rows(const Argmax& solver, const Rows<float>& rows);
void solve_rows(const Argmax& solver, const Rows<double>& rows);

}  // namespace aimle
