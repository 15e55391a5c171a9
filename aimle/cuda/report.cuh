// What one backward pass saw: statistics and the controller's update, by one block.
#pragma once

#include "aimle/cuda/estimator.h"
#include "aimle/cuda/group.cuh"
#include "aimle/cuda/sums.cuh"
#include "aimle/estimate/stats.h"

namespace aimle::cuda {

/// Step sizes of kSumChunk examples: the first level of fixed_total, and more.
struct LambdaChunk {
  double sum;
  double least;
  double largest;
  double count;
};

/// What the block that reports needs to know.
struct ReportTask {
  DeviceReport seen;
  DeviceState state;
  AdaptiveTarget target;
  bool adaptive = false;
  bool wanted = false;  // is there anything to write?
  int64_t chunks = 0;
  LambdaChunk* chunk = nullptr;  // [chunks]
  double* scratch = nullptr;
};

/// Bytes of device memory for a report on so many examples.
inline int64_t report_bytes(int64_t examples) {
  const int64_t chunks = (examples + kSumChunk - 1) / kSumChunk;
  return chunks * static_cast<int64_t>(sizeof(LambdaChunk)) +
         fixed_total_scratch(chunks) * static_cast<int64_t>(sizeof(double));
}

/// The task, in `room` of report_bytes, aligned to doubles.
inline ReportTask report_task(const EstimatorSettings& settings, const DeviceReport& seen,
                              const DeviceState& state, void* room) {
  const auto* target = std::get_if<AdaptiveTarget>(&settings.target);
  const int64_t chunks = (seen.examples + kSumChunk - 1) / kSumChunk;
  auto* chunk = static_cast<LambdaChunk*>(room);
  return {
      .seen = seen,
      .state = state,
      .target = target == nullptr ? AdaptiveTarget{} : *target,
      .adaptive = target != nullptr,
      .wanted = seen.examples > 0 && (state.stats != nullptr || (target != nullptr && state.adapt)),
      .chunks = state.stats == nullptr ? 0 : chunks,
      .chunk = chunk,
      .scratch = reinterpret_cast<double*>(chunk + chunks)};
}

/// Adds the changes of a block's threads; valid in thread 0.
template <int kThreads>
__device__ Changes block_total(Changes mine) {
  __shared__ Changes partial[kThreads / 32];
  const auto fold = [](Changes& x) {
#pragma unroll
    for (int half = 16; half > 0; half /= 2) {
      x.add({.nonzeros = __shfl_down_sync(kAllLanes, x.nonzeros, half),
             .samples = __shfl_down_sync(kAllLanes, x.samples, half),
             .changed = __shfl_down_sync(kAllLanes, x.changed, half),
             .zeros = __shfl_down_sync(kAllLanes, x.zeros, half),
             .entries = __shfl_down_sync(kAllLanes, x.entries, half)});
    }
  };
  fold(mine);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x < 32) {
    mine = threadIdx.x < kThreads / 32 ? partial[threadIdx.x] : Changes{};
    fold(mine);
  }
  __syncthreads();
  return mine;
}

/// Chunks first, first + stride, ... of the step sizes; every warp its own.
__device__ inline void sum_lambda_chunks(const ReportTask& task, int64_t first, int64_t stride) {
  const DeviceReport& seen = task.seen;
  const double infinity = static_cast<double>(INFINITY);
  for (int64_t c = first; c < task.chunks; c += stride) {
    const int64_t begin = c * kSumChunk;
    const int64_t rest = seen.examples - begin;
    double least = infinity, largest = -infinity;
    int count = 0;
    const double sum = warp_fixed_sum(rest < kSumChunk ? rest : kSumChunk, [&](int64_t j) {
      const double lambda = __ldcg(seen.reported + (begin + j) * seen.stride);
      if (isnan(lambda)) return 0.0;
      least = lambda < least ? lambda : least;
      largest = lambda > largest ? lambda : largest;
      ++count;
      return lambda;
    });
    least = Group<32>::min(least);
    largest = Group<32>::max(largest);
    count = Group<32>::sum(count);
    if (threadIdx.x % 32 == 0) {
      task.chunk[c] = {sum, least, largest, static_cast<double>(count)};
    }
  }
}

/// Lambda over the examples that had one, from the chunks.
template <int kThreads>
__device__ void report_lambda(const ReportTask& task, BackwardReport& report) {
  using Block = Group<kThreads>;
  const double infinity = static_cast<double>(INFINITY);
  double least = infinity, largest = -infinity, count = 0.0;
  for (int64_t c = threadIdx.x; c < task.chunks; c += kThreads) {
    const LambdaChunk& chunk = task.chunk[c];
    least = min(least, __ldcg(&chunk.least));
    largest = max(largest, __ldcg(&chunk.largest));
    count += __ldcg(&chunk.count);
  }
  least = Block::min(least);
  largest = Block::max(largest);
  count = Block::reduce(count, [](double x, double y) { return x + y; });  // integers: exact
  const double sum = block_fixed_total(
      task.chunks, [&](int64_t c) { return __ldcg(&task.chunk[c].sum); }, task.scratch);
  const double nan = static_cast<double>(NAN);
  report.lambda_min = count > 0.0 ? least : nan;
  report.lambda_max = count > 0.0 ? largest : nan;
  report.lambda_mean = count > 0.0 ? sum / count : nan;
}

/// Writes the statistics and lets the controller move; a block of kThreads together. The chunks of
/// step sizes have been summed.
template <int kThreads>
__device__ void make_report(const ReportTask& task) {
  __shared__ Changes total;
  Changes mine;
  for (int64_t i = threadIdx.x; i < task.seen.blocks; i += kThreads) {
    const auto* from = reinterpret_cast<const long long*>(task.seen.changes + i);
    mine.add({.nonzeros = __ldcg(from),
              .samples = __ldcg(from + 1),
              .changed = __ldcg(from + 2),
              .zeros = __ldcg(from + 3),
              .entries = __ldcg(from + 4)});
  }
  mine = block_total<kThreads>(mine);
  if (threadIdx.x == 0) total = mine;
  __syncthreads();
  BackwardReport report;
  report.changes = total;
  if (total.samples == 0) return;
  const DeviceState& state = task.state;
  if (state.stats != nullptr) {
    report_lambda<kThreads>(task, report);
    if (task.seen.capped != nullptr) {
      report.capped_share = task.seen.capped[0];
      report.capped_mass = task.seen.capped[1];
    }
  }
  if (threadIdx.x != 0) return;
  if (state.stats != nullptr) write_stats(report, state.stats);
  if (!task.adaptive || !state.adapt) return;
  ControllerState controller{.alpha = *state.alpha,
                             .gbar = *state.gbar,
                             .updates = *state.updates,
                             .velocity = state.velocity == nullptr ? 0.0 : *state.velocity};
  update(task.target, report.changes, controller);
  *state.alpha = controller.alpha;
  *state.gbar = controller.gbar;
  *state.updates = controller.updates;
  if (state.velocity != nullptr) *state.velocity = controller.velocity;
}

}  // namespace aimle::cuda
