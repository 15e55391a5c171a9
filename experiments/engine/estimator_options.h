// The estimator of a run, by the option `method` and the settings of aimle::estimator as options.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "aimle/torch/estimator.h"
#include "experiments/engine/experiment.h"

namespace aimle::experiments {

/// `method`, and one text option for every setting of the estimators; empty: the method's default.
std::vector<Option> estimator_options();

/// Values of options by name, as in a preset.
using OptionValues = std::vector<std::pair<std::string, Json>>;

/// Every setting of the adaptive step, so that a preset does not depend on the library's defaults:
/// Algorithm 1 of the paper as printed (c = 1, a step of 1e-3 from alpha = 0), and what the
/// authors' code does instead. `own` are further values of the preset; those of the same name win.
OptionValues with_paper_target(const OptionValues& own);
OptionValues with_reference_target(const OptionValues& own);

/// The paper's step for what is not set in the options of a method, as far as it takes it and its
/// name does not say otherwise.
void use_paper_target(const std::string& method, EstimatorOptions& options);

/// Removes values of the preset that would turn the method into another one: `aimle_noise` has its
/// own scale, rule and bounds, `imle` its own difference. What the user or a config.json says
/// stays.
void keep_what_the_method_is(Settings& settings);

/// What the settings say, without what this method does not take: a Failure if the user asked for
/// it, silence if a default or a preset did. Every sample is given out; `dpo` has their mean alone.
EstimatorOptions chosen_estimator_options(const Settings& settings);

/// A Failure if a run with this config.json began with an adaptive step whose defaults were other
/// ones, and does not name its rule: it would go on with another one.
void check_step_defaults(const Json& config, const std::string& file);

/// Whether the step of the method is scaled by norms of the whole batch, of which a process that has
/// a share of it knows nothing.
bool needs_whole_batch(const Settings& settings);

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
