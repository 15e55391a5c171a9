// The report of one backward pass: statistics and the controller's update, by one block.
#pragma once

#include "aimle/cuda/group.cuh"
#include "aimle/cuda/passes.h"
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

/// The task of the reporting block.
struct UpdateTask {
  DeviceReport seen;
  DeviceState state;
  AdaptiveTarget target;
  int64_t samples = 1;
  bool adaptive = false;
  bool wanted = false;  // whether there is anything to write
  int64_t chunks = 0;
  LambdaChunk* chunk = nullptr;  // [chunks]
  double* scratch = nullptr;
};

/// Bytes of device memory for a report on this many examples.
inline int64_t update_bytes(int64_t examples) {
  const int64_t chunks = (examples + kSumChunk - 1) / kSumChunk;
  return chunks * static_cast<int64_t>(sizeof(LambdaChunk)) +
         fixed_total_scratch(chunks) * static_cast<int64_t>(sizeof(double));
}

/// The task, in `room` of update_bytes, aligned to doubles.
inline UpdateTask update_task(const PassSettings& settings, const DeviceReport& seen,
                              const DeviceState& state, void* room) {
  const auto* target = std::get_if<AdaptiveTarget>(&settings.target);
  const int64_t chunks = (seen.examples + kSumChunk - 1) / kSumChunk;
  auto* chunk = static_cast<LambdaChunk*>(room);
  return {
      .seen = seen,
      .state = state,
      .target = target == nullptr ? AdaptiveTarget{} : *target,
      .samples = settings.samples,
      .adaptive = target != nullptr,
      .wanted = seen.examples > 0 && (state.stats != nullptr || (target != nullptr && state.adapt)),
      .chunks = state.stats == nullptr ? 0 : chunks,
      .chunk = chunk,
      .scratch = reinterpret_cast<double*>(chunk + chunks)};
}

/// Adds the changes of a block's threads; every thread gets them.
template <int kThreads>
__device__ Changes block_total(const Changes& mine) {
  constexpr int kWarps = kThreads / 32, kCounts = 5;
  __shared__ long long partial[kCounts][kWarps];
  __shared__ long long total[kCounts];
  long long counts[kCounts] = {mine.nonzeros, mine.samples, mine.changed, mine.zeros, mine.entries};
#pragma unroll
  for (int half = 16; half > 0; half /= 2) {
#pragma unroll
    for (int c = 0; c < kCounts; ++c) counts[c] += __shfl_xor_sync(kAllLanes, counts[c], half);
  }
  if (threadIdx.x % 32 == 0) {
#pragma unroll
    for (int c = 0; c < kCounts; ++c) partial[c][threadIdx.x / 32] = counts[c];
  }
  __syncthreads();
  if (threadIdx.x < kCounts) {
    long long sum = 0;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) sum += partial[threadIdx.x][warp];
    total[threadIdx.x] = sum;
  }
  __syncthreads();
  const Changes result{.nonzeros = total[0],
                       .samples = total[1],
                       .changed = total[2],
                       .zeros = total[3],
                       .entries = total[4]};
  __syncthreads();
  return result;
}

/// Chunks first, first + stride, ... of the step sizes; every warp its own.
__device__ inline void sum_lambda_chunks(const UpdateTask& task, int64_t first, int64_t stride) {
  const DeviceReport& seen = task.seen;
  const double infinity = static_cast<double>(INFINITY);
  for (int64_t c = first; c < task.chunks; c += stride) {
    const int64_t begin = c * kSumChunk;
    const int64_t rest = seen.examples - begin;
    double least = infinity, largest = -infinity;
    int count = 0;
    const double sum = warp_fixed_sum<16>(
        rest < kSumChunk ? rest : kSumChunk,
        [&](int64_t j) { return __ldcg(seen.reported + (begin + j) * seen.stride); },
        [&](double lambda) {
          const bool has_one = !isnan(lambda);
          least = has_one && lambda < least ? lambda : least;
          largest = has_one && lambda > largest ? lambda : largest;
          count += has_one;
          return has_one ? lambda : 0.0;
        });
    least = Group<32>::min(least);
    largest = Group<32>::max(largest);
    count = Group<32>::sum(count);
    if (threadIdx.x % 32 == 0) {
      task.chunk[c] = {sum, least, largest, static_cast<double>(count)};
    }
  }
}

