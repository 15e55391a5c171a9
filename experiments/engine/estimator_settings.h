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
/// it, silence if a default or a preset did. Every sample is given out; `dpo` has their mean alone.
EstimatorOptions chosen_estimator_options(const Settings& settings);

/// The noise where k entries are chosen together and the user named none: Sum-of-Gamma(k), but a
/// method that needs a density in closed form, or no noise at all, has its own.
NoiseSpec default_noise(const EstimatorInfo& method, int64_t k);

/// The estimator of `method`, its tensors on the device.
std::unique_ptr<Estimator> make_estimator(const Settings& settings, const SolverSpec& solver,
                                          const EstimatorOptions& options, at::Device device);

/// z with samples in dimension `dim`: of theta's dimensions it is a mean, and stands as one sample.
at::Tensor with_samples(const at::Tensor& z, const at::Tensor& theta, int64_t dim);

/// theta, but its gradient is averaged over that many samples whose losses are summed, as in the
/// authors' layer: what makes theta learns from their mean, what reads z from every one.
at::Tensor averaging(const at::Tensor& theta, int64_t samples);

/// How many samples a call gives out.
int64_t given_samples(const EstimatorInfo& method, const EstimatorOptions& options);

/// alpha, lambda and count where the estimator records them: for Training::watch and step.
Scalars estimator_state(const Estimator& estimator);
Scalars estimator_stats(const Estimator& estimator);

}  // namespace aimle::experiments
