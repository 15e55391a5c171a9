// One function per estimator, called by the table of names in switchboard.cpp. Estimators that are
// only a formula for samples are built by build_sampled (sampled.h).
#pragma once

#include <memory>

#include "aimle/torch/estimator.h"

namespace aimle {

using Builder = std::unique_ptr<Estimator>(const EstimatorInfo& info, SolverSpec solver,
                                           const EstimatorOptions& options);

// perturbed_map.cpp: the named layers.
Builder build_aimle, build_aimle_forward, build_aimle_noise, build_imle, build_imle_central,
    build_ste, build_dbb, build_identity, build_thresholds;

// score.cpp
Builder build_aimle_covariance, build_sfe;
// perturbed.cpp
Builder build_dpo;

/// The layer's options for an adaptive target; aimle_covariance takes them as well.
LayerOptions aimle_options(SolverSpec solver, const EstimatorOptions& options);

}  // namespace aimle
