// The estimator of a run: the option `method`, and the settings of aimle::estimator as options.
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
/// Algorithm 1 of the paper as printed (c = 1, a step of 1e-3 from alpha = 0), and the authors'
/// code. `own` are further values of the preset; they override those of the same name.
OptionValues with_paper_target(const OptionValues& own);
OptionValues with_reference_target(const OptionValues& own);

/// The paper's values for settings of the step that are not set in the options of a method, as far
/// as the method takes them and its name does not imply others.
void use_paper_target(const std::string& method, EstimatorOptions& options);

/// Removes values of the preset that would turn the method into another one: `aimle_noise` has its
/// own scale, rule and bounds, `imle` its own difference. Values from the user or a config.json are
/// kept, but a noise's temperature only under the name that the user gave.
void keep_what_the_method_is(Settings& settings);

/// The settings without those that this method does not take: throws Failure if the user set them,
/// silently drops those from a default or a preset. All samples are returned; `dpo` only has a
/// mean.
EstimatorOptions chosen_estimator_options(const Settings& settings);

/// Throws Failure if a run with this config.json started with an adaptive step whose defaults have
/// changed since and does not name its rule: it would continue with another one.
void check_step_defaults(const Json& config, const std::string& file);

/// Whether the step of the method is scaled by norms of the whole batch, which a process with a share
/// of it does not know.
bool needs_whole_batch(const Settings& settings);

/// The default noise if k entries are chosen together: Sum-of-Gamma(k). A method that needs a
/// density in closed form, or no noise at all, has its own.
NoiseSpec default_noise(const EstimatorInfo& method, int64_t k);

/// The estimator of `method`, its tensors on the device.
std::unique_ptr<Estimator> make_estimator(const Settings& settings, const SolverSpec& solver,
                                          const EstimatorOptions& options, at::Device device);

/// z with samples in dimension `dim`; if z has as many dimensions as theta, it is one sample.
at::Tensor with_samples(const at::Tensor& z, const at::Tensor& theta, int64_t dim);

/// theta with a gradient averaged over this many samples whose losses are summed, as in the
/// authors' layer: the network before theta learns from the mean, the one after z from every
/// sample.
at::Tensor averaging(const at::Tensor& theta, int64_t samples);

/// The number of samples returned by a call.
int64_t given_samples(const EstimatorInfo& method, const EstimatorOptions& options);

/// alpha, lambda and count if the estimator records them: for Training::watch and step.
Scalars estimator_state(const Estimator& estimator);
Scalars estimator_stats(const Estimator& estimator);

}  // namespace aimle::experiments
