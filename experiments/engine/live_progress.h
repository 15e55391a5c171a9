// progress.json: the position of a run between its epochs, for `aimle watch`.
//
//   {"state": "running", "message": "", "epoch": 3, "epochs": 20, "step": 41, "steps": 150,
//    "seconds_left": 95.1, "names": ["step", "loss", "alpha"], "points": [[10, 0.7, 0.1], …]}
//
// `epoch` counts complete epochs, `step` the steps of the next one; the first column of `points` is
// the step since the run began. What a step returns, such as the loss, is averaged since the point
// before; the estimator's state is that of the moment. The points cover the whole run with at most
// kMostPoints lines: when there are more, every other one is dropped.
//
// The file is replaced about once a second. Nothing depends on it: a run that cannot write it
// continues, and --resume reads only the points from it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/engine/options.h"
#include "experiments/process/progress.h"

namespace aimle::experiments {

/// Where a run is.
struct RunPosition {
  int64_t epoch = 0;  // complete ones
  int64_t epochs = 0;
  int64_t step = 0;  // of the current epoch
  int64_t steps = 0;

  int64_t steps_done() const { return epoch * steps + step; }
};

class LiveProgress {
 public:
  static constexpr size_t kMostPoints = 256;
  using Values = std::vector<std::pair<std::string, double>>;
  using Clock = std::chrono::steady_clock;

  /// Begins at this position: with the points of the file up to it, if it has some.
  LiveProgress(std::filesystem::path file, const RunPosition& position);

  /// `sums` are over the `examples` of the current epoch so far; `state` is that of the estimator.
  void add(const RunPosition& position, const Values& sums, double examples, const Values& state);
  /// Writes the file if it is older than a second.
  void publish(Clock::time_point now = Clock::now());
  /// Writes the final state: "finished", "interrupted" or "failed".
  void end(const std::string& state, const std::string& message);

  Json to_json() const;

 private:
  void read_points();
  void write();

  std::filesystem::path file_;
  RunPosition position_;
  std::string state_ = "running", message_;
  TimeLeft time_left_;
  std::optional<double> seconds_left_;
  std::optional<Clock::time_point> written_;
  std::vector<std::string> names_;
  std::vector<std::vector<double>> points_;
  int64_t stride_ = 1;  // the least number of steps between points
  int64_t summed_epoch_ = 0;
  std::vector<double> sums_;  // of summed_epoch_, at the last point
  double examples_ = 0;
};

}  // namespace aimle::experiments
