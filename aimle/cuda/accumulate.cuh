// The difference of two solutions, summed over the samples of an example and divided: the gradient.
//
// A thread per four entries of theta processes the example's samples in order, like the host, so
// that sums of fractions round identically; counts are integers, so their order does not matter.
//
// Solutions are bits (BitPair) or numbers (NumberPair); both have
//   void changes(row, q, d)                  d: z_left - z_right of entries 4q ... 4q + 3, NaN if a
//                                            solution is missing; arbitrary past the end of the row
//   long long nonzeros(row, n, lane, lanes)  this lane's share of the changed entries; < 0: NaN
#pragma once

#include "aimle/cuda/group.cuh"
#include "aimle/cuda/launch.cuh"
#include "aimle/cuda/row.cuh"
#include "aimle/cuda/step_sizes.h"
#include "aimle/cuda/update_state.cuh"
#include "aimle/estimate/divide_rule.h"

namespace aimle::cuda {

inline constexpr int kAccumulateThreads = 256;
inline constexpr int64_t kAccumulateBlocks = 1056;

struct BitPair {
  static constexpr bool kIntegers = true;  // changes are -1, 0 and 1

  const uint8_t* left;
  const uint8_t* right;
  const uint8_t* left_status;  // null: all are solutions
  const uint8_t* right_status;
  int64_t left_stride;  // bytes per row
  int64_t right_stride;

  __device__ bool missing(int64_t row) const {
    const int left_code = left_status == nullptr ? 0 : left_status[row];
    return (left_code | right_status[row]) != 0;
  }
  /// Entries 4q ... 4q + 3, each as the lowest bit of a byte.
  __device__ static uint32_t four(const uint8_t* bits, int64_t stride, int64_t row, int64_t q) {
    const uint32_t nibble = (bits[row * stride + q / 2] >> (4 * (q % 2))) & 0xfu;
    return (nibble * 0x00204081u) & 0x01010101u;
  }
  __device__ uint32_t left_four(int64_t row, int64_t q) const {
    return four(left, left_stride, row, q);
  }
  __device__ uint32_t right_four(int64_t row, int64_t q) const {
    return four(right, right_stride, row, q);
  }
  __device__ void changes(int64_t row, int64_t q, double (&d)[4]) const {
    const bool lost = missing(row);
    const uint32_t l = left_four(row, q), r = right_four(row, q);
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int change = static_cast<int>(l >> (8 * c) & 1) - static_cast<int>(r >> (8 * c) & 1);
      d[c] = lost ? static_cast<double>(NAN) : static_cast<double>(change);
    }
  }
  __device__ long long nonzeros(int64_t row, int64_t n, int lane, int lanes) const {
    if (missing(row)) return -1;
    const uint8_t *l = left + row * left_stride, *r = right + row * right_stride;
    long long count = 0;
    for (int64_t i = lane; 8 * i < n; i += lanes) {
      count += __popc(static_cast<unsigned>(l[i] ^ r[i]));
    }
    return count;
  }
};

template <class T>
struct NumberPair {
  static constexpr bool kIntegers = false;

  const T* left;
  const T* right;
  int64_t n;

  __device__ double change(int64_t row, int64_t j) const {
    return static_cast<double>(left[row * n + j] - right[row * n + j]);
  }
  __device__ void changes(int64_t row, int64_t q, double (&d)[4]) const {
#pragma unroll
    for (int c = 0; c < 4; ++c) d[c] = 4 * q + c < n ? change(row, 4 * q + c) : 0.0;
  }
  __device__ long long nonzeros(int64_t row, int64_t, int lane, int lanes) const {
    long long count = 0;
    for (int64_t j = lane; j < n; j += lanes) {
      const double d = change(row, j);
      if (d != d) return -1;
      count += d != 0.0;
    }
    return count;
  }
};

