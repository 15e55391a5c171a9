// The statistics of a layer's last backward pass, in memory order.
#pragma once

#include "aimle/estimate/passes.h"

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
  kClippedShare,    // grid paths only: share of the costs that were below zero, including noise and
                    // step
  kIdleUpdates,     // consecutive updates in which every step size was zero
  kUpdatesAtBound,  // consecutive updates after which alpha was at a bound
  kWarned,          // 1 after a warning about either
  kClippedPasses,   // consecutive passes in which almost all costs were clipped
  kWarnedOfClipping,
  kLayerStats
};

/// Counts to be summed with those of other processes. A layer that is one of several, each with a
/// part of the batch, keeps them after its stats; backward adds to them instead of updating the
/// state. Sums of integers are the same in any order.
enum WaitingCount {
  kWaitingNonzeros,  // of Changes
  kWaitingSamples,
  kWaitingSteps,  // passes in which a step size was not zero
  kWaitingCounts
};
inline constexpr int64_t kSharedStats = int64_t{kLayerStats} + int64_t{kWaitingCounts};

/// The number of such consecutive updates that indicates a step size that cannot work.
inline constexpr double kIdleLimit = 100.0;
inline constexpr double kBoundLimit = 1000.0;

/// The share of clipped costs, and the number of consecutive passes with more, that indicates costs
/// that cannot be learned. A large first step alone shrinks within fewer.
inline constexpr double kMostClipped = 0.95;
inline constexpr double kClippedLimit = 300.0;

/// Counts consecutive passes; NaN means none so far.
AIMLE_HD void count_again(bool again, double& count) {
  count = !again ? 0.0 : count > 0.0 ? count + 1.0 : 1.0;
}

/// Writes stats [kLayerStats]; does not change them if no sample had a gradient.
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
  stats[kClippedShare] = static_cast<double>(report.clipping.clipped) /
                         static_cast<double>(report.clipping.costs > 0 ? report.clipping.costs : 1);
  count_again(stats[kClippedShare] > kMostClipped, stats[kClippedPasses]);
  if (!(stats[kWarnedOfClipping] > 0.0)) stats[kWarnedOfClipping] = 0.0;
}

/// Counts the updates that indicate a step size that cannot work.
AIMLE_HD void update_watch(const AdaptiveTarget& target, double lambda_max, double alpha,
                           double* stats) {
  count_again(lambda_max == 0.0, stats[kIdleUpdates]);
  if (!(stats[kWarned] > 0.0)) stats[kWarned] = 0.0;
  count_again(target.moves() && (alpha == target.alpha_min || alpha == target.alpha_max),
              stats[kUpdatesAtBound]);
}

/// Leaves the counts of a pass to the next update.
AIMLE_HD void add_waiting(const BackwardReport& report, double* counts) {
  counts[kWaitingNonzeros] += static_cast<double>(report.changes.nonzeros);
  counts[kWaitingSamples] += static_cast<double>(report.changes.samples);
  counts[kWaitingSteps] += report.lambda_max == 0.0 ? 0.0 : 1.0;
}

/// The update from the counts of all processes, equal to one pass over all their examples; returns
/// false and does nothing if no sample had a gradient. stats may be null.
AIMLE_HD bool update_from_counts(const AdaptiveTarget& target, int64_t samples,
                                 const double* counts, ControllerState& controller, double* stats) {
  const Changes seen{.nonzeros = static_cast<int64_t>(counts[kWaitingNonzeros]),
                     .samples = static_cast<int64_t>(counts[kWaitingSamples])};
  if (seen.samples == 0) return false;
  update_alpha(target, samples, seen, controller);
  if (stats != nullptr) update_watch(target, counts[kWaitingSteps], controller.alpha, stats);
  return true;
}

}  // namespace aimle
