// Sum-of-Gamma noise. Niepert, Minervini, Franceschi, "Implicit MLE", NeurIPS 2021.
//
//   eps = (1/k) ( sum_{i=1..s} Gamma(shape 1/k, scale k/i) - ln s ),   s = iterations
//
// mean (H_s - ln s)/k, variance (sum 1/i^2)/k; the sum of k independent draws tends to Gumbel(0, 1)
// as s grows. Sampled from one uniform through a table of its quantile function.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace aimle {

struct SumOfGamma {
  int64_t k = 1;
  int64_t iterations = 10;

  /// Throws std::invalid_argument unless 1 <= k <= 1000 and 1 <= iterations <= 100.
  void validate() const;
};

/// The quantile table for these settings, built on first use (milliseconds) and kept for the life
/// of the process. Thread-safe. Layout: quantile_table.h.
std::shared_ptr<const std::vector<float>> quantile_table(const SumOfGamma& settings);

}  // namespace aimle
