// The paper's first study: accuracy and sparsity of gradients by number of samples and lambda.
//
// A study is a list of cells (contestant, S), each measured on the problem of every (n, seed). The
// noise of a measurement is a function of (n, S, seed), the same for all estimators: a result
// depends neither on the other estimators nor on the number of threads.
//
// Adaptive estimators are warmed up at fixed theta before they are measured, with `warmup_samples`
// samples per step: the fixed point of alpha does not depend on their number. After the authors'
// 100 steps alpha is at 0.1 and still rising; 1500 steps reach the end.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "experiments/gradient/contestant.h"
#include "experiments/gradient/measure.h"

namespace aimle::experiments {

struct Cell {
  Contestant contestant;
  int64_t samples = 1;
};

struct Study {
  std::vector<int64_t> sizes;  // n
  int64_t k = 1;
  int64_t seeds = 1;
  bool is_signed = false;
  int64_t warmup = 1500;
  int64_t warmup_samples = 100;
  std::vector<Cell> cells;
};

/// One line of results.jsonl.
struct Row {
  std::string estimator;
  int64_t n = 0;
  int64_t k = 0;
  int64_t samples = 0;
  std::optional<double> lambda;  // a fixed one; that of adaptive estimators is measured
  int64_t seed = 0;
  Measurement measured;
};

/// The number of measurements.
int64_t count_measurements(const Study& study);

/// The rows in the order of sizes, cells, seeds; those of `earlier` are reused. `finished` gets the
/// rows so far whenever a problem is done and after an interrupt, and `step` is called for every
/// measurement; calls are not concurrent. After an interrupt, returns the rows measured so far.
std::vector<Row> run_study(const Study& study, int64_t threads, const std::vector<Row>& earlier,
                           const std::function<void(const std::vector<Row>&)>& finished,
                           const std::function<void(const std::string&)>& step);

/// results.jsonl and summary.csv of a study.
std::string as_jsonl(const std::vector<Row>& rows);
/// Reads back a line of results.jsonl; writing it again reproduces it.
Row read_row(const nlohmann::json& line);
std::string as_summary(const std::vector<Row>& rows);

}  // namespace aimle::experiments
