// A tensor's device made current, its stream, and room on it for a call's kernels.
//
// Room comes from PyTorch's allocator, for the current stream, without a tensor around it.
//
// Uses c10's interface for any device, so that it compiles against a torch without CUDA as well.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>

#include <vector>

#include "aimle/cuda/device_rows.h"

namespace aimle::ops {

/// Whether what this device's current stream gets now goes into a graph.
bool is_capturing(c10::Device device);

/// A contiguous key for kernels: by pointer if it is on their device, by value if on the CPU.
cuda::DeviceKey device_key(const at::Tensor& key);

class DeviceContext {
 public:
  /// RuntimeError if aimle was built without GPU kernels.
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
