#include "aimle/cuda/threshold_backward.h"

#include <algorithm>
#include <type_traits>

#include "aimle/base/check.h"
#include "aimle/cuda/group.cuh"
#include "aimle/cuda/launch.cuh"
#include "aimle/cuda/row.cuh"
#include "aimle/cuda/sums.cuh"
#include "aimle/cuda/threshold_samples.cuh"
#include "aimle/estimate/threshold_weight.h"
#include "aimle/estimate/thresholds.h"

namespace aimle::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int64_t kSharedBytes = 12 * 1024;  // of an example; beyond, device memory
constexpr int64_t kLargeBlocks = 528;
/// Bytes of device memory in all, if a block needs no more.
constexpr int64_t kLargeScratch = int64_t{1} << 30;
constexpr int kTotalThreads = 1024;

/// The effect of the cap on an example.
struct Capped {
  double weights;
  double capped;
  double mass;
  double lost;
};

struct Rule {
  NoiseKind density;
  ThresholdTarget::Order order;
  double max_weight;
  double tau;
  double sign;
  double shift;  // subtracted from the scores, to centre their noise
  double scale;
  bool centred;  // whether to subtract the mean of the gradient
  int64_t gradients;
};

// ---- Gradients ----------------------------------------------------------------------------------

/// A tree of halves, like the end of fixed_sum.
__device__ __forceinline__ double fold_lanes(double partial) {
#pragma unroll
  for (int half = 16; half > 0; half /= 2) partial += __shfl_down_sync(kAllLanes, partial, half);
  return partial;
}

template <class T, class Sample>
__device__ void gradient_of_example(const RowSource<T>& source, const Rule& rule,
                                    const typename Sample::Shape& shape, int64_t b, const T* dy,
                                    const uint8_t* bits, char* memory, T* dtheta, Changes* changes,
                                    Capped* capped) {
  Group<32> warp;
  const int lane = warp.rank();
  const int64_t n = source.examples.n, samples = source.samples, stride = bytes_per_row(n);
  const T* theta = source.examples.theta + b * n;
  const bool* mask = source.examples.mask == nullptr ? nullptr : source.examples.mask + b * n;
  const bool trapezoid = rule.order == ThresholdTarget::Order::kTrapezoid;
  const auto is_free = [&](int64_t j) {
    return (mask == nullptr || mask[j]) && !is_infinite(theta[j]);
  };
  auto* sum = reinterpret_cast<double*>(memory);  // [n], lane j mod 32 has entry j
  char* const of_sample = memory + (n * sizeof(double) + 15) / 16 * 16;
  for (int64_t j = lane; j < n; j += 32) sum[j] = 0.0;
  double mass = 0.0, lost = 0.0;
  int weights = 0, cut = 0;
  int64_t solved = 0;
  for (int64_t s = 0; s < samples; ++s) {
    const int64_t r = b * samples + s;
    const Row<T> row(source, r);
    const uint8_t* own = bits + r * stride;
    const auto chosen = [own](int64_t j) { return (own[j / 8] >> (j % 8) & 1) != 0; };
    int ones = 0;
    for (int64_t i = lane; i < stride; i += 32) ones += __popc(static_cast<unsigned>(own[i]));
    if (!Sample::solved(warp, shape, row, theta, warp.sum(ones))) {
      for (int64_t j = lane; j < n; j += 32) sum[j] = static_cast<double>(NAN);
      continue;
    }
    const T* d = dy + (b * rule.gradients + (rule.gradients == 1 ? 0 : s)) * n;
    const Sample sample(warp, shape, row, d, chosen, of_sample);
    for (int64_t j = lane; j < n; j += 32) {
      const bool is_in = chosen(j);
      const Threshold swap = sample.of(j, is_in);
      if (!is_free(j) || !isfinite(swap.threshold)) continue;
      const double u =
          ((swap.threshold + rule.shift) - rule.sign * static_cast<double>(theta[j])) / rule.tau;
      const double weight = threshold_weight(rule.density, rule.order, u, is_in);
      const double kept = weight < rule.max_weight ? weight : rule.max_weight;
      weights += 1;
      cut += weight > kept;
      mass += weight * fabs(swap.difference);
      if (weight > kept) lost += (weight - kept) * fabs(swap.difference);
      sum[j] += (trapezoid ? 0.5 : 1.0) * kept * swap.difference;
    }
    ++solved;
    warp.sync();
  }

  const double total = warp_fixed_sum(n, [&](int64_t j) { return is_free(j) ? sum[j] : 0.0; });
  int free = 0;
  for (int64_t j = lane; j < n; j += 32) free += is_free(j);
  free = warp.sum(free);
  const double mean = rule.centred ? total / (free > 1 ? static_cast<double>(free) : 1.0) : 0.0;
  int zeros = 0;
  for (int64_t j = lane; j < n; j += 32) {
    const bool moves = is_free(j);
    const double g = moves ? rule.scale * (sum[j] - mean) : 0.0;
    dtheta[b * n + j] = static_cast<T>(g);
    zeros += moves && g == 0.0;
  }
  zeros = warp.sum(zeros);
  weights = warp.sum(weights);
  cut = warp.sum(cut);
  mass = fold_lanes(mass);
  lost = fold_lanes(lost);
  if (lane != 0) return;
  changes[b] = {.samples = solved, .zeros = zeros, .entries = free};
  capped[b] = {static_cast<double>(weights), static_cast<double>(cut), mass, lost};
}

