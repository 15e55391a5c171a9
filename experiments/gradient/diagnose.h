// Which estimator suits this theta, this structure, this loss?
//
// Every contestant estimates the gradient `repeats` times, and what it gives is held against the
// true one. With g the estimates and t the truth:
//
//   cosine      mean of cos(g, t): how right one estimate is
//   norm_ratio  ||mean g|| / ||t||
//   bias        ||E g - t|| / ||t||, less what is left of the noise after averaging
//   variance    E ||g - E g||^2 / ||t||^2
//   zeros       share of components below 1e-8
//   microseconds  of one forward and backward pass on one thread, the fastest of the repeats
//
// With a temperature tau of the noise everything is measured on theta / tau at temperature 1, which
// is the same: these numbers do not depend on the length of theta's gradient. Fixed steps are
// given, and steps reported, in units of theta.
//
// The truth is exact where the structure has a closed form or can be listed; otherwise it is the
// perturbation model's, E f(MAP(theta + tau eps)) with the noise that layers over costs have by
// default, Normal at tau = kCostTemperature, by a long run of the score function of the noise: mean
// over s of (f_s - mean f) eps_s / tau. Its standard error is stated.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "experiments/gradient/contestant.h"
#include "experiments/gradient/problem.h"

namespace aimle::experiments {

struct DiagnoseSettings {
  std::vector<int64_t> samples = {1, 10, 100};
  std::vector<double> lambdas = {0.03, 0.1, 0.3, 1, 3, 10};
  std::vector<Contestant> contestants;  // those of all_contestants if empty
  int64_t repeats = 50;
  int64_t warmup = 1000;
  double temperature = 1.0;  // problem.theta has been divided by it
  uint64_t seed = 0;
};

struct Diagnosis {
  std::string estimator;
  double lambda = std::numeric_limits<double>::quiet_NaN();
  bool fixed_lambda = false;
  int64_t samples = 0;
  double cosine = 0.0;
  double cosine_error = 0.0;
  double norm_ratio = 0.0;
  double bias = 0.0;
  double variance = 0.0;
  double zeros = 0.0;
  double alpha = std::numeric_limits<double>::quiet_NaN();
  double microseconds = 0.0;
  double clipped = std::numeric_limits<double>::quiet_NaN();  // grid paths: share of costs below 0
};

struct Recommendation {
  int64_t samples = 0;
  std::string estimator;
  double lambda = std::numeric_limits<double>::quiet_NaN();  // of fixed ones
  std::string reason;
};

struct Truth {
  bool exact = true;
  double relative_error = 0.0;  // standard error of a long run, relative to the norm
};

/// Fills problem.true_gradient. A long run draws about `most_numbers` of noise at once, between
/// which it looks for an interrupt.
Truth find_truth(Problem& problem, int64_t long_run_samples, uint64_t seed,
                 int64_t most_numbers = int64_t{1} << 23);

/// Contestants side by side on `threads` threads, which change nothing but the time. Stops early,
/// with what there is, after an interrupt; `step` sees each that is done, one at a time.
std::vector<Diagnosis> diagnose(const Problem& problem, const DiagnoseSettings& settings,
                                int64_t threads,
                                const std::function<void(const std::string&)>& step);
int64_t count_diagnoses(const Problem& problem, const DiagnoseSettings& settings);

/// For each S: the highest cosine, or something much cheaper that is as good within its error.
std::vector<Recommendation> recommend(const std::vector<Diagnosis>& diagnoses);

/// A table for a terminal: for each S the estimators by falling cosine, each at its best lambda.
std::string as_table(const std::vector<Diagnosis>& diagnoses);

}  // namespace aimle::experiments