/// The changes of entries 4q ... 4q + 3 over the rows of an example, each divided by its step size
/// if it has its own; NaN if a step size or a solution is missing.
template <class Pair>
__device__ __forceinline__ void sum_of_changes(const Pair& pair, const DivideRule& rule,
                                               const double* steps, int64_t first_row, int64_t q,
                                               double (&sum)[4]) {
  const int64_t samples = rule.samples;
  const auto step_of = [&](int64_t s) { return steps[rule.row(s)]; };
  if constexpr (Pair::kIntegers) {
    if (!rule.own_lambda) {          // exact in any order; without branches all loads are in flight
      constexpr int64_t kFit = 255;  // counts that fit a byte
      long long total[4] = {};
      bool lost = false;
      for (int64_t begin = 0; begin < samples; begin += kFit) {
        const int64_t end = samples - begin < kFit ? samples : begin + kFit;
        uint32_t left = 0, right = 0;
#pragma unroll 5
        for (int64_t s = begin; s < end; ++s) {
          lost |= isnan(step_of(s));
          lost |= pair.missing(first_row + s);
          left += pair.left_four(first_row + s, q);
          right += pair.right_four(first_row + s, q);
        }
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          total[c] += static_cast<int>(left >> (8 * c) & 0xff);
          total[c] -= static_cast<int>(right >> (8 * c) & 0xff);
        }
      }
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        sum[c] = lost ? static_cast<double>(NAN) : static_cast<double>(total[c]);
      }
      return;
    }
  }
#pragma unroll
  for (int c = 0; c < 4; ++c) sum[c] = 0.0;
  for (int64_t s = 0; s < samples; ++s) {
    const double step = step_of(s), factor = rule.factor(step);
    double change[4];
    pair.changes(first_row + s, q, change);
#pragma unroll
    for (int c = 0; c < 4; ++c) sum[c] = rule.added(sum[c], change[c], step, factor);
  }
}

/// Four entries at `to`, those that exist.
template <class T>
__device__ __forceinline__ void store_quad(T* to, int64_t count, bool aligned, const T (&x)[4]) {
  if (aligned) {
    if constexpr (sizeof(T) == 4) {
      *reinterpret_cast<float4*>(to) = make_float4(x[0], x[1], x[2], x[3]);
    } else {
      reinterpret_cast<double2*>(to)[0] = make_double2(x[0], x[1]);
      reinterpret_cast<double2*>(to)[1] = make_double2(x[2], x[3]);
    }
    return;
  }
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    if (c < count) to[c] = x[c];
  }
}

/// The gradients of `examples`, whose rows are those of `pair` and whose step sizes those of
/// `lambda` [count, gradients + 2], by all threads together.
template <class T, class Pair>
__device__ __forceinline__ void divide_changes(const DeviceExamples<T>& examples, const Pair& pair,
                                               const DivideRule& rule, const double* lambda,
                                               T* dtheta, int64_t thread, int64_t threads,
                                               Changes& seen) {
  const int64_t n = examples.n, quads = (n + 3) / 4;
  const bool aligned = quads_aligned(examples.theta, n) && quads_aligned(dtheta, n);
  for (int64_t e = thread; e < examples.count * quads; e += threads) {
    const Split at = split(e, quads);
    const int64_t b = at.quotient, q = at.rest, first = b * n + 4 * q;
    const double* steps = lambda + b * (rule.gradients + 2);
    T theta[4];
    load_quad(examples.theta + b * n, q, n, aligned, theta);
    double sum[4];
    sum_of_changes(pair, rule, steps, b * rule.samples, q, sum);
    const double divisor = rule.divisor(steps[rule.gradients]);
    T result[4];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const bool free = 4 * q + c < n && (examples.mask == nullptr || examples.mask[first + c]) &&
                        !is_infinite(theta[c]);
      const double g = rule.gradient(sum[c], divisor, free);
      result[c] = static_cast<T>(g);
      count_entry(g, free, seen);
    }
    store_quad(dtheta + first, n - 4 * q, aligned, result);
  }
}

