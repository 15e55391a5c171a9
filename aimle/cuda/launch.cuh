// Launching kernels: grids, shared memory, errors.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "aimle/cuda/device_rows.h"
#include "aimle/cuda/start_kernel.cuh"

namespace aimle::cuda {

inline void check(cudaError_t code, const char* op) {
  if (code == cudaSuccess) return;
  throw std::runtime_error("[aimle::" + std::string(op) +
                           "] CUDA error: " + cudaGetErrorString(code));
}

inline cudaStream_t stream_of(const Context& context) {
  return static_cast<cudaStream_t>(context.stream);
}

/// Blocks for `items`, `per_block` of them each; kernels stride over items beyond the limit.
inline unsigned blocks_for(int64_t items, int64_t per_block, int64_t limit = int64_t{1} << 22) {
  return static_cast<unsigned>(std::clamp<int64_t>((items + per_block - 1) / per_block, 1, limit));
}

constexpr int64_t align_up(int64_t bytes, int64_t to = 16) { return (bytes + to - 1) / to * to; }

/// The maximum dynamic shared memory of a block on the current device.
int64_t shared_memory_limit();

/// Starts kernel<<<blocks, threads, shared>>>(args...) on the context's stream.
template <class... Parameters, class... Args>
void launch(const char* op, void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
            int64_t shared, const Context& context, Args&&... args) {
  if (shared > 48 * 1024) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shared)),
          op);
  }
  start(kernel, blocks, threads, static_cast<size_t>(shared), stream_of(context),
        std::forward<Args>(args)...);
  check(cudaGetLastError(), op);
}

}  // namespace aimle::cuda
