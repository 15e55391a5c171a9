// The estimator of a run, by the option `method` and the settings of aimle::estimator as options.
#pragma once

#include <memory>
#include <vector>

#include "aimle/torch/estimator.h"
#include "experiments/engine/experiment.h"

namespace aimle::experiments {

/// `method`, and one text option for every setting of the estimators; empty: the method's default.
std::vector<Option> estimator_options();

/// What the settings say, without what this method does not take: a Failure if the user asked for
/// it, silence if a default or a preset did.
EstimatorOptions chosen_estimator_options(const Settings& settings);

/// The estimator of `method`, its tensors on the device.
std::unique_ptr<Estimator> make_estimator(const Settings& settings, const SolverSpec& solver,
                                          const EstimatorOptions& options, at::Device device);

/// alpha, lambda and count where the estimator records them: for Training::watch and step.
Scalars estimator_state(const Estimator& estimator);
Scalars estimator_stats(const Estimator& estimator);

}  // namespace aimle::experiments
