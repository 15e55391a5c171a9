// The oracle of the exact distributions: every structure and its weight, in long double. And how rows
// are compared with it.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "aimle/exact/distribution.h"
#include "tests/draws.h"

namespace aimle::listed {

using draws::Rng;
using draws::uniform;
using Structure = std::vector<uint8_t>;

/// Uniform in [-spread, spread).
inline double real(Rng& rng, double spread) {
  return spread * (static_cast<double>(rng() >> 11) * 0x1p-52 - 1.0);
}

template <class T>
std::vector<T> reals(Rng& rng, int64_t n, double spread) {
  std::vector<T> x;
  for (int64_t j = 0; j < n; ++j) x.push_back(static_cast<T>(real(rng, spread)));
  return x;
}

struct Listed {
  double log_partition = 0;
  std::vector<double> marginals;
  std::vector<double> covariance;  // Cov(z) v
};

/// Structures that choose a masked entry have been left out by the caller.
template <class T>
Listed evaluate(const std::vector<Structure>& structures, const std::vector<T>& x,
                const std::vector<T>& v) {
  const size_t n = x.size();
  std::vector<long double> exponent;
  std::vector<long double> along;
  long double largest = -std::numeric_limits<long double>::infinity();
  for (const Structure& z : structures) {
    long double score = 0;
    long double product = 0;
    for (size_t j = 0; j < n; ++j) {
      if (z[j] == 0) continue;
      score += static_cast<long double>(x[j]);
      product += static_cast<long double>(v[j]);
    }
    exponent.push_back(score);
    along.push_back(product);
    largest = std::max(largest, score);
  }
  long double total = 0;
  for (long double& e : exponent) total += e = std::exp(e - largest);
  long double mean = 0;
  std::vector<long double> mu(n), both(n);
  for (size_t i = 0; i < structures.size(); ++i) mean += exponent[i] / total * along[i];
  for (size_t i = 0; i < structures.size(); ++i) {
    for (size_t j = 0; j < n; ++j) {
      if (structures[i][j] == 0) continue;
      mu[j] += exponent[i] / total;
      both[j] += exponent[i] / total * (along[i] - mean);
    }
  }
  Listed listed{.log_partition = static_cast<double>(largest + std::log(total))};
  for (size_t j = 0; j < n; ++j) {
    listed.marginals.push_back(static_cast<double>(mu[j]));
    listed.covariance.push_back(static_cast<double>(both[j]));
  }
  return listed;
}

/// One row of any distribution, evaluated.
template <class T>
struct Evaluated {
  Status status = Status::kOk;
  T log_partition = 0;
  std::vector<T> marginals, covariance;
};

/// A mask is a vector of 0 and 1, or empty.
template <class T, class S>
Evaluated<T> evaluate_row(const S& solver, const std::vector<T>& x, const std::vector<T>& v,
                          const Structure& mask = {}) {
  const std::vector<char> allowed(mask.begin(), mask.end());
  Evaluated<T> row{.marginals = std::vector<T>(x.size()), .covariance = std::vector<T>(x.size())};
  evaluate(solver, DistributionRows<T>{
                       .count = 1,
                       .scores = x.data(),
                       .mask = mask.empty() ? nullptr : reinterpret_cast<const bool*>(&allowed[0]),
                       .v = v.data(),
                       .status = &row.status,
                       .log_partition = &row.log_partition,
                       .marginals = row.marginals.data(),
                       .covariance = row.covariance.data()});
  return row;
}

/// `samples` draws of one row, [samples, n].
template <class T, class S>
std::vector<T> sample_row(const S& solver, const std::vector<T>& x, int64_t samples, Key key,
                          const Structure& mask = {}) {
  const std::vector<char> allowed(mask.begin(), mask.end());
  std::vector<T> z(static_cast<size_t>(samples) * x.size());
  Status status{};
  sample(solver,
         SampleRows<T>{.count = 1,
                       .samples = samples,
                       .scores = x.data(),
                       .mask = mask.empty() ? nullptr : reinterpret_cast<const bool*>(&allowed[0]),
                       .key = key,
                       .status = &status,
                       .z = z.data()});
  EXPECT_EQ(status, Status::kOk);
  return z;
}

/// Those of the structures that choose no masked entry.
inline std::vector<Structure> unmasked(const std::vector<Structure>& all, const Structure& mask) {
  std::vector<Structure> left;
  for (const Structure& z : all) {
    bool fits = true;
    for (size_t j = 0; j < mask.size(); ++j) fits &= z[j] <= mask[j];
    if (fits) left.push_back(z);
  }
  return left;
}

/// Within a few roundings of float64, relatively for marginals, and of T.
template <class T>
void expect_near(const Evaluated<T>& row, const Listed& expected, double spread_of_v,
                 double rounding = 1e-13) {
  const double eps = std::numeric_limits<T>::epsilon() + rounding;
  ASSERT_EQ(row.status, Status::kOk);
  ASSERT_NEAR(row.log_partition, expected.log_partition,
              eps * (1 + std::abs(expected.log_partition)));
  for (size_t j = 0; j < expected.marginals.size(); ++j) {
    ASSERT_NEAR(row.marginals[j], expected.marginals[j], eps * expected.marginals[j]) << "mu " << j;
    ASSERT_NEAR(row.covariance[j], expected.covariance[j],
                eps * std::abs(expected.covariance[j]) + rounding * spread_of_v)
        << "covariance " << j;
  }
}

/// Every structure about as often as it should be: within five standard errors, and none that has
/// no probability.
template <class T, class S>
void expect_frequencies(const S& solver, const std::vector<Structure>& structures,
                        const std::vector<T>& x, Key key, int64_t samples,
                        const Structure& mask = {}) {
  const std::vector<T> z = sample_row(solver, x, samples, key, mask);
  std::vector<int64_t> seen(structures.size());
  for (int64_t s = 0; s < samples; ++s) {
    Structure drawn(x.size());
    for (size_t j = 0; j < x.size(); ++j) {
      drawn[j] = z[static_cast<size_t>(s) * x.size() + j] == 1 ? 1 : 0;
    }
    const auto found = std::find(structures.begin(), structures.end(), drawn);
    ASSERT_NE(found, structures.end()) << "sample " << s << " is not a structure";
    ++seen[static_cast<size_t>(found - structures.begin())];
  }
  double total = 0;
  std::vector<double> p;
  for (const Structure& structure : structures) {
    double score = 0;
    for (size_t j = 0; j < x.size(); ++j) score += structure[j] ? static_cast<double>(x[j]) : 0;
    p.push_back(std::exp(score));
    total += p.back();
  }
  const auto count = static_cast<double>(samples);
  for (size_t i = 0; i < structures.size(); ++i) {
    p[i] /= total;
    ASSERT_NEAR(static_cast<double>(seen[i]) / count, p[i],
                5 * std::sqrt(p[i] * (1 - p[i]) / count) + 5 / count)
        << "structure " << i;
  }
}

template <class T>
std::string text(const std::vector<T>& x) {
  std::ostringstream out;
  out.precision(std::numeric_limits<T>::max_digits10);
  for (const T value : x) out << ' ' << +value;
  return out.str();
}

}  // namespace aimle::listed
