// Batch norm of a matrix in training (batch_norm.h), with its running statistics: two kernels
// forward and two backward. PyTorch uses about twice as many.
#pragma once

#include <cstdint>

namespace aimle::experiments {

/// float32 matrices [rows, columns], rows > 1, and vectors [columns]: contiguous, on the current
/// device, without overlap.
struct NormTask {
  const float* x;
  const float* weight;
  const float* bias;  // not read in backward
  float* mean;        // of the batch, for backward
  float* inverse;     // of its deviation, for backward
  double* scratch;    // norm_scratch entries
  int64_t rows, columns;
};

struct NormForward {
  float* y;
  float* running_mean;
  float* running_variance;
  int64_t* batches;  // their number so far
  double eps, momentum;
};

struct NormBackward {
  const float* dy;
  float* dx;
  float* dweight;
  float* dbias;
};

/// Whether the program was built with GPU kernels.
bool has_norm_kernel();

int64_t norm_scratch(int64_t rows, int64_t columns);

/// Start the kernels on a stream.
void norm_on_device(const NormTask& task, const NormForward& forward, void* stream);
void norm_gradients_on_device(const NormTask& task, const NormBackward& backward, void* stream);

}  // namespace aimle::experiments
