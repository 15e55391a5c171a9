// Makes a tensor's device current, and provides its stream and scratch memory for kernels.
//
// Scratch memory comes from PyTorch's allocator, for the current stream, without creating a tensor.
//
// Uses c10's device-independent interface, so that it also compiles against a torch without CUDA.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>

#include <vector>

#include "aimle/cuda/device_rows.h"

namespace aimle::ops {

/// Whether work submitted to this device's current stream is being captured in a graph.
bool is_capturing(c10::Device device);

/// A contiguous key for kernels: by pointer if it is on their device, by value if on the CPU.
cuda::DeviceKey device_key(const at::Tensor& key);

class DeviceContext {
 public:
  /// Throws RuntimeError if aimle was built without GPU kernels.
  explicit DeviceContext(const at::Tensor& like);
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  const cuda::Context& get() const { return context_; }

 private:
  struct Room {
    c10::Allocator* allocator;
    std::vector<c10::DataPtr> blocks;
    void* operator()(size_t bytes);
  };

  c10::DeviceGuard guard_;
  Room room_;
  cuda::Context context_;
};

}  // namespace aimle::ops
