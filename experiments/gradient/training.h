// Whether a better gradient trains better: gradient descent with momentum on theta itself, with
// each estimator, from the problem's theta towards the best structure:
//
//   v <- momentum v + g,   theta <- theta - learning_rate v
//
// The measure is the remaining share of the gap, (E f - f*) / (E f at the start - f*), with E f
// exact at every step and f* the loss of the best structure: 1 at the start, 0 at the optimum. The
// contestant named "gradient" uses the true gradient. Adaptive estimators start without a warm-up.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "experiments/gradient/contestant.h"

namespace aimle::experiments {

inline constexpr const char* kTrueGradient = "gradient";

struct TrainingStudy {
  int64_t n = 10;
  int64_t k = 5;
  int64_t seeds = 1;
  bool is_signed = false;
  int64_t steps = 100;
  double momentum = 0.9;
  std::vector<double> learning_rates;
  std::vector<int64_t> samples;
  std::vector<Contestant> contestants;  // besides the true gradient
};

/// One line of results.jsonl.
struct TrainingRow {
  std::string estimator;
  int64_t samples = 0;
  std::optional<double> lambda;
  double learning_rate = 0.0;
  int64_t seed = 0;
  std::vector<double> gaps;  // [steps + 1]
  double average_gap = 0.0;  // over the steps: measures the speed
  double cosine = 0.0;       // over the steps, weighted by the norm of the true gradient
  double zeros = 0.0;
  std::optional<double> alpha;  // at the end
};

/// The number of descents.
int64_t count_descents(const TrainingStudy& study);

/// Called after every descent, not concurrently, with its contestant and a function that returns
/// the rows so far.
using AfterDescent = std::function<void(const std::string& contestant,
                                        const std::function<std::vector<TrainingRow>()>& rows)>;

/// Rows by contestant, samples, learning rate, seed; those of `earlier` are reused. After an
/// interrupt, returns the rows so far, which are also passed to `interrupted` without waiting for
/// running descents.
std::vector<TrainingRow> run_training(
    const TrainingStudy& study, int64_t threads, const std::vector<TrainingRow>& earlier,
    const AfterDescent& after,
    const std::function<void(const std::vector<TrainingRow>&)>& interrupted = {});

std::string as_jsonl(const TrainingStudy& study, const std::vector<TrainingRow>& rows);
/// Reads back a line of results.jsonl; writing it again reproduces it.
TrainingRow read_training_row(const nlohmann::json& line);
/// Every learning rate: training.csv.
std::string as_training_table(const TrainingStudy& study, const std::vector<TrainingRow>& rows);
/// The columns of summary.csv, at each contestant's best learning rate (smallest average gap).
std::string as_summary(const TrainingStudy& study, const std::vector<TrainingRow>& rows);

}  // namespace aimle::experiments
