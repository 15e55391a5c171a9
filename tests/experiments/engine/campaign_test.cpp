#include "experiments/engine/campaign.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "experiments/process/failure.h"
#include "experiments/registry.h"

namespace aimle::experiments {
namespace {

TEST(Seeds, AreNumbersAndRanges) {
  EXPECT_EQ(parse_seeds("0-3"), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(parse_seeds("4,1-2,1"), (std::vector<int64_t>{4, 1, 2}));
  for (const char* wrong : {"", "a", "3-1", "1-", "-2", "1,,2", "1,", ",", "0-99999"}) {
    EXPECT_THROW(parse_seeds(wrong), Failure) << wrong;
  }
}

TEST(Seeds, MayBeTheLargestNumbers) {
  EXPECT_EQ(parse_seeds("9223372036854775807"), (std::vector<int64_t>{9223372036854775807}));
  EXPECT_EQ(parse_seeds("9223372036854775806-9223372036854775807").size(), 2);
}

TEST(Seeds, AreAtMostTenThousandInAll) {
  EXPECT_EQ(parse_seeds("0-4999,5000-9999,0-9999").size(), 10000);
  EXPECT_THROW(parse_seeds("0-9999,10000"), Failure);
}

TEST(Grid, VariesOptionsOfTheExperiment) {
  const Settings settings = default_settings(experiment("dvae"));
  EXPECT_EQ(parse_grid_axis("kl-weight=1,2", settings).option, "kl_weight");
  EXPECT_EQ(parse_grid_axis("kl_weight=1,2", settings).values,
            (std::vector<std::string>{"1", "2"}));
  for (const char* wrong : {"", "lambda", "=1", "lambda=", "lamda=1", "kl_weight=1,x", "epochs=0",
                            "data=a,b", "device=cpu", "seed=1,2", "lr=1,", "lr=,"}) {
    EXPECT_THROW(parse_grid_axis(wrong, settings), Failure) << wrong;
  }
}

TEST(Grid, TriesNoValueTwice) {
  const Settings settings = default_settings(experiment("dvae"));
  for (const char* wrong : {"lr=0.1,0.1", "lr=0.1,0.2,1e-1", "method=ste,aimle,ste"}) {
    EXPECT_THROW(parse_grid_axis(wrong, settings), Failure) << wrong;
  }
}

}  // namespace
}  // namespace aimle::experiments
