// An estimator with its settings, as named on the command line and in results:
//
//   aimle   imle_central:lambda=0.1   sfe:baseline=leave_one_out   thresholds:order=first
//
// The names and settings are those of the switchboard (aimle/torch/estimator.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aimle/torch/estimator.h"

namespace aimle::experiments {

struct Contestant {
  std::string label;  // the name and its settings without lambda: `thresholds:order=first`
  std::string name;
  EstimatorOptions options;

  std::optional<double> lambda() const { return options.lambda; }
  /// Whether it adapts its step size and has a state to warm up.
  bool is_adaptive() const;
  /// The minimum number of samples.
  int64_t least_samples() const;
  bool applies_to(const SolverSpec& solver) const;

  /// The estimator around a solver, drawing this many samples.
  std::unique_ptr<Estimator> build(const SolverSpec& solver, int64_t samples) const;
};

/// Throws what the switchboard throws; for an unknown name the message suggests the nearest one.
Contestant parse_contestant(const std::string& text);

/// All estimators of the switchboard that apply to the solver, with the settings of the paper's
/// study: imle and imle_central with each of `lambdas`.
std::vector<Contestant> all_contestants(const SolverSpec& solver,
                                        const std::vector<double>& lambdas);

}  // namespace aimle::experiments
