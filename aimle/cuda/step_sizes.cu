#include "aimle/cuda/step_sizes.cuh"

#include "aimle/cuda/launch.cuh"

namespace aimle::cuda {
namespace {

// ---- One step size for the batch ----------------------------------------------------------------

/// Sums over an example.
struct BatchSums {
  double* theta;    // [B]
  double* dy;       // [B]
  double* entries;  // [B]
  double* scratch;
  double* lambda;  // [1]
};

/// From the norms of the example's gradient rows; executed by a warp together.
template <class T, class Norm>
__device__ void write_sums(const StepRule& rule, const DeviceExamples<T>& examples, int64_t b,
                           const RowNorm& theta, int64_t rows, Norm d, const BatchSums& sums) {
  const double squares = warp_fixed_sum(rows, [=](int64_t s) { return finite_square(d(s)); });
  if (threadIdx.x % 32 != 0) return;
  const BatchTerms terms = batch_terms(norms_of(rule, examples, b, theta), squares);
  sums.theta[b] = terms.theta;
  sums.entries[b] = terms.entries;
  sums.dy[b] = terms.gradient;
}

/// The norms of theta_b and of its gradient rows, the latter into `d`; executed by a block
/// together.
template <class T>
__device__ RowNorm example_norms(const StepRule& rule, const DeviceExamples<T>& examples, int64_t b,
                                 const T* dy, int64_t rows, double* d) {
  __shared__ RowNorm of_theta;
  const int warp = static_cast<int>(threadIdx.x) / 32, warps = static_cast<int>(blockDim.x) / 32;
  const int64_t n = examples.n;
  for (int64_t row = warp; row <= rows; row += warps) {
    const T* x = row == rows ? examples.theta + b * n : dy + (b * rows + row) * n;
    const RowNorm norm = norm_by_warp(rule, examples, b, x);
    if (threadIdx.x % 32 != 0) continue;
    if (row < rows) {
      d[row] = norm.norm;
    } else {
      of_theta = norm;
    }
  }
  __syncthreads();
  const RowNorm result = of_theta;
  __syncthreads();
  return result;
}

/// A block per example, a warp per row. `norms`: [blocks, rows].
template <class T>
__global__ void batch_sums_kernel(const __grid_constant__ DeviceExamples<T> examples, const T* dy,
                                  int64_t rows, const __grid_constant__ DeviceStepRule rule,
                                  double* norms, BatchSums sums) {
  double* d = norms + blockIdx.x * rows;
  for (int64_t b = blockIdx.x; b < examples.count; b += gridDim.x) {
    const RowNorm theta = example_norms(rule, examples, b, dy, rows, d);
    if (threadIdx.x < 32) {
      write_sums(
          rule, examples, b, theta, rows, [=](int64_t s) { return d[s]; }, sums);
    }
    __syncthreads();
  }
}

constexpr int kShortThreads = 128, kShortQuads = 8;

/// Whether a thread computes the norm of a row, for as many examples as a block has threads for.
template <class T>
bool is_short(const DeviceExamples<T>& examples, int64_t rows) {
  return examples.n <= 4 * kShortQuads && rows < kShortThreads;
}
int examples_of_block(int64_t rows) { return static_cast<int>(kShortThreads / (rows + 1)); }
int64_t norms_of_block(int64_t rows) {
  return examples_of_block(rows) * (rows + 1) * static_cast<int64_t>(sizeof(RowNorm));
}

/// For short rows: calls use(first, count, norms) for every `count` <= per_block examples of this
/// block, the first of which is `first`, with their norms [count, rows + 1] as of norms_by_block.
template <class T, class Use>
__device__ void for_short_examples(const StepRule& rule, const DeviceExamples<T>& examples,
                                   const T* dy, int rows, int per_block, const Use& use) {
  RowNorm* norms = dynamic_shared<RowNorm>();
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * per_block; first < examples.count;
       first += static_cast<int64_t>(gridDim.x) * per_block) {
    const int count =
        static_cast<int>(examples.count - first < per_block ? examples.count - first : per_block);
    norms_by_block<kShortQuads>(rule, examples, first, count, dy, rows, norms);
    __syncthreads();
    use(first, count, norms);
    __syncthreads();
  }
}

template <class T>
__global__ void __launch_bounds__(kShortThreads)
    short_batch_sums_kernel(const __grid_constant__ DeviceExamples<T> examples, const T* dy,
                            int rows, int per_block, const __grid_constant__ DeviceStepRule rule,
                            BatchSums sums) {
  for_short_examples(
      rule, examples, dy, rows, per_block, [&](int64_t first, int count, const RowNorm* norms) {
        for (int i = static_cast<int>(threadIdx.x) / 32; i < count; i += kShortThreads / 32) {
          const RowNorm* mine = norms + i * (rows + 1);
          write_sums(
              rule, examples, first + i, mine[rows], rows, [=](int64_t s) { return mine[s].norm; },
              sums);
        }
      });
}

__global__ void batch_lambda_kernel(const __grid_constant__ DeviceStepRule rule, int64_t examples,
                                    int64_t rows, BatchSums sums) {
  const auto total = [&](const double* terms) {
    return block_fixed_total(
        examples, [=](int64_t b) { return terms[b]; }, sums.scratch);
  };
  BatchTerms terms{.theta = total(sums.theta), .gradient = total(sums.dy)};
  if (rule.scale != AdaptiveTarget::Scale::kTheta) terms.entries = total(sums.entries);
  if (threadIdx.x != 0) return;
  *sums.lambda = batch_step(rule, terms, static_cast<double>(rows), alpha_of(rule));
}

// ---- The step sizes of examples -----------------------------------------------------------------

/// A block per example, a warp per row.
template <class T>
__global__ void step_sizes_kernel(const __grid_constant__ DeviceExamples<T> examples, const T* dy,
                                  int64_t rows, const __grid_constant__ DeviceStepRule rule,
                                  const double* batch_lambda_at, double* lambda, uint8_t* counted,
                                  unsigned* done) {
  if (done != nullptr && blockIdx.x == 0 && threadIdx.x == 0) *done = 0;
  const double alpha = alpha_of(rule), batch_lambda = lambda_of_batch(batch_lambda_at);
  for (int64_t b = blockIdx.x; b < examples.count; b += gridDim.x) {
    double* row = lambda + b * (rows + 2);
    const RowNorm theta = example_norms(rule, examples, b, dy, rows, row);
    if (threadIdx.x < 32) {
      write_steps<AsWarp>(
          rule, norms_of(rule, examples, b, theta), rows, alpha, batch_lambda,
          [=](int64_t s) { return row[s]; }, row, counted + b * rows);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kShortThreads)
    short_step_sizes_kernel(const __grid_constant__ DeviceExamples<T> examples, const T* dy,
                            int rows, int per_block, const __grid_constant__ DeviceStepRule rule,
                            const double* batch_lambda_at, double* lambda, uint8_t* counted,
                            unsigned* done) {
  if (done != nullptr && blockIdx.x == 0 && threadIdx.x == 0) *done = 0;
  const double alpha = alpha_of(rule), batch_lambda = lambda_of_batch(batch_lambda_at);
  for_short_examples(rule, examples, dy, rows, per_block,
                     [&](int64_t first, int count, const RowNorm* norms) {
                       steps_by_block(rule, examples, first, alpha, batch_lambda, count, rows,
                                      norms, lambda + first * (rows + 2), counted + first * rows);
                     });
}

unsigned threads_for(int64_t rows) {
  return static_cast<unsigned>(32 * std::clamp<int64_t>(rows + 1, 1, 8));
}

}  // namespace

template <class T>
const double* batch_lambda(const PassSettings& settings, const SolutionSize& size,
                           const DeviceExamples<T>& examples, const T* dy, const AlphaSource& alpha,
                           const Context& context) {
  const DeviceStepRule rule = step_rule(settings, size, alpha);
  if (!rule.of_batch()) return nullptr;
  const int64_t count = examples.count, rows = gradient_rows(settings);
  const int64_t scratch = fixed_total_scratch(count);
  const unsigned blocks = blocks_for(count, 1);
  const bool in_short_rows = is_short(examples, rows);
  const int64_t norms = in_short_rows ? 0 : blocks * rows;
  auto* room = context.array<double>(3 * count + scratch + 1 + norms);
  const BatchSums sums = {.theta = room,
                          .dy = room + count,
                          .entries = room + 2 * count,
                          .scratch = room + 3 * count,
                          .lambda = room + 3 * count + scratch};
  if (in_short_rows) {
    const int per_block = examples_of_block(rows);
    launch("step", short_batch_sums_kernel<T>, blocks_for(count, per_block), kShortThreads,
           norms_of_block(rows), context, examples, dy, static_cast<int>(rows), per_block, rule,
           sums);
  } else {
    launch("step", batch_sums_kernel<T>, blocks, threads_for(rows), 0, context, examples, dy, rows,
           rule, sums.lambda + 1, sums);
  }
  launch("step", batch_lambda_kernel, 1, 1024, 0, context, rule, count, rows, sums);
  return sums.lambda;
}

template <class T>
void step_sizes(const PassSettings& settings, const SolutionSize& size,
                const DeviceExamples<T>& examples, const T* dy, const AlphaSource& alpha,
                double* lambda, uint8_t* counted, unsigned* done, const Context& context) {
  const int64_t count = examples.count, rows = gradient_rows(settings);
  if (count == 0) return;
  const DeviceStepRule rule = step_rule(settings, size, alpha);
  const double* of_batch = batch_lambda(settings, size, examples, dy, alpha, context);
  if (is_short(examples, rows)) {
    const int per_block = examples_of_block(rows);
    launch("step", short_step_sizes_kernel<T>, blocks_for(count, per_block), kShortThreads,
           norms_of_block(rows), context, examples, dy, static_cast<int>(rows), per_block, rule,
           of_batch, lambda, counted, done);
  } else {
    launch("step", step_sizes_kernel<T>, blocks_for(count, 1), threads_for(rows), 0, context,
           examples, dy, rows, rule, of_batch, lambda, counted, done);
  }
}

#define AIMLE_INSTANTIATE_STEPS(T)                                                             \
  template const double* batch_lambda(const PassSettings&, const SolutionSize&,                \
                                      const DeviceExamples<T>&, const T*, const AlphaSource&,  \
                                      const Context&);                                         \
  template void step_sizes(const PassSettings&, const SolutionSize&, const DeviceExamples<T>&, \
                           const T*, const AlphaSource&, double*, uint8_t*, unsigned*,         \
                           const Context&);
AIMLE_INSTANTIATE_STEPS(float)
AIMLE_INSTANTIATE_STEPS(double)

}  // namespace aimle::cuda
