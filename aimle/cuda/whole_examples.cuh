// The kernel of whole_examples.h, for a policy of map_rows.cuh.
#pragma once

#include "aimle/cuda/accumulate.cuh"
#include "aimle/cuda/map_rows.cuh"
#include "aimle/cuda/step_sizes.cuh"
#include "aimle/cuda/whole_examples.h"

namespace aimle::cuda {

/// WholeExamples for the device.
template <class T>
struct WholeTask {
  RowSource<T> rows;
  DeviceStepRule step;
  const double* batch_lambda;
  DivideRule divide;
  const uint8_t* left;
  T* dtheta;
  uint8_t* status;
  double* reported;
  Changes* changes;
  unsigned* done;
  int per_block;  // examples
  int64_t row_bytes;
};

/// A block's shared memory: offsets in bytes, the widest types first.
struct WholeRoom {
  int64_t counts;   // [warps, 5] long long
  int64_t lambda;   // [per_block, gradients + 2] double
  int64_t norms;    // [per_block, gradients + 1] RowNorm
  int64_t scratch;  // of the solver, row_bytes for every row at once
  int64_t chosen;   // [sides, per_block, samples, words] uint32_t
  int64_t counted;  // [per_block, gradients] uint8_t
  int64_t status;   // [sides, per_block, samples] uint8_t
  int64_t bytes;
};

template <class Policy, class T>
__host__ __device__ WholeRoom whole_room(const WholeTask<T>& task) {
  using Unit = UnitOf<Policy>;
  constexpr int64_t kAtOnce = Unit::kPerBlock * Unit::kRows;
  const int64_t examples = task.per_block, gradients = task.rows.gradients;
  const int64_t rows = task.rows.sides * examples * task.rows.samples;
  WholeRoom room{};
  room.norms = (Policy::kBlockThreads / 32 * 5 * 8 + 15) / 16 * 16;
  room.scratch = room.norms + examples * (gradients + 1) * static_cast<int64_t>(sizeof(RowNorm));
  room.lambda = room.scratch + kAtOnce * task.row_bytes;
  room.chosen = room.lambda + examples * (gradients + 2) * 8;
  room.counted = room.chosen + rows * Unit::words(task.rows.examples.n) * 4;
  room.status = room.counted + examples * gradients;
  room.bytes = room.status + rows;
  return room;
}

/// The maximum number of quads of a row, for a policy that solves a row by a thread; otherwise 0.
template <class Policy>
inline constexpr int kRowQuads = 0;
template <class Policy>
requires(Policy::kRowThreads == 1) inline constexpr int kRowQuads<Policy> = Policy::kQuads;

template <class T, class Policy>
__global__ void __launch_bounds__(Policy::kBlockThreads, min_blocks<Policy>())
    whole_examples_kernel(const __grid_constant__ WholeTask<T> task,
                          const __grid_constant__ Policy policy) {
  using Unit = UnitOf<Policy>;
  using UnitGroup = Group<Unit::kThreads>;
  constexpr int kThreads = Policy::kBlockThreads, kWarps = kThreads / 32, kCounts = 5;
  char* shared = dynamic_shared<char>();
  const WholeRoom room = whole_room<Policy>(task);
  auto* counts = reinterpret_cast<long long*>(shared + room.counts);
  auto* lambda = reinterpret_cast<double*>(shared + room.lambda);
  auto* norms = reinterpret_cast<RowNorm*>(shared + room.norms);
  auto* chosen = reinterpret_cast<uint32_t*>(shared + room.chosen);
  auto* counted = reinterpret_cast<uint8_t*>(shared + room.counted);
  auto* status = reinterpret_cast<uint8_t*>(shared + room.status);

  const RowSource<T>& source = task.rows;
  const DeviceExamples<T>& examples = source.examples;
  const int64_t n = examples.n, words = Unit::words(n);
  const auto samples = static_cast<int>(source.samples);
  const auto gradients = static_cast<int>(source.gradients);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int unit = thread / Unit::kThreads;
  const int local = UnitGroup::rank() / Policy::kRowThreads;
  const int row_rank = UnitGroup::rank() % Policy::kRowThreads;
  char* scratch = shared + room.scratch + (unit * Unit::kRows + local) * task.row_bytes;
  const double alpha = alpha_of(task.step), batch_lambda = lambda_of_batch(task.batch_lambda);
  if (blockIdx.x == 0 && thread == 0) *task.done = 0;
  if (lane < kCounts) counts[warp * kCounts + lane] = 0;

  for (int64_t first = static_cast<int64_t>(blockIdx.x) * task.per_block; first < examples.count;
       first += static_cast<int64_t>(gridDim.x) * task.per_block) {
    const int count = static_cast<int>(
        examples.count - first < task.per_block ? examples.count - first : task.per_block);
    norms_by_block<kRowQuads<Policy>>(task.step, examples, first, count, source.dy, gradients,
                                      norms);
    __syncthreads();
    steps_by_block(task.step, examples, first, alpha, batch_lambda, count, gradients, norms, lambda,
                   counted);
    __syncthreads();
    for (int i = thread; i < count; i += kThreads) {
      task.reported[first + i] = lambda[i * (gradients + 2) + gradients + 1];
    }

    const int per_side = count * samples;
    for (int begin = unit * Unit::kRows; begin < source.sides * per_side;
         begin += Unit::kPerBlock * Unit::kRows) {
      const int i = begin + local;
      if (i < source.sides * per_side) {
        const int side = i >= per_side, at = i - side * per_side;
        const int b = at / samples, s = at - b * samples;
        uint32_t* mine = chosen + i * words;
        const Row<T> row(source, side, first + b, s, lambda + b * (gradients + 2));
        const Status found = policy.template solve<T>(row, mine, scratch);
        if (row_rank == 0) {
          status[i] = static_cast<uint8_t>(found);
          if (task.status != nullptr) {
            task.status[side * examples.count * samples + first * samples + at] =
                static_cast<uint8_t>(found);
          }
        }
        if (found != Status::kOk) {
          for (int64_t w = row_rank; w < words; w += Policy::kRowThreads) mine[w] = 0;
        }
      }
      UnitGroup::sync();
    }
    __syncthreads();

    const bool kept = task.left != nullptr;
    const auto* bits = reinterpret_cast<const uint8_t*>(chosen);
    const int right = kept ? 0 : per_side;  // row of the first right solution
    const BitPair pair{.left = kept ? task.left + first * samples * bytes_per_row(n) : bits,
                       .right = bits + right * words * 4,
                       .left_status = kept ? nullptr : status,
                       .right_status = status + right,
                       .left_stride = kept ? bytes_per_row(n) : words * 4,
                       .right_stride = words * 4};
    const DeviceExamples<T> mine{
        .count = count,
        .n = n,
        .theta = examples.theta + first * n,
        .mask = examples.mask == nullptr ? nullptr : examples.mask + first * n};
    Changes seen;
    divide_changes(mine, pair, task.divide, lambda, task.dtheta + first * n, thread, kThreads,
                   seen);
    count_changes(mine, pair, task.divide, lambda, counted, thread, kThreads, seen);
    // A block has fewer than 2^31 of everything.
    const int all[kCounts] = {static_cast<int>(seen.nonzeros), static_cast<int>(seen.samples),
                              static_cast<int>(seen.changed), static_cast<int>(seen.zeros),
                              static_cast<int>(seen.entries)};
#pragma unroll
    for (int c = 0; c < kCounts; ++c) {
      const int sum = Group<32>::sum(all[c]);
      if (lane == 0) counts[warp * kCounts + c] += sum;
    }
    __syncthreads();
  }

  if (thread < kCounts) {
    long long sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) sum += counts[w * kCounts + thread];
    // In the order of Changes.
    reinterpret_cast<long long*>(task.changes + blockIdx.x)[thread] = sum;
  }
}

