#include "aimle/torch/tensor/device_context.h"

#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "aimle/torch/noise/noise_ops.h"

namespace aimle::ops {
namespace {

c10::Device checked_device(const at::Tensor& like) {
  cuda::require_kernels();
  return like.device();
}

void* stream_of(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle();
}

}  // namespace

bool is_capturing(c10::Device device) { return cuda::is_capturing(stream_of(device)); }

cuda::DeviceKey device_key(const at::Tensor& key) {
  if (key.is_cpu()) return {.value = host_key(key)};
  return {.words = key.const_data_ptr<int64_t>(), .has_first = key.size(0) == 3};
}

void* DeviceContext::Room::operator()(size_t bytes) {
  blocks.push_back(allocator->allocate(bytes));
  return blocks.back().get();
}

DeviceContext::DeviceContext(const at::Tensor& like)
    : guard_(checked_device(like)),
      room_{.allocator = c10::GetAllocator(like.device().type())},
      context_{.stream = stream_of(like.device()), .allocate = room_} {}

}  // namespace aimle::ops
