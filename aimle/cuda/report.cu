#include "aimle/cuda/launch.cuh"
#include "aimle/cuda/step_sizes.h"
#include "aimle/cuda/sums.cuh"
#include "aimle/estimate/stats.h"

namespace aimle::cuda {
namespace {

constexpr int kThreads = 1024;

/// Lambda over the examples that had one; a block together.
__device__ void report_lambda(const DeviceReport& seen, double* scratch, BackwardReport& report) {
  using Block = Group<kThreads>;
  const double infinity = static_cast<double>(INFINITY);
  double least = infinity, largest = -infinity;
  long long count = 0;
  for (int64_t b = threadIdx.x; b < seen.examples; b += kThreads) {
    const double lambda = seen.reported[b * seen.stride];
    if (isnan(lambda)) continue;
    least = lambda < least ? lambda : least;
    largest = lambda > largest ? lambda : largest;
    ++count;
  }
  least = Block::min(least);
  largest = Block::max(largest);
  count = Block::reduce(count, [](long long x, long long y) { return x + y; });
  const double sum = block_fixed_total(
      seen.examples,
      [&](int64_t b) {
        const double lambda = seen.reported[b * seen.stride];
        return isnan(lambda) ? 0.0 : lambda;
      },
      scratch);
  const double nan = static_cast<double>(NAN);
  report.lambda_min = count > 0 ? least : nan;
  report.lambda_max = count > 0 ? largest : nan;
  report.lambda_mean = count > 0 ? sum / static_cast<double>(count) : nan;
}

__device__ Changes total_changes(const DeviceReport& seen) {
  Changes mine;
  for (int64_t i = threadIdx.x; i < seen.blocks; i += kThreads) mine.add(seen.changes[i]);
  const auto add = [](long long x, long long y) { return x + y; };
  using Block = Group<kThreads>;
  return {.nonzeros = Block::reduce(static_cast<long long>(mine.nonzeros), add),
          .samples = Block::reduce(static_cast<long long>(mine.samples), add),
          .changed = Block::reduce(static_cast<long long>(mine.changed), add),
          .zeros = Block::reduce(static_cast<long long>(mine.zeros), add),
          .entries = Block::reduce(static_cast<long long>(mine.entries), add)};
}

__global__ void __launch_bounds__(kThreads)
    report_kernel(DeviceReport seen, DeviceState state, AdaptiveTarget target, bool adaptive,
                  double* scratch) {
  BackwardReport report;
  report.changes = total_changes(seen);
  if (report.changes.samples == 0) return;
  if (state.stats != nullptr) {
    report_lambda(seen, scratch, report);
    if (seen.capped != nullptr) {
      report.capped_share = seen.capped[0];
      report.capped_mass = seen.capped[1];
    }
  }
  if (threadIdx.x != 0) return;
  if (state.stats != nullptr) write_stats(report, state.stats);
  if (!adaptive || !state.adapt) return;
  ControllerState controller{.alpha = *state.alpha,
                             .gbar = *state.gbar,
                             .updates = *state.updates,
                             .velocity = state.velocity == nullptr ? 0.0 : *state.velocity};
  update(target, report.changes, controller);
  *state.alpha = controller.alpha;
  *state.gbar = controller.gbar;
  *state.updates = controller.updates;
  if (state.velocity != nullptr) *state.velocity = controller.velocity;
}

}  // namespace

void report(const EstimatorSettings& settings, const DeviceReport& seen, const DeviceState& state,
            const Context& context) {
  const auto* target = std::get_if<AdaptiveTarget>(&settings.target);
  if (seen.examples == 0 || (state.stats == nullptr && (target == nullptr || !state.adapt))) return;
  auto* scratch = context.array<double>(fixed_total_scratch(seen.examples));
  launch("report", report_kernel, 1, kThreads, 0, context, seen, state,
         target == nullptr ? AdaptiveTarget{} : *target, target != nullptr, scratch);
}

}  // namespace aimle::cuda