template <class T, class Sample>
__global__ void __launch_bounds__(32 * kWarps)
    threshold_kernel(const __grid_constant__ RowSource<T> source, const __grid_constant__ Rule rule,
                     const __grid_constant__ typename Sample::Shape shape, const T* dy,
                     const uint8_t* bits, char* memory, int64_t bytes, T* dtheta, Changes* changes,
                     Capped* capped) {
  char* shared = dynamic_shared<char>();
  const int slot = static_cast<int>(threadIdx.x) / 32;
  const int64_t unit = int64_t{blockIdx.x} * kWarps + slot;
  char* own = memory == nullptr ? shared + slot * bytes : memory + unit * bytes;
  for (int64_t b = unit; b < source.examples.count; b += int64_t{gridDim.x} * kWarps) {
    gradient_of_example<T, Sample>(source, rule, shape, b, dy, bits, own, dtheta, changes, capped);
    __syncwarp();
  }
}

/// The shares of all examples: out[0] of the weights, out[1] of the mass; and no lambda.
__global__ void __launch_bounds__(kTotalThreads)
    total_kernel(int64_t count, const Capped* capped, double* scratch, double* out) {
  const auto total = [&](double Capped::*part) {
    return block_fixed_total(
        count, [&](int64_t b) { return capped[b].*part; }, scratch);
  };
  const double weights = total(&Capped::weights), cut = total(&Capped::capped);
  const double mass = total(&Capped::mass), lost = total(&Capped::lost);
  if (threadIdx.x != 0) return;
  out[0] = cut / (weights > 1.0 ? weights : 1.0);
  out[1] = mass > 0.0 ? lost / mass : mass;
  out[2] = static_cast<double>(NAN);
}

template <class T, class Sample>
void launch_backward(const typename Sample::Shape& shape, const Rule& rule,
                     const RowSource<T>& source, const DeviceBackward<T>& pass, Changes* changes,
                     Capped* capped, const Context& context) {
  const int64_t n = source.examples.n, count = source.examples.count;
  const int64_t bytes =
      align_up(n * static_cast<int64_t>(sizeof(double))) + Sample::bytes(shape, n);
  const bool shared = bytes <= kSharedBytes;
  const int64_t most = std::clamp(kLargeScratch / (kWarps * bytes + 1), int64_t{1}, kLargeBlocks);
  const unsigned blocks = shared ? blocks_for(count, kWarps) : blocks_for(count, kWarps, most);
  char* memory = shared ? nullptr : context.array<char>(blocks * kWarps * bytes);
  launch("thresholds", threshold_kernel<T, Sample>, blocks, 32 * kWarps,
         shared ? kWarps * bytes : 0, context, source, rule, shape, pass.dy, pass.bits, memory,
         bytes, pass.dtheta, changes, capped);
}

