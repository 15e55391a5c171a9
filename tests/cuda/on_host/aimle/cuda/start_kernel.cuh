// In place of aimle/cuda/start_kernel.cuh: kernels run on the host, at once.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <tuple>
#include <utility>

namespace aimle::cuda {

template <class... Parameters, class... Args>
void start(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, size_t shared,
           cudaStream_t, Args&&... args) {
  const std::tuple<std::decay_t<Parameters>...> copies(std::forward<Args>(args)...);
  on_host::run_grid(blocks, threads, shared, [&] { std::apply(kernel, copies); });
}

template <class T>
T* dynamic_shared() {
  return reinterpret_cast<T*>(on_host::block->shared());
}

}  // namespace aimle::cuda
