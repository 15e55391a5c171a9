// The difference of two solutions, summed over the samples of an example and divided: the gradient.
//
// A thread per entry of theta goes through the example's samples in order, as the host does, so
// that sums of fractions round alike; counts are integers, and any order serves.
//
// Solutions come as bits (BitPair) or as numbers (NumberPair); both answer
//   double change(row, j)                    z_left - z_right, NaN where a solution is missing
//   long long nonzeros(row, n, lane, lanes)  this lane's share of the changed entries; < 0: NaN
#pragma once

#include "aimle/cuda/group.cuh"
#include "aimle/cuda/launch.cuh"
#include "aimle/cuda/report.cuh"
#include "aimle/cuda/row.cuh"
#include "aimle/cuda/step_sizes.h"

namespace aimle::cuda {

inline constexpr int kAccumulateThreads = 256;
inline constexpr int64_t kAccumulateBlocks = 1056;

struct BitPair {
  static constexpr bool kIntegers = true;  // changes are -1, 0 and 1

  const uint8_t* left;
  const uint8_t* right;
  const uint8_t* left_status;  // null: all are solutions
  const uint8_t* right_status;
  int64_t stride;  // bytes per row

  __device__ bool missing(int64_t row) const {
    const int left_code = left_status == nullptr ? 0 : left_status[row];
    return (left_code | right_status[row]) != 0;
  }
  __device__ int integer_change(int64_t row, int64_t j) const {
    const int64_t at = row * stride + j / 8;
    const int bit = static_cast<int>(j % 8);
    return ((left[at] >> bit) & 1) - ((right[at] >> bit) & 1);
  }
  __device__ double change(int64_t row, int64_t j) const {
    return missing(row) ? static_cast<double>(NAN) : static_cast<double>(integer_change(row, j));
  }
  __device__ long long nonzeros(int64_t row, int64_t, int lane, int lanes) const {
    if (missing(row)) return -1;
    long long count = 0;
    for (int64_t i = row * stride + lane; i < (row + 1) * stride; i += lanes) {
      count += __popc(static_cast<unsigned>(left[i] ^ right[i]));
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

/// How sums become gradients.
struct DivideRule {
  int64_t samples;
  int64_t gradients;
  bool own_lambda;  // every sample is divided by its own step size
  double factor;    // of lambda in the divisor: 2 for the central difference
  double root;      // the divisor is divided by it: sqrt(samples) for the authors' code, else 1
  double mean;      // the divisor is multiplied by it: samples for the mean, else 1
  double sign;
};

/// The changes of entry j of example b over its samples, each divided by its step size if it has
/// one of its own; NaN if a step size or a solution is missing.
template <class Pair>
__device__ __forceinline__ double sum_of_changes(const Pair& pair, const DivideRule& rule,
                                                 const double* steps, int64_t b, int64_t j) {
  const int64_t samples = rule.samples;
  const auto step_of = [&](int64_t s) { return steps[rule.gradients == 1 ? 0 : s]; };
  if constexpr (Pair::kIntegers) {
    if (!rule.own_lambda) {  // exact in any order, and without branches all loads are under way
      long long sum = 0;
      bool lost = false;
#pragma unroll 5
      for (int64_t s = 0; s < samples; ++s) {
        lost |= isnan(step_of(s)) | pair.missing(b * samples + s);
        sum += pair.integer_change(b * samples + s, j);
      }
      return lost ? static_cast<double>(NAN) : static_cast<double>(sum);
    }
  }
  double sum = 0.0;
  for (int64_t s = 0; s < samples; ++s) {
    const double step = step_of(s);
    if (isnan(step)) {  // whatever the solver made of it
      sum = step;
      continue;
    }
    const double change = pair.change(b * samples + s, j);
    if (!rule.own_lambda) {
      sum += change;
    } else if (change != 0.0) {
      sum += change / step;
    }
  }
  return sum;
}

template <class T, class Pair>
__global__ void __launch_bounds__(kAccumulateThreads)
    accumulate_kernel(const __grid_constant__ DeviceExamples<T> examples,
                      const __grid_constant__ Pair pair, const __grid_constant__ DivideRule rule,
                      const __grid_constant__ ReportTask task, const double* lambda,
                      const uint8_t* counted, T* dtheta, Changes* changes, unsigned* done) {
  const int64_t n = examples.n, samples = rule.samples, gradients = rule.gradients;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kAccumulateThreads;
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kAccumulateThreads + threadIdx.x;
  Changes seen;

  for (int64_t e = thread; e < examples.count * n; e += threads) {
    const Split at = split(e, n);
    const int64_t b = at.quotient, j = at.rest;
    const double* steps = lambda + b * (gradients + 2);
    const double sum = sum_of_changes(pair, rule, steps, b, j);
    double divisor = rule.factor * steps[gradients];
    divisor /= rule.root;
    divisor *= rule.mean;
    const bool free =
        (examples.mask == nullptr || examples.mask[e]) && !is_infinite(examples.theta[e]);
    // At lambda = 0 both solutions are the same; a NaN still passes.
    const double g = !free ? 0.0 : divisor > 0.0 ? rule.sign * sum / divisor : sum * 0.0;
    dtheta[e] = static_cast<T>(g);
    seen.zeros += free && g == 0.0;
    seen.entries += free;
  }

  // Short rows a thread each, long ones a warp each.
  const int lanes = n <= 64 ? 1 : 32;
  const int lane = static_cast<int>(thread % lanes);
  for (int64_t row = thread / lanes; row < examples.count * samples; row += threads / lanes) {
    const Split place = split(row, samples);
    const int64_t g = gradients == 1 ? 0 : place.rest;
    if (!counted[place.quotient * gradients + g] ||
        isnan(lambda[place.quotient * (gradients + 2) + g])) {
      continue;
    }
    long long nonzeros = pair.nonzeros(row, n, lane, lanes);
    if (lanes == 32) {
      nonzeros = Group<32>::any(nonzeros < 0)
                     ? -1
                     : Group<32>::reduce(nonzeros, [](long long x, long long y) { return x + y; });
    }
    if (lane != 0 || nonzeros < 0) continue;
    seen.nonzeros += nonzeros;
    seen.changed += nonzeros > 0;
    seen.samples += 1;
  }

  if (!task.wanted) return;
  sum_lambda_chunks(task, thread / 32, threads / 32);
  const Changes total = block_total<kAccumulateThreads>(seen);
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    changes[blockIdx.x] = total;
    __threadfence();
    last = atomicAdd(done, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  make_report<kAccumulateThreads>(task);
}

/// Writes dtheta, the statistics and the state. `done` [1] is a zero on the device.
template <class T, class Pair>
void accumulate(const EstimatorSettings& settings, const DeviceExamples<T>& examples,
                const Pair& pair, const double* lambda, const uint8_t* counted, T* dtheta,
                const DeviceState& state, unsigned* done, const Context& context) {
  const auto* target = std::get_if<AdaptiveTarget>(&settings.target);
  const auto samples = static_cast<double>(settings.samples);
  const int64_t gradients = gradient_rows(settings);
  const DivideRule rule{
      .samples = settings.samples,
      .gradients = gradients,
      .own_lambda = target != nullptr && target->scope == AdaptiveTarget::Scope::kSample,
      .factor = settings.difference == Difference::kCentral ? 2.0 : 1.0,
      .root = target != nullptr && target->reference ? std::sqrt(samples) : 1.0,
      .mean = settings.output == Output::kMean ? samples : 1.0,
      .sign = settings.sense == Sense::kMin ? -1.0 : 1.0};
  const int64_t work = std::max(examples.count * examples.n, examples.count * settings.samples);
  const unsigned blocks = blocks_for(work, kAccumulateThreads, kAccumulateBlocks);
  const int64_t changes_bytes = align_up(blocks * static_cast<int64_t>(sizeof(Changes)));
  auto* room = context.array<uint8_t>(changes_bytes + report_bytes(examples.count));
  auto* changes = reinterpret_cast<Changes*>(room);
  const DeviceReport seen{.examples = examples.count,
                          .reported = lambda + gradients + 1,
                          .stride = gradients + 2,
                          .changes = changes,
                          .blocks = blocks};
  const ReportTask task = report_task(settings, seen, state, room + changes_bytes);
  launch("difference", accumulate_kernel<T, Pair>, blocks, kAccumulateThreads, 0, context, examples,
         pair, rule, task, lambda, counted, dtheta, changes, done);
}

}  // namespace aimle::cuda