template <class Policy, class T>
int64_t whole_examples_by(const Policy& policy, const WholeExamples<T>& work,
                          const Context& context) {
  using Unit = UnitOf<Policy>;
  static_assert(Policy::kRowThreads <= 32);
  static_assert(sizeof(Changes) == 5 * sizeof(long long));
  constexpr int64_t kAtOnce = Unit::kPerBlock * Unit::kRows;
  constexpr int64_t kFill = 264, kFull = 1056;  // blocks: two for every multiprocessor, and eight
  constexpr int64_t kRoom = 32 * 1024;

  const int64_t count = work.rows.examples.count, n = work.rows.examples.n;
  const int64_t of_example = work.rows.sides * work.rows.samples;
  if (of_example > kRoom) return 0;
  const int64_t per_block = std::clamp<int64_t>(kAtOnce / of_example, 1,
                                                std::max<int64_t>((count + kFill - 1) / kFill, 1));
  const int64_t rounds = (per_block * of_example + kAtOnce - 1) / kAtOnce;
  const int64_t blocks = (count + per_block - 1) / per_block;
  WholeTask<T> task{.rows = work.rows,
                    .step = step_rule(work.settings, work.size, work.alpha),
                    .batch_lambda = nullptr,
                    .divide = divide_rule(work.settings),
                    .left = work.left,
                    .dtheta = work.dtheta,
                    .status = work.status,
                    .reported = work.reported,
                    .changes = work.changes,
                    .done = work.done,
                    .per_block = static_cast<int>(per_block),
                    .row_bytes = align_up(policy.template row_bytes<T>(n))};
  const int64_t shared = whole_room<Policy>(task).bytes;
  if (shared > kRoom || (rounds > 2 && blocks < kFull)) return 0;
  task.batch_lambda =
      batch_lambda(work.settings, work.size, work.rows.examples, work.rows.dy, work.alpha, context);
  const int64_t limited = std::min(blocks, kWholeBlocks);
  launch(Policy::kName, whole_examples_kernel<T, Policy>, static_cast<unsigned>(limited),
         Policy::kBlockThreads, shared, context, task, policy);
  return limited;
}

}  // namespace aimle::cuda
