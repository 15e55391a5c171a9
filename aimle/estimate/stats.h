// The numbers a layer shows of its last backward pass, in the order in which they lie in memory.
#pragma once

#include "aimle/estimate/estimator.h"

namespace aimle {

enum LayerStat {
  kLambdaMean,
  kLambdaMin,
  kLambdaMax,
  kCount,         // mean number of entries in which the two solutions differ
  kZeroShare,     // share of zeros in the gradient of theta
  kChangedShare,  // share of samples whose solution changed
  kCappedShare,   // thresholds only, as is the next
  kCappedMass,
  kLayerStats
};

/// Writes stats [kLayerStats]; leaves them alone if no sample had a gradient.
AIMLE_HD void write_stats(const BackwardReport& report, double* stats) {
  const Changes& seen = report.changes;
  if (seen.samples == 0) return;
  const auto of_samples = static_cast<double>(seen.samples);
  const auto of_entries = static_cast<double>(seen.entries > 0 ? seen.entries : 1);
  stats[kLambdaMean] = report.lambda_mean;
  stats[kLambdaMin] = report.lambda_min;
  stats[kLambdaMax] = report.lambda_max;
  stats[kCount] = static_cast<double>(seen.nonzeros) / of_samples;
  stats[kZeroShare] = static_cast<double>(seen.zeros) / of_entries;
  stats[kChangedShare] = static_cast<double>(seen.changed) / of_samples;
  stats[kCappedShare] = report.capped_share;
  stats[kCappedMass] = report.capped_mass;
}

}  // namespace aimle
