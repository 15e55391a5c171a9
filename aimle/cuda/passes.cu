#include "aimle/cuda/passes.h"

#include "aimle/cuda/accumulate.cuh"
#include "aimle/cuda/kernels.h"
#include "aimle/cuda/step_sizes.h"
#include "aimle/cuda/threshold_backward.h"

namespace aimle::cuda {
namespace {

constexpr int kThreads = 256;

template <class T>
RowSource<T> perturbed_rows(const PassSettings& settings, Sense solver_sense,
                            const DeviceExamples<T>& examples) {
  return {.examples = examples,
          .samples = settings.samples,
          .noise = settings.noise,
          .tau = settings.theta_temperature,
          .mean = settings.noise.kind == NoiseKind::kNone ? 0.0 : settings.noise_mean,
          .sign = signs(settings.sense, solver_sense)};
}

template <class T>
RowSource<T> stepped_rows(const PassSettings& settings, Sense solver_sense,
                          const DeviceExamples<T>& examples, const T* dy, const double* lambda) {
  RowSource<T> source = perturbed_rows(settings, solver_sense, examples);
  source.tau = settings.target_temperature;
  source.dy = dy;
  source.gradients = gradient_rows(settings);
  source.lambda = lambda;
  return source;
}

/// The step of the left solution, in units of lambda.
int left_scale(const PassSettings& settings) {
  return settings.difference == Difference::kCentral ? 1 : 0;
}

/// z [B, n]: the mean of the samples.
template <class T>
__global__ void __launch_bounds__(kThreads)
    mean_kernel(int64_t count, int64_t n, int64_t samples, const uint8_t* bits,
                const uint8_t* status, T* z) {
  const int64_t stride = bytes_per_row(n);
  for (int64_t e = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; e < count * n;
       e += static_cast<int64_t>(gridDim.x) * kThreads) {
    const Split at = split(e, n);
    int64_t sum = 0;
    bool bad = false;
    for (int64_t s = 0; s < samples; ++s) {
      const int64_t row = at.quotient * samples + s;
      bad |= status[row] != 0;
      sum += (bits[row * stride + at.rest / 8] >> (at.rest % 8)) & 1;
    }
    z[e] = bad ? static_cast<T>(NAN)
               : static_cast<T>(static_cast<double>(sum) / static_cast<double>(samples));
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    straight_through_kernel(const __grid_constant__ DeviceExamples<T> examples, int64_t gradients,
                            double sign, const T* dy, T* dtheta) {
  const int64_t n = examples.n;
  for (int64_t e = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       e < examples.count * n; e += static_cast<int64_t>(gridDim.x) * kThreads) {
    const Split at = split(e, n);
    double sum = 0.0;
    for (int64_t s = 0; s < gradients; ++s) {
      sum += static_cast<double>(dy[(at.quotient * gradients + s) * n + at.rest]);
    }
    const bool free =
        (examples.mask == nullptr || examples.mask[e]) && !is_infinite(examples.theta[e]);
    dtheta[e] = free ? static_cast<T>(sign * sum) : T(0);
  }
}

/// Backward in one kernel and update_state; false, and nothing done, if that does not fit.
template <class T, class SourceFor>
bool backward_of_whole_examples(const PassSettings& settings, const Solver& solver,
                                const DeviceExamples<T>& examples, const DeviceBackward<T>& pass,
                                bool kept, const SourceFor& source_for, const DeviceState& state,
                                const Context& context) {
  const Kernels& kernels = kernels_of(solver);
  if (!kernels.has_whole_examples()) return false;
  const int64_t changes_bytes = kWholeBlocks * int64_t{sizeof(Changes)};
  const int64_t reported_bytes = align_up(examples.count * int64_t{sizeof(double)});
  auto* room =
      context.array<uint8_t>(16 + changes_bytes + reported_bytes + update_bytes(examples.count));
  WholeExamples<T> work{.settings = settings,
                        .size = solver.solution_size(),
                        .alpha = alpha_source(settings, state),
                        .left = kept ? pass.bits : nullptr,
                        .dtheta = pass.dtheta,
                        .status = pass.status,
                        .reported = reinterpret_cast<double*>(room + 16 + changes_bytes),
                        .changes = reinterpret_cast<Changes*>(room + 16),
                        .done = reinterpret_cast<unsigned*>(room)};
  work.rows = source_for(solver.sense(), nullptr);
  const int64_t blocks = kernels.whole_examples(solver, work, context);
  if (blocks == 0) return false;
  const DeviceReport seen{.examples = examples.count,
                          .reported = work.reported,
                          .changes = work.changes,
                          .blocks = blocks,
                          .done = work.done};
  update_state(settings, seen, state, room + 16 + changes_bytes + reported_bytes, context);
  return true;
}

}  // namespace

AlphaSource alpha_source(const PassSettings& settings, const DeviceState& state) {
  const auto* target = std::get_if<AdaptiveTarget>(&settings.target);
  if (target == nullptr) return {};
  const bool probes = state.adapt && target->is_automatic();
  return {
      .alpha = state.alpha, .updates = state.updates, .probe = probes ? target->alpha_max : 0.0};
}

template <class T>
void forward(const PassSettings& settings, const Solver& solver, const DeviceExamples<T>& examples,
             const DeviceForward<T>& pass, const Context& context) {
  const int64_t rows = examples.count * settings.samples, n = examples.n;
  if (rows == 0) return;
  const bool mean = settings.output == Output::kMean;
  RowSink<T> sink{.z = mean ? nullptr : pass.z, .bits = pass.bits, .status = pass.status};
  if (mean && sink.bits == nullptr) sink.bits = context.array<uint8_t>(rows * bytes_per_row(n));
  if (mean && sink.status == nullptr) sink.status = context.array<uint8_t>(rows);
  const RowSource<T> source = perturbed_rows(settings, solver.sense(), examples);
  kernels_of(solver).map_rows(solver, source, sink, context);
  if (!mean) return;
  launch("perturbed_map", mean_kernel<T>, blocks_for(examples.count * n, kThreads), kThreads, 0,
         context, examples.count, n, settings.samples, static_cast<const uint8_t*>(sink.bits),
         static_cast<const uint8_t*>(sink.status), pass.z);
}

template <class T>
void backward(const PassSettings& settings, const Solver& solver, const DeviceExamples<T>& examples,
              const DeviceBackward<T>& pass, const DeviceState& state, const Context& context) {
  if (settings.difference == Difference::kStraightThrough) {
    return straight_through(settings, examples, pass.dy, pass.dtheta, context);
  }
  if (settings.difference == Difference::kThresholds) {
    return threshold_backward(settings, solver, examples, pass, state, context);
  }
  const int64_t rows = examples.count * settings.samples, n = examples.n;
  if (rows == 0) return;
  const int64_t gradients = gradient_rows(settings), stride = bytes_per_row(n);
  const bool kept = keeps_solution(settings) && pass.bits != nullptr;
  const int sides = kept ? 1 : 2;

  const auto source_for = [&](Sense solver_sense, const double* lambda) {
    RowSource<T> source = stepped_rows<T>(settings, solver_sense, examples, pass.dy, lambda);
    source.sides = sides;
    source.side_scale[0] = kept ? -1 : left_scale(settings);
    source.side_scale[1] = -1;
    return source;
  };
  if (backward_of_whole_examples(settings, solver, examples, pass, kept, source_for, state,
                                 context)) {
    return;
  }

  // One allocation: the doubles first.
  const int64_t accumulated = align_up(accumulate_bytes(examples.count, n, settings.samples));
  const int64_t lambda_bytes = align_up(examples.count * (gradients + 2) * int64_t{sizeof(double)});
  const int64_t counted_bytes = align_up(examples.count * gradients);
  const int64_t bits_bytes = align_up(sides * rows * stride);
  auto* done = reinterpret_cast<unsigned*>(context.array<uint8_t>(
      16 + accumulated + lambda_bytes + counted_bytes + bits_bytes + sides * rows));
  auto* sums = reinterpret_cast<uint8_t*>(done) + 16;
  auto* lambda = reinterpret_cast<double*>(sums + accumulated);
  uint8_t* counted = sums + accumulated + lambda_bytes;
  uint8_t* bits = counted + counted_bytes;
  uint8_t* status = pass.status != nullptr ? pass.status : bits + bits_bytes;

  unsigned long long* clipped = nullptr;
  if (solver.has_costs() && state.stats != nullptr) {
    clipped = context.array<unsigned long long>(2);
    check(cudaMemsetAsync(clipped, 0, 2 * sizeof(*clipped), stream_of(context)), "grid_path");
  }
  step_sizes(settings, solver.solution_size(), examples, pass.dy, alpha_source(settings, state),
             lambda, counted, done, context);
  const RowSource<T> source = source_for(solver.sense(), lambda);
  const RowSink<T> sink{.bits = bits, .status = status, .clipped = clipped};
  kernels_of(solver).map_rows(solver, source, sink, context);
  const BitPair pair{.left = kept ? pass.bits : bits,
                     .right = kept ? bits : bits + rows * stride,
                     .left_status = kept ? nullptr : status,
                     .right_status = kept ? status : status + rows,
                     .left_stride = stride,
                     .right_stride = stride};
  accumulate_and_update(settings, examples, pair, lambda, counted, pass.dtheta, state, done, sums,
                        context, clipped);
}

template <class T>
void perturb(const PassSettings& settings, Sense solver_sense, const DeviceExamples<T>& examples,
             T* x, const Context& context) {
  write_scores(perturbed_rows(settings, solver_sense, examples), x, context);
}

template <class T>
void step(const PassSettings& settings, const CallableSolver& solver,
          const DeviceExamples<T>& examples, const T* dy, const DeviceState& state, T* x_left,
          T* x_right, double* lambda, uint8_t* counted, const Context& context) {
  step_sizes(settings, solver.size, examples, dy, alpha_source(settings, state), lambda, counted,
             nullptr, context);
  RowSource<T> source = stepped_rows<T>(settings, solver.sense, examples, dy, lambda);
  source.side_scale[0] = left_scale(settings);
  if (x_left != nullptr) write_scores(source, x_left, context);
  source.side_scale[0] = -1;
  write_scores(source, x_right, context);
}

template <class T>
void difference(const PassSettings& settings, const DeviceExamples<T>& examples, const T* z_left,
                const T* z_right, const double* lambda, const uint8_t* counted, T* dtheta,
                const DeviceState& state, const Context& context) {
  if (examples.count == 0) return;
  const NumberPair<T> pair{.left = z_left, .right = z_right, .n = examples.n};
  auto* room =
      context.array<uint8_t>(16 + accumulate_bytes(examples.count, examples.n, settings.samples));
  auto* done = reinterpret_cast<unsigned*>(room);
  check(cudaMemsetAsync(done, 0, sizeof(unsigned), stream_of(context)), "difference");
  accumulate_and_update(settings, examples, pair, lambda, counted, dtheta, state, done, room + 16,
                        context);
}

template <class T>
void straight_through(const PassSettings& settings, const DeviceExamples<T>& examples, const T* dy,
                      T* dtheta, const Context& context) {
  const int64_t entries = examples.count * examples.n;
  if (entries == 0) return;
  launch("straight_through", straight_through_kernel<T>, blocks_for(entries, kThreads), kThreads, 0,
         context, examples, gradient_rows(settings), settings.sense == Sense::kMin ? -1.0 : 1.0, dy,
         dtheta);
}

AIMLE_INSTANTIATE_PASSES(float)
AIMLE_INSTANTIATE_PASSES(double)

}  // namespace aimle::cuda
