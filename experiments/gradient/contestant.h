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
  std::string label;  // the name and its settings but lambda: `thresholds:order=first`
  std::string name;
  EstimatorOptions options;

  std::optional<double> lambda() const { return options.lambda; }
  /// Adapts its step size: it has a state to warm up.
  bool is_adaptive() const;
  /// Least number of samples it can work with.
  int64_t least_samples() const;
  bool applies_to(const SolverSpec& solver) const;

  /// The estimator around a solver, drawing this many samples.
  std::unique_ptr<Estimator> build(const SolverSpec& solver, int64_t samples) const;
};

/// Throws what the switchboard throws: an unknown name comes with the nearest known one.
Contestant parse_contestant(const std::string& text);

/// All that the switchboard knows and that apply to the solver, with the settings of the paper's
/// study: imle and imle_central at each of `lambdas`.
std::vector<Contestant> all_contestants(const SolverSpec& solver,
                                        const std::vector<double>& lambdas);

}  // namespace aimle::experiments
