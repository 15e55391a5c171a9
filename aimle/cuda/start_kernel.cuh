// The parts that only nvcc can compile: the start of a kernel, and its dynamic shared memory. Tests
// use another file of this name to run the same kernels on the host (tests/cuda/on_host).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

namespace aimle::cuda {

template <class... Parameters, class... Args>
void start(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, size_t shared,
           cudaStream_t stream, Args&&... args) {
  kernel<<<blocks, threads, shared, stream>>>(std::forward<Args>(args)...);
}

/// The block's dynamic shared memory, aligned to 16 bytes.
template <class T>
__device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ __align__(16) char memory[];
  return reinterpret_cast<T*>(memory);
}

}  // namespace aimle::cuda
