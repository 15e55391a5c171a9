// A run interrupted during an evaluation ends at once and resumes as if never interrupted; one that
// fails keeps what it has found.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "experiments/engine/campaign.h"
#include "experiments/engine/checkpoint.h"
#include "experiments/engine/run_folder.h"
#include "experiments/process/failure.h"
#include "experiments/process/interrupt.h"
#include "experiments/process/progress.h"
#include "tests/experiments/temporary_folder.h"

namespace aimle::experiments {
namespace {

/// A weight that each step changes. Its evaluations are counted; this one of them gets a signal.
Experiment counting(int& evaluations, int interrupted) {
  return {.name = "counting",
          .summary = "",
          .load = [&evaluations, interrupted](const Settings&) -> Start {
            return [&evaluations, interrupted](const Settings&) -> Training {
              const at::Tensor weight = at::zeros({}, at::kDouble);
              return {
                  .model = {{"weight", weight}},
                  .state = {},
                  .examples = 10,
                  .evaluate_first = true,
                  .step = [weight](const Batch& batch) -> Scalars {
                    weight.mul_(1.5).add_(batch.rows.sum());
                    return {{"loss", weight.clone()}};
                  },
                  .evaluate = [weight, &evaluations, interrupted](const at::Tensor&) -> Metrics {
                    if (++evaluations == interrupted) std::raise(SIGINT);
                    stop_if_interrupted();
                    return {{"val_loss", weight.item<double>()}};
                  }};
            };
          }};
}

/// [epoch, train_loss, val_loss] of every epoch.
Json losses(const fs::path& folder) {
  Json result = Json::array();
  for (const Json& line : read_metrics({folder})) {
    result.push_back({line.at("epoch"), line.at("train_loss"), line.at("val_loss")});
  }
  return result;
}

class Stop : public testing::Test {
 protected:
  void SetUp() override { set_quiet(true); }
  void TearDown() override { set_quiet(false); }

  /// The message of Stopped; empty if the run came to its end.
  static std::string train(const fs::path& out, bool resume, int interrupted) {
    int evaluations = 0;
    const Experiment experiment = counting(evaluations, interrupted);
    Settings settings = default_settings(experiment);
    settings.set("epochs", Json(3), Origin::kUser);
    settings.set("batch", Json(4), Origin::kUser);
    try {
      conduct({.experiment = &experiment,
               .settings = settings,
               .out = out,
               .resume = resume,
               .threads = 1});
      return "";
    } catch (const Stopped& stopped) {
      EXPECT_EQ(stopped.signal, SIGINT);
      return stopped.what();
    }
  }

  TemporaryFolder folder_;
  const fs::path& path_ = folder_.path();
};

TEST_F(Stop, InAnyEvaluationChangesNothing) {
  EXPECT_EQ(train(path_ / "whole", false, 0), "");
  const Json expected = losses(path_ / "whole");
  ASSERT_EQ(expected.size(), 4U);
  for (int interrupted = 1; interrupted <= 4; ++interrupted) {
    const fs::path out = path_ / std::to_string(interrupted);
    EXPECT_NE(train(out, false, interrupted).find("continue with --resume --out " + out.string()),
              std::string::npos);
    EXPECT_EQ(losses(out).size(), static_cast<size_t>(interrupted - 1));
    EXPECT_EQ(train(out, true, 0), "");
    EXPECT_EQ(losses(out), expected);
  }
}

/// A weight that each step halves. Its third evaluation fails.
Experiment failing() {
  return {.name = "failing", .summary = "", .load = [](const Settings&) -> Start {
            return [](const Settings&) -> Training {
              const at::Tensor weight = at::full({}, 1024.0, at::kDouble);
              return {.model = {{"weight", weight}},
                      .state = {},
                      .examples = 10,
                      .step = [weight](const Batch&) -> Scalars {
                        weight.mul_(0.5);
                        return {{"loss", weight.clone()}};
                      },
                      .evaluate = [weight](const at::Tensor&) -> Metrics {
                        if (weight.item<double>() == 128.0) throw Failure("no luck");
                        return {{"val_loss", weight.item<double>()}};
                      }};
            };
          }};
}

TEST_F(Stop, AnErrorKeepsTheBestModelBeforeIt) {
  const Experiment experiment = failing();
  Settings settings = default_settings(experiment);
  settings.set("batch", Json(10), Origin::kUser);  // a step is an epoch
  const fs::path out = path_ / "failed";
  EXPECT_THROW(conduct({.experiment = &experiment, .settings = settings, .out = out, .threads = 1}),
               Failure);
  EXPECT_EQ(read_metrics({out}).size(), 2U);
  const Checkpoint best = load_checkpoint(RunFolder{out}.best());
  EXPECT_EQ(best.integers.at("epoch"), 2);
  EXPECT_EQ(best.groups.at("model").at("weight").item<double>(), 256.0);
}

}  // namespace
}  // namespace aimle::experiments
