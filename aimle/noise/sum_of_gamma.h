// Sum-of-Gamma noise. Niepert, Minervini, Franceschi, "Implicit MLE", NeurIPS 2021.
//
//   eps = (1/k) ( sum_{i=1..s} Gamma(shape 1/k, scale k/i) - ln s ),   s = iterations
//
// mean (H_s - ln s)/k, variance (sum 1/i^2)/k; the sum of k independent draws tends to Gumbel(0, 1)
// as s grows. Sampled from one uniform through a table of its quantile function (quantile_table.h),
// built from the exact distribution (gamma_mixture.h); the usual method, a sum of s Gamma draws,
// takes some hundred times as long. For all settings and words, the noise is within 5e-7 (1 +
// |eps|) of the exact quantile. For large k most of the mass is within float32's resolution of
// -ln(s)/k.
//
//   const auto table = aimle::quantile_table({.k = 10, .iterations = 10});
//   aimle::NoiseSource source{.kind = aimle::NoiseKind::kSumOfGamma, .table = table->data()};
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace aimle {

struct SumOfGamma {
  static constexpr int64_t kMaxK = 1'000'000;
  static constexpr int64_t kMaxIterations = 1000;

  int64_t k = 1;
  int64_t iterations = 10;

  /// Throws std::invalid_argument unless 1 <= k <= kMaxK and 1 <= iterations <= kMaxIterations.
  void validate() const;
};

/// The quantile table for these settings, built on first use and kept for the life of the process
/// (8 KB each). Building takes about 1 ms for 10 iterations, 5 ms for 100 and 0.1 s for 1000.
/// Thread-safe.
std::shared_ptr<const std::vector<float>> quantile_table(const SumOfGamma& settings);

}  // namespace aimle
