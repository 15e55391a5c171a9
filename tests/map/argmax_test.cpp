#include "aimle/map/argmax.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <vector>

#include "tests/map/argmax_instances.h"

namespace aimle {
namespace {

using conformance::Batch;
using conformance::instruction_sets;
using conformance::solve_batch;
using conformance::WithIsa;

TEST(Argmax, NamesTheSizeThatItRefuses) {
  try {
    Argmax{.n = 0}.validate();
    FAIL() << "accepted n=0";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "[aimle::argmax] expected n >= 1 but got n=0");
  }
}

TEST(Argmax, FindsTheLargestAtEveryPlaceOfEveryLength) {
  for (const Isa isa : instruction_sets()) {
    const WithIsa with(isa);
    for (int64_t n = 1; n <= 70; ++n) {
      Batch<float> batch{.count = n, .size = n};
      batch.scores.assign(static_cast<size_t>(n * n), -2.0f);
      for (int64_t i = 0; i < n; ++i) batch.scores[static_cast<size_t>(i * n + i)] = -1.0f;
      const auto solved = solve_batch(Argmax{.n = n}, batch);
      for (int64_t i = 0; i < n * n; ++i) {
        ASSERT_EQ(solved.z[static_cast<size_t>(i)], i / n == i % n ? 1.0f : 0.0f)
            << name(isa) << " n=" << n << " row " << i / n;
      }
    }
  }
}

TEST(Argmax, FindsANaNAtEveryPlaceOfEveryLength) {
  for (const Isa isa : instruction_sets()) {
    const WithIsa with(isa);
    for (int64_t n = 1; n <= 70; ++n) {
      Batch<float> batch{.count = n, .size = n};
      batch.scores.assign(static_cast<size_t>(n * n), 1.0f);
      for (int64_t i = 0; i < n; ++i) {
        batch.scores[static_cast<size_t>(i * n + i)] = std::numeric_limits<float>::quiet_NaN();
      }
      EXPECT_EQ(solve_batch(Argmax{.n = n}, batch).status,
                std::vector<Status>(static_cast<size_t>(n), Status::kNaN))
          << name(isa) << " n=" << n;
    }
  }
}

}  // namespace
}  // namespace aimle
