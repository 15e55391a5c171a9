// The exact distribution of a sum of Gamma variables, from which the quantile table is built.
//
//   Y = sum_{i=1..s} Gamma(shape 1/k, scale 1/i)
//
// Moschopoulos, "The distribution of the sum of independent gamma random variables", Annals of the
// Institute of Statistical Mathematics 37, 1985: Y is a mixture of Gammas that share the smallest
// scale 1/s, with shapes a + j, a = s/k, and positive weights w_j, the coefficients of
//   prod_i ((i/s) / (1 - (1 - i/s) z))^(1/k).
// With x = s y and t_m = x^(a+m) exp(-x) / Gamma(a+m+1), summing by parts gives
//   F(y)     = sum_m t_m (w_0 + ... + w_m)
//   1 - F(y) = Q(a, x) + sum_m t_m (w_{m+1} + w_{m+2} + ...)
//   F'(y)    = s (w_0 t_0 a / x + sum_m t_m w_{m+1}):
// Only positive terms, so both tails keep their relative accuracy (about 1e-12). t_m is a Poisson
// weight around m = x, so an evaluation takes O(sqrt x) terms. The J weights (about 55 s of them)
// take O(J s).
#pragma once

#include <cstdint>
#include <vector>

namespace aimle {

class GammaMixture {
 public:
  /// 1 <= k, 1 <= s.
  GammaMixture(int64_t k, int64_t s);

  /// A tail's probability and the density, at y > 0.
  struct Value {
    double probability;
    double density;
  };
  Value lower(double y) const;  // P(Y <= y)
  Value upper(double y) const;  // P(Y > y)

 private:
  double scale_;                 // s
  double shape_;                 // a
  std::vector<double> weights_;  // w_j
  std::vector<double> below_;    // w_0 + ... + w_j
  std::vector<double> above_;    // w_{j+1} + w_{j+2} + ...
};

}  // namespace aimle
