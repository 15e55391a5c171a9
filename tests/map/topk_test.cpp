#include "aimle/map/topk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/map/topk_instances.h"

namespace aimle {
namespace {

using conformance::Batch;
using conformance::Instances;
using conformance::instruction_sets;
using conformance::one_in;
using conformance::Rng;
using conformance::solve_batch;
using conformance::Solved;
using conformance::uniform;
using conformance::WithIsa;

template <class T>
Solved<T> solve_with(Isa isa, const TopK& solver, const Batch<T>& batch) {
  const WithIsa with(isa);
  return solve_batch(solver, batch);
}

template <class T>
Batch<T> one_row(std::vector<T> scores) {
  const auto size = static_cast<int64_t>(scores.size());
  return {.count = 1, .size = size, .scores = std::move(scores)};
}

std::string message_of(const TopK& solver) {
  try {
    solver.validate();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(TopK, NamesTheSettingsThatItRefuses) {
  EXPECT_EQ(message_of({.n = 0, .k = 0}), "[aimle::topk] expected n >= 1 but got n=0");
  EXPECT_EQ(message_of({.n = -3, .k = 0}), "[aimle::topk] expected n >= 1 but got n=-3");
  EXPECT_EQ(message_of({.n = 5, .k = 7}), "[aimle::topk] expected 0 <= k <= n but got k=7, n=5");
  EXPECT_EQ(message_of({.n = 5, .k = -1}), "[aimle::topk] expected 0 <= k <= n but got k=-1, n=5");
  EXPECT_EQ(message_of({.n = 5, .k = 5}), "accepted");
  EXPECT_EQ(message_of({.n = 5, .k = 0}), "accepted");
}

TEST(TopK, ComplainsOfKFirstThenOfNaNThenOfTooFewEntries) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const int64_t n : {3, 20, 90}) {
    Batch<float> batch{.count = 6, .size = n, .k = {n + 1, -1, n, n, n - 1, 0}};
    batch.scores.assign(static_cast<size_t>(6 * n), 1.0f);
    for (const int64_t row : {0, 2, 5}) batch.scores[static_cast<size_t>(row * n)] = kNaN;
    for (const int64_t row : {2, 3, 4}) batch.scores[static_cast<size_t>(row * n + 1)] = -kInfinity;
    const std::vector<Status> expected{Status::kBadK,          Status::kBadK, Status::kNaN,
                                       Status::kTooFewEntries, Status::kOk,   Status::kNaN};
    for (const Isa isa : instruction_sets()) {
      EXPECT_EQ(solve_with(isa, {.n = n}, batch).status, expected) << name(isa) << " n=" << n;
    }
  }
}

TEST(TopK, FindsANaNAtEveryPlace) {
  for (const int64_t n : {1, 7, 8, 20, 63, 65, 66, 89, 97, 113, 128, 153, 183, 350}) {
    Batch<float> batch{.count = n, .size = n};
    batch.scores.assign(static_cast<size_t>(n * n), 1.0f);
    for (int64_t i = 0; i < n; ++i) {
      batch.scores[static_cast<size_t>(i * n + i)] = std::numeric_limits<float>::quiet_NaN();
    }
    for (const int64_t k : {int64_t{0}, int64_t{1}, int64_t{10}, int64_t{20}, n / 2, n}) {
      if (k > n) continue;
      for (const Isa isa : instruction_sets()) {
        EXPECT_EQ(solve_with(isa, {.n = n, .k = k}, batch).status,
                  std::vector<Status>(static_cast<size_t>(n), Status::kNaN))
            << name(isa) << " n=" << n << " k=" << k;
      }
    }
  }
}

/// Sizes at and around every boundary of the algorithms, and others.
int64_t draw_n(Rng& rng) {
  constexpr int64_t kBoundaries[] = {8, 12, 16, 20, 24, 32, 48, 64, 96, 128, 350, 512, 1024};
  if (one_in(rng, 40)) return uniform(rng, 4090, 4200);
  if (one_in(rng, 3)) return uniform(rng, 1, 300);
  return kBoundaries[uniform(rng, 0, 12)] + uniform(rng, -1, 1);
}

int64_t draw_k(int64_t n, Rng& rng) {
  constexpr int64_t kBoundaries[] = {0, 1, 4, 5, 12, 13, 16, 17, 24, 25};
  if (one_in(rng, 2)) return std::min(n, kBoundaries[uniform(rng, 0, 9)]);
  return one_in(rng, 4) ? n - uniform(rng, 0, std::min<int64_t>(n, 2)) : uniform(rng, 0, n);
}

/// Any float there is, but NaN only rarely.
template <class T>
T draw_bits(Rng& rng) {
  T value;
  do {
    const uint64_t bits = rng();
    std::memcpy(&value, &bits, sizeof value);
  } while (std::isnan(value) && !one_in(rng, 50));
  return value;
}

template <class T>
void draw_row(T* row, int64_t n, Rng& rng) {
  using Limits = std::numeric_limits<T>;
  const T special[] = {
      T(0),          T(-0.0),          Limits::infinity(),   -Limits::infinity(),
      Limits::max(), Limits::lowest(), Limits::denorm_min(), -Limits::denorm_min()};
  const int64_t kind = uniform(rng, 0, 6);
  const int64_t distinct = uniform(rng, 1, 20);
  for (int64_t j = 0; j < n; ++j) {
    switch (kind) {
      case 0:
        row[j] = static_cast<T>(uniform(rng, -1'000'000, 1'000'000));
        break;
      case 1:
        row[j] = static_cast<T>(uniform(rng, 1, distinct));
        break;
      case 2:
        row[j] = special[uniform(rng, 0, 7)];
        break;
      case 3:
        row[j] = draw_bits<T>(rng);
        break;
      case 4:  // rising: every score is a new survivor
        row[j] = static_cast<T>(j / distinct);
        break;
      case 5:  // falling
        row[j] = -static_cast<T>(j / distinct);
        break;
      case 6:  // rare peaks in a sea of ties
        row[j] = one_in(rng, 30) ? static_cast<T>(uniform(rng, 1, 5)) : T(0);
        break;
    }
  }
  if (one_in(rng, 3)) {
    for (int64_t j = 0; j < n; ++j) {
      if (one_in(rng, 10)) row[j] = special[uniform(rng, 0, 7)];
    }
  }
}

template <class T>
void fuzz(int seeds) {
  for (int seed = 0; seed < seeds; ++seed) {
    Rng rng(static_cast<uint64_t>(seed));
    const int64_t n = draw_n(rng);
    const TopK solver{.n = n, .k = draw_k(n, rng)};
    Batch<T> batch{.count = uniform(rng, 1, 19), .size = n};
    batch.scores.resize(static_cast<size_t>(batch.count * n));
    for (int64_t i = 0; i < batch.count; ++i) draw_row(batch.scores.data() + i * n, n, rng);
    if (one_in(rng, 3)) {
      batch.mask.resize(batch.scores.size());
      const int64_t rarity = uniform(rng, 2, 20);
      for (bool& open : batch.mask) open = !one_in(rng, rarity);
    }
    for (int64_t i = 0, own = one_in(rng, 3); own != 0 && i < batch.count; ++i) {
      batch.k.push_back(one_in(rng, 30) ? n + 1 : draw_k(n, rng));
    }
    for (const Isa isa : instruction_sets()) {
      const WithIsa with(isa);
      expect_oracle(solver, batch, solve_batch(solver, batch));
      if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
    }
  }
}

TEST(TopK, AgreesWithTheOracleWhateverTheFloats) { fuzz<float>(3000); }
TEST(TopK, AgreesWithTheOracleWhateverTheDoubles) { fuzz<double>(1500); }

/// The rule itself, in linear time: k entries; none left out is larger than one chosen, and of
/// those that equal the least chosen the chosen ones come first.
template <class T>
testing::AssertionResult is_topk(const Batch<T>& row, int64_t k, const Solved<T>& solved) {
  if (solved.status[0] != Status::kOk) return testing::AssertionFailure() << "not solved";
  int64_t chosen = 0;
  T least = std::numeric_limits<T>::infinity();
  for (size_t j = 0; j < row.scores.size(); ++j) {
    if (solved.z[j] == 0) continue;
    if (solved.z[j] != 1) return testing::AssertionFailure() << "z is neither 0 nor 1 at " << j;
    ++chosen;
    least = std::min(least, row.scores[j]);
  }
  if (chosen != k) return testing::AssertionFailure() << chosen << " chosen instead of " << k;
  bool left_one_out = false;
  for (size_t j = 0; j < row.scores.size() && k > 0; ++j) {
    const bool in = solved.z[j] == 1;
    if (!in && row.scores[j] > least) return testing::AssertionFailure() << "left out " << j;
    if (row.scores[j] != least) continue;
    if (in && left_one_out) return testing::AssertionFailure() << "a later tie was chosen: " << j;
    left_one_out |= !in;
  }
  return testing::AssertionSuccess();
}

TEST(TopK, TakesAMillionEntries) {
  constexpr int64_t kSize = 1'000'000;
  Rng rng(1);
  std::vector<float> random(kSize);
  for (float& x : random) x = static_cast<float>(uniform(rng, -1'000'000'000, 1'000'000'000));
  std::vector<float> rising(kSize);
  std::iota(rising.begin(), rising.end(), -500'000.0f);
  std::vector<float> falling(rising.rbegin(), rising.rend());
  std::vector<float> tied(kSize);
  for (float& x : tied) x = static_cast<float>(uniform(rng, 0, 2));
  std::vector<float> equal(kSize, 4.0f);
  for (const auto* scores : {&random, &rising, &falling, &tied, &equal}) {
    const Batch<float> batch = one_row(*scores);
    for (const int64_t k : {int64_t{0}, int64_t{1}, int64_t{10}, int64_t{1000}, int64_t{30'000},
                            kSize / 2, kSize - 1, kSize}) {
      for (const Isa isa : instruction_sets()) {
        EXPECT_TRUE(is_topk(batch, k, solve_with(isa, {.n = kSize, .k = k}, batch)))
            << name(isa) << " k=" << k << " first score " << (*scores)[0];
      }
    }
  }
}

}  // namespace
}  // namespace aimle
