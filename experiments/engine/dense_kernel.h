// The backward pass of a dense layer (dense.h) without its products, in one kernel: the gradient
// through the activation and its sum over the rows, which is the gradient of the bias.
// column_sums.cuh says how; the parts of a tall matrix are added by a second kernel.
#pragma once

#include <cstdint>

namespace aimle::experiments {

enum class Activation { kNone, kRelu, kElu };

/// Matrices [rows, columns]: float32, contiguous, on the current device, without overlap.
struct LayerGradient {
  const float* given;   // of the activation's output
  const float* output;  // of the activation; not read for kNone
  float* passed;        // of the activation's input; not written for kNone
  float* sums;          // of that gradient over the rows, [columns]
  float* scratch;       // layer_gradient_scratch entries
  int64_t rows, columns;
};

/// Whether the program was built with GPU kernels.
bool has_dense_kernel();

int64_t layer_gradient_scratch(int64_t rows, int64_t columns);

/// Starts the kernel on a stream.
void pass_on_device(const LayerGradient& task, Activation activation, void* stream);

}  // namespace aimle::experiments
