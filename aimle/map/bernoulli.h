// Bernoulli: every entry on or off independently.
//
//   z = argmax over {0, 1}^n of <x, z>:   z_j = 1 where x_j > 0, else 0
//
// A score of 0, of either sign, is a tie: off. Masked entries and -inf are off, +inf is on. A row
// without choosable entries is a row of zeros, and kOk. NaN in an unmasked entry is kNaN. Solutions
// vary in size. With logistic noise, the default of layers, entry j is on with probability
// sigmoid(x_j), the exact distribution (exact/bernoulli_distribution.h).
//
// O(n).
//
//   aimle::solve(aimle::Bernoulli{.n = 5}, rows);
#pragma once

#include "aimle/map/map.h"

namespace aimle {

struct Bernoulli {
  static constexpr std::string_view kName = "bernoulli";
  static constexpr Sense kSense = Sense::kMax;

  int64_t n = 0;

  int64_t size() const { return n; }
  double work_ns() const { return 5.0 + 0.3 * static_cast<double>(n); }
  SolutionSize solution_size() const { return {}; }
  void validate() const;
  /// In ascending order as binary numbers; the last entry is the lowest digit.
  std::vector<uint8_t> structures() const;
  double structure_count() const;
  /// For the thresholds of its entries (swap_finder.h).
  template <class T>
  std::unique_ptr<SwapFinder<T>> swap_finder() const;

  static void declare(Declaration<Bernoulli>& solver);
  void fit(Shape instance) { n = instance[0]; }
};

void solve_rows(const Bernoulli& solver, const Rows<float>& rows);
void solve_rows(const Bernoulli& solver, const Rows<double>& rows);

}  // namespace aimle
