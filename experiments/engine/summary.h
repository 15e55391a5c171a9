// Summary statistics of several runs.
#pragma once

#include <vector>

#include "experiments/engine/campaign.h"
#include "experiments/engine/training_run.h"

namespace aimle::experiments {

/// Writes summary.json and prints its main lines: for every combination of settings the mean,
/// the standard deviation and the standard error over seeds of each metric at the epoch selected by
/// `select`, and the combination with the best mean of `select`, with its test metrics. The lines
/// have the mean ± standard error.
void write_summary(const Campaign& campaign, const std::vector<Run>& runs,
                   const std::vector<std::vector<Json>>& metrics);

}  // namespace aimle::experiments
