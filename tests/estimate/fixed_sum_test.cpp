#include "aimle/estimate/fixed_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "aimle/estimate/fixed_total.h"

namespace aimle {
namespace {

/// The order of the header, one addition at a time.
double by_the_book(const std::vector<double>& terms) {
  std::vector<double> partial(32, 0.0);
  for (size_t j = 0; j < terms.size(); ++j) partial[j % 32] += terms[j];
  for (size_t half = 16; half > 0; half /= 2) {
    for (size_t lane = 0; lane < half; ++lane) partial[lane] += partial[lane + half];
  }
  return partial[0];
}

double sum_of(const std::vector<double>& terms) {
  return fixed_sum(static_cast<int64_t>(terms.size()),
                   [&](int64_t j) { return terms[static_cast<size_t>(j)]; });
}

TEST(FixedSum, KeepsItsOrderForEveryLength) {
  std::mt19937_64 rng(1);
  std::uniform_real_distribution<double> exponent(-30, 30);
  bool order_matters = false;
  for (size_t n = 0; n < 300; ++n) {
    std::vector<double> terms(n);
    double left_to_right = 0.0;
    for (double& term : terms) {
      term = std::exp2(exponent(rng)) * (rng() % 2 ? 1 : -1);
      left_to_right += term;
    }
    EXPECT_EQ(sum_of(terms), by_the_book(terms)) << "n=" << n;
    order_matters |= sum_of(terms) != left_to_right;
  }
  EXPECT_TRUE(order_matters) << "these terms cannot tell one order from another";
}

TEST(FixedSum, IsWhatTheGpuMustGive) {
  // 1 + 2^-53 is rounded to 1; two such halves added first are not lost.
  std::vector<double> terms(64, 0.0);
  terms[0] = 1.0;
  terms[16] = terms[48] = 0x1p-53;
  EXPECT_EQ(sum_of(terms), 1.0 + 0x1p-52);
  terms[48] = 0.0;
  terms[32] = 0x1p-53;
  EXPECT_EQ(sum_of(terms), 1.0);
}

TEST(FixedTotal, SumsChunksAndThenTheirSums) {
  std::mt19937_64 rng(2);
  std::uniform_real_distribution<double> exponent(-30, 30);
  bool order_matters = false;
  for (const size_t n : {0, 1, 1000, 1024, 1025, 5000, 1024 * 1024 + 3}) {
    std::vector<double> terms(n);
    for (double& term : terms) term = std::exp2(exponent(rng));
    std::vector<double> left = terms;
    while (left.size() > 1) {
      std::vector<double> sums;
      for (size_t begin = 0; begin < left.size(); begin += 1024) {
        const size_t end = std::min(left.size(), begin + 1024);
        sums.push_back(by_the_book({left.begin() + static_cast<std::ptrdiff_t>(begin),
                                    left.begin() + static_cast<std::ptrdiff_t>(end)}));
      }
      left = sums;
    }
    const double total = fixed_total(static_cast<int64_t>(n),
                                     [&](int64_t j) { return terms[static_cast<size_t>(j)]; });
    EXPECT_EQ(total, n == 0 ? 0.0 : left[0]) << "n=" << n;
    order_matters |= total != sum_of(terms);
  }
  EXPECT_TRUE(order_matters) << "these terms cannot tell one order from another";
}

}  // namespace
}  // namespace aimle
