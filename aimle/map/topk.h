// TopK: the indicator of the k largest scores.
//
//   z = argmax over z in {0,1}^n with sum(z) = k of <x, z>; the lower index wins a tie.
//
// Exactly k entries are chosen, even with ties. k may differ per row (`Rows::k`). -inf counts as
// masked, +inf is larger than every number, -0 equals +0. A row with fewer than k choosable entries
// is kTooFewEntries, a k outside [0, n] is kBadK. Precedence: kBadK, kNaN, kTooFewEntries. k = 0
// gives a row of zeros.
//
// Rows of up to 64 entries: several at a time across the lanes of vectors, by sorting networks.
// Longer ones in O(n): the k-th largest of the maxima of disjoint groups bounds the threshold from
// below, and the threshold is selected from the few scores above that bound; float32 has an AVX2
// version.
//
//   aimle::solve(aimle::TopK{.n = 20, .k = 10}, rows);
#pragma once

#include "aimle/map/map.h"

namespace aimle {

struct TopK {
  static constexpr std::string_view kName = "topk";
  static constexpr Sense kSense = Sense::kMax;
  static constexpr Swaps kSwaps = Swaps::kEntry;

  int64_t n = 0;
  int64_t k = 1;

  int64_t size() const { return n; }
  double work_ns() const { return 10.0 + 0.5 * static_cast<double>(n); }
  SolutionSize solution_size() const { return {.fixed = true, .ones = k}; }
  void validate() const;
  std::vector<uint8_t> structures() const;
  double structure_count() const;

  static void declare(Declaration<TopK>& solver);
  void fit(Shape instance) { n = instance[0]; }
  void take_k_per_row() { k = 0; }
};

void solve_rows(const TopK& solver, const Rows<float>& rows);
void solve_rows(const TopK& solver, const Rows<double>& rows);

}  // namespace aimle