/// The kernel for the samples of this solver.
template <class T>
void launch_for(const Solver& solver, const Rule& rule, const RowSource<T>& source,
                const DeviceBackward<T>& pass, Changes* changes, Capped* capped,
                const Context& context) {
  const int64_t chosen = solver.solution_size().ones;
  const auto start = [&]<class Sample>(std::type_identity<Sample>,
                                       const typename Sample::Shape& shape) {
    launch_backward<T, Sample>(shape, rule, source, pass, changes, capped, context);
  };
  if (solver.swaps() == Swaps::kEntry) {
    start(std::type_identity<RowSample<T>>{}, {.chosen = chosen});
  } else if (const auto* tree = solver.get_if<SpanningTree>()) {
    const auto vertices = static_cast<int32_t>(tree->vertices);
    if (tree->layout == SpanningTree::Layout::kDirected) {
      start(std::type_identity<TreeSample<T, true>>{}, {.chosen = chosen, .vertices = vertices});
    } else {
      start(std::type_identity<TreeSample<T, false>>{}, {.chosen = chosen, .vertices = vertices});
    }
  } else if (solver.is<Bernoulli>()) {
    start(std::type_identity<SignSample<T>>{}, {});
  } else if (const auto* chain = solver.get_if<Chain>()) {
    start(std::type_identity<ChainSample<T>>{}, chain_shape(*chain));
  } else if (const auto* cells = solver.get_if<LatticePath>()) {
    start(std::type_identity<LatticeSample<T, false>>{}, lattice_shape(*cells));
  } else if (const auto* moves = solver.get_if<LatticeMoves>()) {
    start(std::type_identity<LatticeSample<T, true>>{}, lattice_shape(*moves));
  } else {
    aimle::detail::throw_invalid_argument(
        "[aimle::thresholds] ", solver.name(),
        " has no thresholds on the GPU; move theta to the CPU, or use aimle");
  }
}

}  // namespace

template <class T>
void threshold_backward(const PassSettings& settings, const Solver& solver,
                        const DeviceExamples<T>& examples, const DeviceBackward<T>& pass,
                        const DeviceState& state, const Context& context) {
  entries_in_solution(solver);  // throws for solvers without thresholds
  const bool fixed_size = solver.solution_size().fixed;
  AIMLE_CHECK(!solver.is<SpanningTree>() || examples.n < (int64_t{1} << 31),
              "[aimle::thresholds] expected fewer than 2^31 entries but got n=", examples.n);
  if (examples.count == 0) return;
  const auto& target = std::get<ThresholdTarget>(settings.target);
  const double sign = settings.sense == Sense::kMin ? -1.0 : 1.0;
  const double samples =
      settings.output == Output::kMean ? static_cast<double>(settings.samples) : 1.0;
  const double mean = fixed_size ? 0.0 : settings.noise_mean;
  const Rule rule{
      .density = target.density,
      .order =
          settings.noise.kind == NoiseKind::kNone ? ThresholdTarget::Order::kFirst : target.order,
      .max_weight = target.max_weight,
      .tau = settings.theta_temperature,
      .sign = sign,
      .shift = static_cast<double>(centring<T>(mean, settings.theta_temperature, Signs{})),
      .scale = sign / (settings.theta_temperature * samples),
      .centred = fixed_size,
      .gradients = gradient_rows(settings)};
  const RowSource<T> source{.examples = examples,
                            .samples = settings.samples,
                            .noise = settings.noise,
                            .tau = settings.theta_temperature,
                            .mean = settings.noise.kind == NoiseKind::kNone ? 0.0 : mean,
                            .sign = signs(settings.sense, Sense::kMax)};
  auto* changes = context.array<Changes>(examples.count);
  auto* capped = context.array<Capped>(examples.count);
  launch_for(solver, rule, source, pass, changes, capped, context);
  if (state.stats == nullptr) return;
  auto* totals = context.array<double>(3);
  launch("thresholds", total_kernel, 1, kTotalThreads, 0, context, examples.count,
         static_cast<const Capped*>(capped),
         context.array<double>(fixed_total_scratch(examples.count)), totals);
  update_state(settings,
               {.examples = examples.count,
                .reported = totals + 2,
                .stride = 0,
                .changes = changes,
                .blocks = examples.count,
                .capped = totals},
               state, nullptr, context);
}

template void threshold_backward(const PassSettings&, const Solver&, const DeviceExamples<float>&,
                                 const DeviceBackward<float>&, const DeviceState&, const Context&);
template void threshold_backward(const PassSettings&, const Solver&, const DeviceExamples<double>&,
                                 const DeviceBackward<double>&, const DeviceState&, const Context&);

}  // namespace aimle::cuda