/// Counts what changed in the rows of `examples`, arguments as above; `counted` [count, gradients].
template <class T, class Pair>
__device__ __forceinline__ void count_changes(const DeviceExamples<T>& examples, const Pair& pair,
                                              const DivideRule& rule, const double* lambda,
                                              const uint8_t* counted, int64_t thread,
                                              int64_t threads, Changes& seen) {
  // One thread per short row, one warp per long row.
  const int64_t n = examples.n, gradients = rule.gradients;
  const int lanes = n <= 64 ? 1 : 32;
  const int lane = static_cast<int>(thread % lanes);
  for (int64_t row = thread / lanes; row < examples.count * rule.samples; row += threads / lanes) {
    const Split place = split(row, rule.samples);
    const int64_t g = rule.row(place.rest);
    const bool counts = counted[place.quotient * gradients + g] != 0;
    if (!counts | isnan(lambda[place.quotient * (gradients + 2) + g])) continue;
    long long nonzeros = pair.nonzeros(row, n, lane, lanes);
    if (lanes == 32) {
      nonzeros = Group<32>::any(nonzeros < 0)
                     ? -1
                     : Group<32>::reduce(nonzeros, [](long long x, long long y) { return x + y; });
    }
    if (lane == 0) count_change(nonzeros, seen);
  }
}

template <class T, class Pair>
__global__ void __launch_bounds__(kAccumulateThreads)
    accumulate_kernel(const __grid_constant__ DeviceExamples<T> examples,
                      const __grid_constant__ Pair pair, const __grid_constant__ DivideRule rule,
                      const __grid_constant__ UpdateTask task, const double* lambda,
                      const uint8_t* counted, T* dtheta, Changes* changes, unsigned* done) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kAccumulateThreads;
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kAccumulateThreads + threadIdx.x;
  // From the end, where there is the least to do.
  if (task.wanted) sum_lambda_chunks(task, (threads - 1 - thread) / 32, threads / 32);
  Changes seen;
  divide_changes(examples, pair, rule, lambda, dtheta, thread, threads, seen);
  count_changes(examples, pair, rule, lambda, counted, thread, threads, seen);
  if (!task.wanted) return;
  seen = block_total<kAccumulateThreads>(seen);
  if (threadIdx.x == 0) changes[blockIdx.x] = seen;
  if (!is_last_block(done)) return;
  update_state_in_block<kAccumulateThreads>(task, share_of_changes<kAccumulateThreads>(task));
}

inline unsigned accumulate_blocks(int64_t count, int64_t n, int64_t samples) {
  // One more, for the step sizes.
  return 1 +
         blocks_for(count * std::max((n + 3) / 4, samples), kAccumulateThreads, kAccumulateBlocks);
}

/// Bytes of device memory that accumulate needs.
inline int64_t accumulate_bytes(int64_t count, int64_t n, int64_t samples) {
  return align_up(accumulate_blocks(count, n, samples) * static_cast<int64_t>(sizeof(Changes))) +
         update_bytes(count);
}

/// Writes dtheta, the statistics and the state. `done` [1] is a zero on the device, `room` has
/// accumulate_bytes. `clipped` [2] as in DeviceReport.
template <class T, class Pair>
void accumulate_and_update(const PassSettings& settings, const DeviceExamples<T>& examples,
                           const Pair& pair, const double* lambda, const uint8_t* counted,
                           T* dtheta, const DeviceState& state, unsigned* done, void* room,
                           const Context& context, const unsigned long long* clipped = nullptr) {
  const int64_t gradients = gradient_rows(settings);
  const unsigned blocks = accumulate_blocks(examples.count, examples.n, settings.samples);
  auto* changes = static_cast<Changes*>(room);
  const DeviceReport seen{.examples = examples.count,
                          .reported = lambda + gradients + 1,
                          .stride = gradients + 2,
                          .changes = changes,
                          .blocks = blocks,
                          .clipped = clipped};
  const UpdateTask task =
      update_task(settings, seen, state,
                  static_cast<char*>(room) + align_up(blocks * int64_t{sizeof(Changes)}));
  launch("difference", accumulate_kernel<T, Pair>, blocks, kAccumulateThreads, 0, context, examples,
         pair, divide_rule(settings), task, lambda, counted, dtheta, changes, done);
}

}  // namespace aimle::cuda