/// Lambda over the examples that have one, from the chunks; executed by `Threads` together, with
/// total(n, term) as their fixed_total.
template <class Threads, class Total>
__device__ void report_lambda(const UpdateTask& task, Total total, BackwardReport& report) {
  const double infinity = static_cast<double>(INFINITY);
  double least = infinity, largest = -infinity, count = 0.0;
  for (int64_t c = Threads::rank(); c < task.chunks; c += Threads::size()) {
    const LambdaChunk& chunk = task.chunk[c];
    least = min(least, __ldcg(&chunk.least));
    largest = max(largest, __ldcg(&chunk.largest));
    count += __ldcg(&chunk.count);
  }
  least = Threads::min(least);
  largest = Threads::max(largest);
  count = Threads::reduce(count, [](double x, double y) { return x + y; });  // integers: exact
  const double sum = total(task.chunks, [&](int64_t c) { return __ldcg(&task.chunk[c].sum); });
  const double nan = static_cast<double>(NAN);
  report.lambda_min = count > 0.0 ? least : nan;
  report.lambda_max = count > 0.0 ? largest : nan;
  report.lambda_mean = count > 0.0 ? sum / count : nan;
}

/// The counts of the blocks, this thread's share.
template <int kThreads>
__device__ Changes share_of_changes(const UpdateTask& task) {
  Changes mine;
  for (int64_t i = threadIdx.x; i < task.seen.blocks; i += kThreads) {
    const auto* from = reinterpret_cast<const long long*>(task.seen.changes + i);
    mine.add({.nonzeros = __ldcg(from),
              .samples = __ldcg(from + 1),
              .changed = __ldcg(from + 2),
              .zeros = __ldcg(from + 3),
              .entries = __ldcg(from + 4)});
  }
  return mine;
}

__device__ inline ControllerState read_controller(const DeviceState& state) {
  return {.alpha = *state.alpha,
          .gbar = *state.gbar,
          .updates = *state.updates,
          .memory = state.memory == nullptr ? 0.0 : *state.memory};
}

__device__ inline void write_controller(const ControllerState& controller,
                                        const DeviceState& state) {
  *state.alpha = controller.alpha;
  *state.gbar = controller.gbar;
  *state.updates = controller.updates;
  if (state.memory != nullptr) *state.memory = controller.memory;
}

/// Writes the statistics and updates the controller, given every thread's share of the changes;
/// executed by a block of kThreads together. The chunks of step sizes have been summed.
template <int kThreads>
__device__ void update_state_in_block(const UpdateTask& task, const Changes& share) {
  const DeviceState& state = task.state;
  const bool moves = task.adaptive && state.adapt;
  ControllerState controller;
  if (moves && threadIdx.x == 0) {  // early, so that nothing waits for it later
    controller = read_controller(state);
  }
  BackwardReport report;
  report.changes = block_total<kThreads>(share);
  if (report.changes.samples == 0) return;
  if (state.stats != nullptr) {
    if (task.chunks <= kSumChunk) {  // one chunk of chunks: a warp has them all
      if (threadIdx.x >= 32) return;
      report_lambda<Group<32>>(
          task, [](int64_t n, auto term) { return warp_fixed_sum(n, term); }, report);
    } else {
      report_lambda<Group<kThreads>>(
          task, [&](int64_t n, auto term) { return block_fixed_total(n, term, task.scratch); },
          report);
    }
    if (task.seen.clipped != nullptr) {
      report.clipping.clipped = static_cast<int64_t>(task.seen.clipped[0]);
      report.clipping.costs = static_cast<int64_t>(task.seen.clipped[1]);
    }
    if (task.seen.capped != nullptr) {
      report.capped_share = task.seen.capped[0];
      report.capped_mass = task.seen.capped[1];
    }
  }
  if (threadIdx.x != 0) return;
  if (state.stats != nullptr) write_stats(report, state.stats);
  if (!moves) return;
  if (state.waiting != nullptr) {
    add_waiting(report, state.waiting);
    return;
  }
  update_alpha(task.target, task.samples, report.changes, controller);
  write_controller(controller, state);
  if (state.stats != nullptr) {
    update_watch(task.target, report.lambda_max, controller.alpha, state.stats);
  }
}

/// Whether this block is the last of the grid to get here. Executed by a block together; writes of
/// the other blocks before it are then visible. `done` initially is zero.
__device__ inline bool is_last_block(unsigned* done) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(done, 1u) == gridDim.x - 1;
  __syncthreads();
  __threadfence();
  return last;
}

}  // namespace aimle::cuda
