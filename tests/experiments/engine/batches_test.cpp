#include "experiments/engine/batches.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

namespace aimle::experiments {
namespace {

std::vector<int64_t> list(const at::Tensor& rows) {
  return {rows.data_ptr<int64_t>(), rows.data_ptr<int64_t>() + rows.numel()};
}

TEST(Batches, EveryPassSeesEveryExampleOnce) {
  Batches batches(3, 10, 4, /*shuffle=*/true, /*epoch_steps=*/5, at::kCPU);
  EXPECT_EQ(batches.epoch_steps(), 5);
  std::vector<std::vector<int64_t>> passes;
  for (int64_t pass = 0; pass < 3; ++pass) {
    std::vector<int64_t> seen;
    for (int64_t step = 3 * pass; step < 3 * pass + 3; ++step) {
      const std::vector<int64_t> rows = list(batches.rows(step));
      EXPECT_EQ(rows.size(), step % 3 == 2 ? 2u : 4u);
      seen.insert(seen.end(), rows.begin(), rows.end());
    }
    passes.push_back(seen);
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  }
  EXPECT_NE(passes[0], passes[1]);
}

TEST(Batches, AStepDoesNotDependOnThoseBefore) {
  Batches all(7, 23, 5, true, 4, at::kCPU);
  for (int64_t step = 0; step < 30; ++step) {
    Batches fresh(7, 23, 5, true, 4, at::kCPU);
    EXPECT_TRUE(at::equal(all.rows(step), fresh.rows(step))) << step;
  }
}

TEST(Batches, CountsWhatItHandsOut) {
  for (const int64_t epoch_steps : {0, 1, 4, 7}) {
    Batches batches(1, 23, 5, true, epoch_steps, at::kCPU);
    const int64_t steps = batches.epoch_steps();
    EXPECT_EQ(steps, epoch_steps == 0 ? 5 : epoch_steps);
    for (int64_t epoch = 0; epoch < 4; ++epoch) {
      int64_t seen = 0;
      for (int64_t step = 0; step < steps; ++step) {
        EXPECT_EQ(batches.examples_in(epoch * steps, epoch * steps + step), seen);
        seen += batches.rows(epoch * steps + step).size(0);
      }
    }
  }
}

TEST(Batches, WithoutShufflingTheOrderOfTheData) {
  Batches batches(1, 6, 4, false, 0, at::kCPU);
  EXPECT_EQ(list(batches.rows(0)), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(list(batches.rows(3)), (std::vector<int64_t>{4, 5}));
}

}  // namespace
}  // namespace aimle::experiments
