// The settings of a layer as one text, parsed and validated once: the ops take the text and look up
// the parsed settings by it. The text survives torch.export and is readable in a trace.
//
//   solver=topk:k=10 noise=gumbel sense=max output=samples difference=central samples=1 adapt=1
//   check=1 stddev=1.28 noise_mean=0 target=fixed lambda=10
//
//   solver      its text (registry/registry.h), or for the staged ops
//               "callable:sense=max,dims=1,fixed_size=0": the properties of a callable solver
//   noise       "none", "gumbel", "normal", "logistic", "sum_of_gamma"
//   sense       "max" or "min": whether theta is maximised or a cost
//   output      "samples", "flat", "mean"
//   difference  "central", "forward", "straight_through", "thresholds"
//   adapt       1 if backward updates the state
//   check       as for `solve`
//   stddev      standard deviation of the noise
//   noise_mean  subtracted from the noise; 0 unless solutions vary in size
//   target      "fixed" with lambda;
//               "thresholds" with density, order, max_weight;
//               "adaptive" with scope, scale, rule, variant ("paper" or "reference"), step,
//               target_norm (-1: automatic), decay, factor, alpha_min, alpha_max (0: none),
//               momentum
//
// In any order, separated by spaces. The temperatures of theta and of the target are separate
// arguments, because they may change at every call.
#pragma once

#include <ATen/core/ivalue.h>

#include <memory>
#include <string>
#include <string_view>

#include "aimle/estimate/passes.h"
#include "aimle/registry/registry.h"
#include "aimle/torch/solve/solver_status.h"

namespace aimle::ops {

struct LayerSettings {
  std::shared_ptr<const UnsizedSolver> solver;  // null: a callable
  CallableSolver callable;
  int64_t callable_dims = 1;
  PassSettings estimator;  // without the table of its noise
  bool flat = false;
  bool adapt = true;
  Check check = Check::kDefault;

  int64_t instance_dims() const { return solver ? solver->kind().instance_dims : callable_dims; }
  int64_t samples() const { return estimator.samples; }
  bool mean() const { return estimator.output == Output::kMean; }
};

/// Parses the text, at temperature 1; throws ValueError if it is invalid.
std::shared_ptr<const LayerSettings> parse_layer_settings(std::string_view text);

/// The settings of a call from the last arguments of its op: the text and both temperatures.
LayerSettings layer_settings(at::ArrayRef<c10::IValue> arguments);

/// The text of these settings, without their temperatures.
std::string layer_settings_text(std::string_view solver, const PassSettings& estimator, bool flat,
                                bool adapt, Check check = Check::kDefault);

}  // namespace aimle::ops
