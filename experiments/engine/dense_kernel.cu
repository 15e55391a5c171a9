#include "experiments/engine/dense_kernel.h"

#include "aimle/cuda/launch.cuh"
#include "experiments/engine/column_sums.cuh"

namespace aimle::experiments {
namespace {

using namespace column_sums;

template <Activation activation>
__device__ float through(float given, float output) {
  if (activation == Activation::kElu) return output <= 0 ? given * (output + 1) : given;
  return output <= 0 ? 0 : given;
}

/// The sums of a part of the rows become its row of `sums`.
template <Activation activation>
__global__ void __launch_bounds__(kThreads) pass_kernel(LayerGradient task) {
  const float* const __restrict__ given = task.given;
  const float* const __restrict__ output = task.output;
  float* const __restrict__ passed = task.passed;
  const Place place = place_in(task.rows, task.columns);
  float sum = 0;
  for (int64_t row = place.first; row < place.end; row += kLoads * kRowsAtOnce) {
    float gradients[kLoads], outputs[kLoads];
#pragma unroll
    for (int j = 0; j < kLoads; ++j) {
      const int64_t i = (row + j * kRowsAtOnce) * task.columns + place.column;
      const bool inside = row + j * kRowsAtOnce < place.end;
      gradients[j] = inside ? given[i] : 0;
      if (activation != Activation::kNone) outputs[j] = inside ? output[i] : 0;
    }
#pragma unroll
    for (int j = 0; j < kLoads; ++j) {
      if (activation != Activation::kNone) {
        gradients[j] = through<activation>(gradients[j], outputs[j]);
        if (row + j * kRowsAtOnce < place.end) {
          passed[(row + j * kRowsAtOnce) * task.columns + place.column] = gradients[j];
        }
      }
      sum += gradients[j];
    }
  }
  sum = sum_of_column(sum);
  if (threadIdx.x < kColumns && place.column < task.columns) {
    task.sums[place.part * task.columns + place.column] = sum;
  }
}

void start(const LayerGradient& task, Activation activation, void* stream) {
  const auto kernel = activation == Activation::kRelu  ? pass_kernel<Activation::kRelu>
                      : activation == Activation::kElu ? pass_kernel<Activation::kElu>
                                                       : pass_kernel<Activation::kNone>;
  cuda::start(kernel, blocks_of(task.rows, task.columns), kThreads, 0,
              static_cast<cudaStream_t>(stream), task);
  cuda::check(cudaGetLastError(), "dense");
}

}  // namespace

bool has_dense_kernel() { return true; }

int64_t layer_gradient_scratch(int64_t rows, int64_t columns) {
  if (rows <= kRows) return 0;
  return parts_of(rows) * columns + layer_gradient_scratch(parts_of(rows), columns);
}

void pass_on_device(const LayerGradient& task, Activation activation, void* stream) {
  if (task.columns == 0) return;
  if (task.rows <= kRows) return start(task, activation, stream);
  LayerGradient first = task, rest = task;
  first.sums = task.scratch;
  start(first, activation, stream);
  rest.given = task.scratch;
  rest.rows = parts_of(task.rows);
  rest.scratch = task.scratch + rest.rows * task.columns;
  pass_on_device(rest, Activation::kNone, stream);
}

}  // namespace aimle::experiments
