#include "experiments/engine/live_progress.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/experiments/temporary_folder.h"

namespace aimle::experiments {
namespace {

class LiveProgressTest : public testing::Test {
 protected:
  Json read() const { return Json::parse(read_bytes(file_)); }

  TemporaryFolder folder_;
  const fs::path file_ = folder_.path() / "progress.json";
};

TEST_F(LiveProgressTest, IsThereFromTheBeginning) {
  const LiveProgress live(file_, {.epochs = 3, .steps = 10});
  EXPECT_EQ(read().dump(),
            R"({"state":"running","message":"","epoch":0,"epochs":3,"step":0,"steps":10,)"
            R"("seconds_left":null,"names":[],"points":[]})");
}

TEST_F(LiveProgressTest, AveragesOverTheStepsSinceThePointBefore) {
  LiveProgress live(file_, {.epochs = 3, .steps = 10});
  live.add({.epochs = 3, .step = 2, .steps = 10}, {{"loss", 8}}, 4, {{"alpha", 0.5}});
  live.add({.epochs = 3, .step = 4, .steps = 10}, {{"loss", 12}}, 8, {{"alpha", 0.25}});
  live.add({.epoch = 1, .epochs = 3, .step = 1, .steps = 10}, {{"loss", 6}}, 2, {{"alpha", NAN}});
  const Json now = live.to_json();
  EXPECT_EQ(now["names"].dump(), R"(["step","loss","alpha"])");
  EXPECT_EQ(now["points"].dump(), "[[2,2.0,0.5],[4,1.0,0.25],[11,3.0,null]]");
  EXPECT_EQ(now["epoch"], 1);
  EXPECT_EQ(now["step"], 1);
}

TEST_F(LiveProgressTest, IsReplacedOnceASecondAndAtTheEnd) {
  LiveProgress live(file_, {.epochs = 1, .steps = 9});
  const LiveProgress::Clock::time_point start = {};
  const auto after = [&](int64_t step, std::chrono::milliseconds time) {
    live.add({.epochs = 1, .step = step, .steps = 9}, {{"loss", 1.0 * step}}, 1.0 * step, {});
    live.publish(start + time);
    return read()["step"];
  };
  EXPECT_EQ(after(1, std::chrono::milliseconds(0)), 1);
  EXPECT_EQ(after(2, std::chrono::milliseconds(999)), 1);
  EXPECT_EQ(after(3, std::chrono::milliseconds(1000)), 3);
  EXPECT_EQ(after(4, std::chrono::milliseconds(1500)), 3);
  live.end("failed", "the loss is not finite");
  EXPECT_EQ(read()["state"], "failed");
  EXPECT_EQ(read()["message"], "the loss is not finite");
  EXPECT_EQ(read()["step"], 4);
  live.end("finished", "");
  EXPECT_EQ(read()["epoch"], 1);
  EXPECT_EQ(read()["step"], 0);
}

TEST_F(LiveProgressTest, KeepsABoundedNumberOfPointsOfTheWholeRun) {
  const int64_t steps = 100'000;
  LiveProgress live(file_, {.epochs = 1, .steps = steps});
  for (int64_t step = 1; step <= steps; ++step) {
    const auto seen = static_cast<double>(step);
    live.add({.epochs = 1, .step = step, .steps = steps}, {{"loss", seen}}, seen, {});
    ASSERT_LE(live.to_json()["points"].size(), LiveProgress::kMostPoints) << step;
    if (step > 1000) step += 99;
  }
  const Json points = live.to_json()["points"];
  EXPECT_GT(points.size(), LiveProgress::kMostPoints / 4);
  EXPECT_LT(points.front()[0], 1000);
  EXPECT_GT(points.back()[0], 0.95 * steps);
  for (const Json& point : points) EXPECT_DOUBLE_EQ(point[1].get<double>(), 1.0);
}

TEST_F(LiveProgressTest, AResumedRunHasThePointsUpToItsCheckpoint) {
  {
    LiveProgress live(file_, {.epochs = 2, .steps = 10});
    for (const int64_t step : {2, 4, 6}) {
      live.add({.epochs = 2, .step = step, .steps = 10}, {{"loss", 0}}, 1.0 * step, {});
    }
    live.end("interrupted", "stopped");
  }
  LiveProgress live(file_, {.epochs = 2, .step = 4, .steps = 10});
  EXPECT_EQ(read()["points"].dump(), "[[2,0.0],[4,0.0]]");
  EXPECT_EQ(read()["state"], "running");
  live.add({.epochs = 2, .step = 5, .steps = 10}, {{"loss", 10}}, 5, {});
  EXPECT_EQ(live.to_json()["points"].size(), 3U);

  std::ofstream(file_) << "{damaged";
  EXPECT_EQ(LiveProgress(file_, {.epochs = 2, .step = 4, .steps = 10}).to_json()["points"].size(),
            0U);
}

TEST_F(LiveProgressTest, ARunGoesOnWithoutTheFile) {
  LiveProgress live(folder_.path() / "no" / "progress.json", {.epochs = 1, .steps = 1});
  live.end("finished", "");
}

}  // namespace
}  // namespace aimle::experiments
