#include "aimle/cuda/step_sizes.h"

#include "aimle/cuda/launch.cuh"
#include "aimle/cuda/row.cuh"
#include "aimle/cuda/sums.cuh"

namespace aimle::cuda {
namespace {

using Scope = AdaptiveTarget::Scope;
using Scale = AdaptiveTarget::Scale;

/// The target, without what the device has no use for.
struct StepRule {
  bool adaptive = false;
  double fixed = 0.0;
  Scope scope = Scope::kExample;
  Scale scale = Scale::kTheta;
  bool zeros_count = false;
  double sigma = 0.0;
};

StepRule rule_of(const EstimatorSettings& settings) {
  if (const auto* fixed = std::get_if<FixedTarget>(&settings.target)) {
    return {.fixed = fixed->lambda};
  }
  const auto& target = std::get<AdaptiveTarget>(settings.target);
  return {.adaptive = true,
          .scope = target.scope,
          .scale = target.scale,
          .zeros_count = target.reference && target.scope == Scope::kBatch,
          .sigma = settings.noise_stddev * settings.target_temperature};
}

/// Sums over an example, for the batch's step size.
struct BatchSums {
  double* theta;    // [B]
  double* dy;       // [B]
  double* entries;  // [B]
  double* scratch;
  double* lambda;  // [1]
};

template <class T>
__device__ __forceinline__ double norm_of_free(const DeviceExamples<T>& examples, int64_t b,
                                               const T* x) {
  const T* theta = examples.theta + b * examples.n;
  const bool* mask = examples.mask == nullptr ? nullptr : examples.mask + b * examples.n;
  return __dsqrt_rn(warp_fixed_sum(examples.n, [&](int64_t j) {
    const bool free = (mask == nullptr || mask[j]) && !is_infinite(theta[j]);
    const double v = free ? static_cast<double>(x[j]) : 0.0;
    return v * v;
  }));
}

__device__ __forceinline__ bool finite(double x) { return isfinite(x); }

/// The norms of theta_b and of its gradient rows, the latter into `d`; a block together.
struct ExampleNorms {
  double theta;
  double entries;  // that can move
};
template <class T>
__device__ ExampleNorms example_norms(const DeviceExamples<T>& examples, int64_t b, const T* dy,
                                      int64_t rows, double* d) {
  __shared__ ExampleNorms norms;
  const int warp = static_cast<int>(threadIdx.x) / 32, warps = static_cast<int>(blockDim.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t n = examples.n;
  const T* theta = examples.theta + b * n;
  for (int64_t row = warp; row <= rows; row += warps) {
    const T* x = row == rows ? theta : dy + (b * rows + row) * n;
    const double norm = norm_of_free(examples, b, x);
    if (row < rows) {
      if (lane == 0) d[row] = norm;
      continue;
    }
    int64_t free = 0;
    for (int64_t j = lane; j < n; j += 32) {
      free += (examples.mask == nullptr || examples.mask[b * n + j]) && !is_infinite(theta[j]);
    }
    free = Group<32>::reduce(static_cast<long long>(free),
                             [](long long x, long long y) { return x + y; });
    if (lane == 0) norms = {norm, static_cast<double>(free)};
  }
  __syncthreads();
  const ExampleNorms result = norms;
  __syncthreads();
  return result;
}

template <class T>
__global__ void batch_sums_kernel(const __grid_constant__ DeviceExamples<T> examples, const T* dy,
                                  int64_t rows, double* lambda, BatchSums sums) {
  for (int64_t b = blockIdx.x; b < examples.count; b += gridDim.x) {
    double* d = lambda + b * (rows + 2);
    const ExampleNorms norm = example_norms(examples, b, dy, rows, d);
    if (threadIdx.x >= 32) continue;
    const bool ok = finite(norm.theta);  // if not, its own gradient will be NaN
    const double squares = warp_fixed_sum(rows, [&](int64_t s) {
      const double length = d[s];
      return finite(length) ? length * length : 0.0;
    });
    if (threadIdx.x == 0) {
      sums.theta[b] = ok ? norm.theta * norm.theta : 0.0;
      sums.entries[b] = ok ? norm.entries : 0.0;
      sums.dy[b] = ok ? squares : 0.0;
    }
  }
}

__global__ void batch_lambda_kernel(StepRule rule, int64_t examples, int64_t rows,
                                    const double* alpha, BatchSums sums) {
  const double gradient = block_fixed_total(
      examples, [&](int64_t b) { return sums.dy[b]; }, sums.scratch);
  const double* sizes = rule.scale == Scale::kTheta ? sums.theta : sums.entries;
  const double total = block_fixed_total(
      examples, [&](int64_t b) { return sizes[b]; }, sums.scratch);
  if (threadIdx.x != 0) return;
  const double size = rule.scale == Scale::kTheta ? total : rule.sigma * rule.sigma * total;
  *sums.lambda =
      gradient > 0.0 ? *alpha * __dsqrt_rn(static_cast<double>(rows) * size / gradient) : 0.0;
}

/// How the threads that share an example work together: a warp, or one thread alone.
struct AsWarp {
  __device__ static int64_t first() { return threadIdx.x % 32; }
  static constexpr int64_t kStride = 32;
  __device__ static double max(double x) { return Group<32>::max(x); }
  __device__ static long long sum(long long x) {
    return Group<32>::reduce(x, [](long long a, long long b) { return a + b; });
  }
  template <class Term>
  __device__ static double fixed_sum(int64_t n, Term term) {
    return warp_fixed_sum(n, term);
  }
};
struct AsThread {
  __device__ static int64_t first() { return 0; }
  static constexpr int64_t kStride = 1;
  __device__ static double max(double x) { return x; }
  __device__ static long long sum(long long x) { return x; }
  template <class Term>
  __device__ static double fixed_sum(int64_t n, Term term) {
    return thread_fixed_sum(n, term);
  }
};

/// From the norms d(s) to `row` [rows + 2], the step sizes, and `counted` [rows]. d may read row.
template <class As, class Norm>
__device__ void set_steps(const StepRule& rule, const ExampleNorms& norms, int64_t rows,
                          const double* alpha, const double* batch_lambda, Norm d, double* row,
                          uint8_t* counted) {
  const double nan = __longlong_as_double(0x7ff8000000000000ll);
  const auto norm = [&](int64_t s) { return finite(norms.theta) ? d(s) : nan; };
  const auto counts = [&](double d) { return finite(d) && (d > 0.0 || rule.zeros_count); };
  double largest = 0.0;
  long long any = 0;
  for (int64_t s = As::first(); s < rows; s += As::kStride) {
    const double length = norm(s);
    const bool is_counted = counts(length);
    counted[s] = is_counted;
    any += is_counted;
    if (is_counted && length > largest) largest = length;
  }
  largest = As::max(largest);
  any = As::sum(any);

  double shared = rule.fixed, size = 0.0;
  if (rule.adaptive && rule.scope == Scope::kBatch) {
    shared = *batch_lambda;
  } else if (rule.adaptive) {
    size = rule.scale == Scale::kTheta ? norms.theta : rule.sigma * __dsqrt_rn(norms.entries);
    const auto in_mean = [&](double d) { return counts(d) && d >= kSmallGradient * largest; };
    long long used = 0;
    for (int64_t s = As::first(); s < rows; s += As::kStride) used += in_mean(norm(s));
    used = As::sum(used);
    const double sum = As::fixed_sum(rows, [&](int64_t s) {
      const double length = norm(s);
      return in_mean(length) ? size / length : 0.0;
    });
    shared = used > 0 ? *alpha * (sum / static_cast<double>(used)) : 0.0;
  }
  const bool own = rule.adaptive && rule.scope == Scope::kSample;
  for (int64_t s = As::first(); s < rows; s += As::kStride) {
    const double length = norm(s);
    double step = finite(length) ? shared : nan;
    if (own && finite(length)) step = counts(length) ? *alpha * (size / length) : 0.0;
    if (own && !finite(step)) step = nan;
    row[s] = step;
  }
  if (As::first() == 0) {
    row[rows] = own ? 1.0 : shared;  // own: each sample's difference is divided by its own
    row[rows + 1] = any > 0 ? shared : nan;
  }
}

/// A block per example, a warp per row.
template <class T>
__global__ void step_sizes_kernel(const __grid_constant__ DeviceExamples<T> examples, const T* dy,
                                  int64_t rows, StepRule rule, const double* alpha,
                                  const double* batch_lambda, double* lambda, uint8_t* counted,
                                  unsigned* done) {
  if (done != nullptr && blockIdx.x == 0 && threadIdx.x == 0) *done = 0;
  for (int64_t b = blockIdx.x; b < examples.count; b += gridDim.x) {
    double* row = lambda + b * (rows + 2);
    const ExampleNorms norms = example_norms(examples, b, dy, rows, row);
    if (threadIdx.x < 32) {
      const auto d = [=](int64_t s) { return row[s]; };
      set_steps<AsWarp>(rule, norms, rows, alpha, batch_lambda, d, row, counted + b * rows);
    }
  }
}

// ---- Short rows: a thread each, and a thread for what they have in common
// -------------------------------

constexpr int kShortThreads = 128;
constexpr int64_t kShortRow = 32;  // entries, so that every partial sum has one term at most

/// Partial sum `lane` when `half` of them are left, in the order of fixed_sum.h.
template <int lane, int half>
__device__ __forceinline__ double folded(const double (&squares)[32]) {
  if constexpr (half == 32) {
    return squares[lane];
  } else {
    return folded<lane, 2 * half>(squares) + folded<lane + half, 2 * half>(squares);
  }
}

/// The norm of row x of n <= kShortRow entries, over those of theta that can move.
template <class T>
__device__ ExampleNorms short_norm(const T* x, const T* theta, const bool* mask, int64_t n,
                                   bool aligned) {
  double squares[32];
  int entries = 0;
#pragma unroll
  for (int q = 0; q < 8; ++q) {
    T values[4] = {}, scores[4] = {};
    if (4 * q < n) {
      load_quad(x, q, n, aligned, values);
      load_quad(theta, q, n, aligned, scores);
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int j = 4 * q + c;
      const bool free = j < n && (mask == nullptr || mask[j]) && !is_infinite(scores[c]);
      const double v = free ? static_cast<double>(values[c]) : 0.0;
      squares[j] = v * v;
      entries += free;
    }
  }
  return {__dsqrt_rn(folded<0, 1>(squares)), static_cast<double>(entries)};
}

/// `per_block` examples to a block.
template <class T>
__global__ void __launch_bounds__(kShortThreads)
    short_step_sizes_kernel(const __grid_constant__ DeviceExamples<T> examples, const T* dy,
                            int rows, int per_block, StepRule rule, const double* alpha,
                            double* lambda, uint8_t* counted, unsigned* done) {
  if (done != nullptr && blockIdx.x == 0 && threadIdx.x == 0) *done = 0;
  extern __shared__ ExampleNorms norms[];  // [per_block, rows + 1]: dy's, then theta's
  const int64_t n = examples.n;
  const bool aligned = quads_aligned(examples.theta, n) && quads_aligned(dy, n);
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * per_block; first < examples.count;
       first += static_cast<int64_t>(gridDim.x) * per_block) {
    const int count =
        static_cast<int>(examples.count - first < per_block ? examples.count - first : per_block);
    for (int i = static_cast<int>(threadIdx.x); i < count * (rows + 1); i += kShortThreads) {
      const int64_t b = first + i / (rows + 1);
      const int row = i % (rows + 1);
      const T* theta = examples.theta + b * n;
      const bool* mask = examples.mask == nullptr ? nullptr : examples.mask + b * n;
      norms[i] =
          short_norm(row == rows ? theta : dy + (b * rows + row) * n, theta, mask, n, aligned);
    }
    __syncthreads();
    // A warp for an example of many rows, else a thread.
    const auto set = [&](auto as, int i) {
      const ExampleNorms* mine = norms + i * (rows + 1);
      const auto d = [=](int64_t s) { return mine[s].theta; };
      set_steps<decltype(as)>(rule, mine[rows], rows, alpha, nullptr, d,
                              lambda + (first + i) * (rows + 2), counted + (first + i) * rows);
    };
    if (rows > 4) {
      for (int i = static_cast<int>(threadIdx.x) / 32; i < count; i += kShortThreads / 32) {
        set(AsWarp{}, i);
      }
    } else {
      for (int i = static_cast<int>(threadIdx.x); i < count; i += kShortThreads) set(AsThread{}, i);
    }
    __syncthreads();
  }
}

}  // namespace

template <class T>
void step_sizes(const EstimatorSettings& settings, const DeviceExamples<T>& examples, const T* dy,
                const double* alpha, double* lambda, uint8_t* counted, unsigned* done,
                const Context& context) {
  const int64_t count = examples.count, rows = gradient_rows(settings);
  if (count == 0) return;
  const StepRule rule = rule_of(settings);
  const auto threads = static_cast<unsigned>(32 * std::clamp<int64_t>(rows + 1, 1, 8));
  const unsigned blocks = blocks_for(count, 1);
  const bool of_batch = rule.adaptive && rule.scope == Scope::kBatch;
  if (examples.n <= kShortRow && rows < kShortThreads && !of_batch) {
    const auto per_block = static_cast<int>(kShortThreads / (rows + 1));
    const auto shared = per_block * (rows + 1) * static_cast<int64_t>(sizeof(ExampleNorms));
    return launch("step", short_step_sizes_kernel<T>, blocks_for(count, per_block), kShortThreads,
                  shared, context, examples, dy, static_cast<int>(rows), per_block, rule, alpha,
                  lambda, counted, done);
  }
  BatchSums sums{};
  if (of_batch) {
    const int64_t scratch = fixed_total_scratch(count);
    auto* room = context.array<double>(3 * count + scratch + 1);
    sums = {.theta = room,
            .dy = room + count,
            .entries = room + 2 * count,
            .scratch = room + 3 * count,
            .lambda = room + 3 * count + scratch};
    launch("step", batch_sums_kernel<T>, blocks, threads, 0, context, examples, dy, rows, lambda,
           sums);
    launch("step", batch_lambda_kernel, 1, 1024, 0, context, rule, count, rows, alpha, sums);
  }
  launch("step", step_sizes_kernel<T>, blocks, threads, 0, context, examples, dy, rows, rule, alpha,
         static_cast<const double*>(sums.lambda), lambda, counted, done);
}

template void step_sizes(const EstimatorSettings&, const DeviceExamples<float>&, const float*,
                         const double*, double*, uint8_t*, unsigned*, const Context&);
template void step_sizes(const EstimatorSettings&, const DeviceExamples<double>&, const double*,
                         const double*, double*, uint8_t*, unsigned*, const Context&);

}  // namespace aimle::cuda
