#include "experiments/engine/batch_norm_kernel.h"

#include "aimle/cuda/launch.cuh"
#include "experiments/engine/column_sums.cuh"

namespace aimle::experiments {
namespace {

using namespace column_sums;

// A block that normalises: 32 columns, 8 rows at once.
constexpr int kNormThreads = 256, kNormColumns = 32;
constexpr int kNormRowsAtOnce = kNormThreads / kNormColumns;
constexpr int64_t kNormRows = 64;  // of a block

/// Sums over the rows of two numbers a and b per entry, for every part of the rows: scratch is
/// [parts, 2, columns]. Without dy a and b are x and x^2, with it dy and dy (x - mean) / deviation.
template <bool kBackward>
__global__ void __launch_bounds__(kThreads) sums_kernel(NormTask task, const float* dy) {
  const float* const __restrict__ x = task.x;
  const Place place = place_in(task.rows, task.columns);
  float mean = 0, inverse = 0;
  if (kBackward && place.column < task.columns) {
    mean = task.mean[place.column];
    inverse = task.inverse[place.column];
  }
  double a = 0, b = 0;
  for (int64_t row = place.first; row < place.end; row += kLoads * kRowsAtOnce) {
    float values[kLoads], gradients[kLoads];
#pragma unroll
    for (int j = 0; j < kLoads; ++j) {
      const int64_t i = (row + j * kRowsAtOnce) * task.columns + place.column;
      const bool inside = row + j * kRowsAtOnce < place.end;
      values[j] = inside ? x[i] : 0;
      if (kBackward) gradients[j] = inside ? dy[i] : 0;
    }
#pragma unroll
    for (int j = 0; j < kLoads; ++j) {
      if (kBackward) {
        a += gradients[j];
        b += gradients[j] * ((values[j] - mean) * inverse);
      } else {
        a += values[j];
        b += static_cast<double>(values[j]) * values[j];
      }
    }
  }
  a = sum_of_column(a);
  b = sum_of_column(b);
  if (threadIdx.x >= kColumns || place.column >= task.columns) return;
  double* const sums = task.scratch + place.part * 2 * task.columns + place.column;
  sums[0] = a;
  sums[task.columns] = b;
}

/// The means over all rows of a and b in a column.
struct Means {
  double a = 0, b = 0;

  __device__ Means(const NormTask& task, int64_t parts, int64_t column) {
    for (int64_t part = 0; part < parts; ++part) {
      const double* const sums = task.scratch + part * 2 * task.columns + column;
      a += sums[0];
      b += sums[task.columns];
    }
    a /= static_cast<double>(task.rows);
    b /= static_cast<double>(task.rows);
  }
};

/// What a thread normalises: like column_sums::Place.
struct NormPlace {
  int64_t column, first, end;

  __device__ NormPlace(int64_t rows, int64_t columns) {
    const auto thread = static_cast<int64_t>(threadIdx.x), block = static_cast<int64_t>(blockIdx.x);
    const int64_t strips = (columns + kNormColumns - 1) / kNormColumns;
    const int64_t begin = block / strips * kNormRows;
    column = block % strips * kNormColumns + thread % kNormColumns;
    first = begin + thread / kNormColumns;
    end = begin + kNormRows < rows ? begin + kNormRows : rows;
  }
};

__global__ void __launch_bounds__(kNormThreads)
    norm_kernel(NormTask task, NormForward forward, int64_t parts) {
  const NormPlace place(task.rows, task.columns);
  if (place.column >= task.columns) return;
  const Means means(task, parts, place.column);
  const double spread = means.b - means.a * means.a, variance = spread > 0 ? spread : 0;
  const auto mean = static_cast<float>(means.a);
  const auto inverse = static_cast<float>(1 / sqrt(variance + forward.eps));
  const float scale = inverse * task.weight[place.column], bias = task.bias[place.column];
  const float* const __restrict__ x = task.x;
  float* const __restrict__ y = forward.y;
#pragma unroll 4
  for (int64_t row = place.first; row < place.end; row += kNormRowsAtOnce) {
    const int64_t i = row * task.columns + place.column;
    y[i] = (x[i] - mean) * scale + bias;
  }
  if (place.first > 0) return;
  task.mean[place.column] = mean;
  task.inverse[place.column] = inverse;
  const auto rows = static_cast<double>(task.rows);
  const auto move = [&](float* running, double seen) {
    running[place.column] = static_cast<float>(forward.momentum * seen +
                                               (1 - forward.momentum) * running[place.column]);
  };
  move(forward.running_mean, means.a);
  move(forward.running_variance, variance * (rows / (rows - 1)));
  if (place.column == 0) ++*forward.batches;
}

__global__ void __launch_bounds__(kNormThreads)
    gradient_kernel(NormTask task, NormBackward backward, int64_t parts) {
  const NormPlace place(task.rows, task.columns);
  if (place.column >= task.columns) return;
  const Means means(task, parts, place.column);
  const auto mean_dy = static_cast<float>(means.a), mean_product = static_cast<float>(means.b);
  const float mean = task.mean[place.column], inverse = task.inverse[place.column];
  const float scale = inverse * task.weight[place.column];
  const float* const __restrict__ x = task.x;
  const float* const __restrict__ dy = backward.dy;
  float* const __restrict__ dx = backward.dx;
#pragma unroll 4
  for (int64_t row = place.first; row < place.end; row += kNormRowsAtOnce) {
    const int64_t i = row * task.columns + place.column;
    dx[i] = (dy[i] - mean_dy - (x[i] - mean) * inverse * mean_product) * scale;
  }
  if (place.first > 0) return;
  backward.dbias[place.column] = static_cast<float>(means.a * static_cast<double>(task.rows));
  backward.dweight[place.column] = static_cast<float>(means.b * static_cast<double>(task.rows));
}

unsigned norm_blocks(const NormTask& task) {
  return static_cast<unsigned>((task.columns + kNormColumns - 1) / kNormColumns *
                               ((task.rows + kNormRows - 1) / kNormRows));
}

}  // namespace

bool has_norm_kernel() { return true; }

int64_t norm_scratch(int64_t rows, int64_t columns) { return parts_of(rows) * 2 * columns; }

void norm_on_device(const NormTask& task, const NormForward& forward, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  cuda::start(sums_kernel<false>, blocks_of(task.rows, task.columns), kThreads, 0, on, task,
              nullptr);
  cuda::start(norm_kernel, norm_blocks(task), kNormThreads, 0, on, task, forward,
              parts_of(task.rows));
  cuda::check(cudaGetLastError(), "batch_norm");
}

void norm_gradients_on_device(const NormTask& task, const NormBackward& backward, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  cuda::start(sums_kernel<true>, blocks_of(task.rows, task.columns), kThreads, 0, on, task,
              backward.dy);
  cuda::start(gradient_kernel, norm_blocks(task), kNormThreads, 0, on, task, backward,
              parts_of(task.rows));
  cuda::check(cudaGetLastError(), "batch_norm");
}

}  // namespace aimle::experiments
