// draw_key: an int64 [2] key on the device of `like`, from PyTorch's generator.
// draw_host_key: the same numbers, on the CPU if `like` is on a GPU, which saves an allocation and
// a kernel; on the GPU while a graph is captured, since replays must draw new ones.
//
// A key on the CPU is drawn without calling other ops, which take longer than a small solve.
//
// The draw happens inside an op marked as random, so that eager and compiled code get the same key
// for a seed, graphs capture it and activation checkpointing replays it. `rank` distinguishes
// processes that share a seed; rank 0 leaves the key unchanged.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <limits>
#include <mutex>

#include "aimle/noise/philox.h"
#include "aimle/torch/tensor/device_context.h"
#include "aimle/torch/tensor/empty.h"

namespace aimle::ops {
namespace {

/// A bijection with mix(0) = 0 that spreads small numbers over 64 bits (the finaliser of
/// SplitMix64; Steele, Lea, Flood, OOPSLA 2014).
int64_t mix(int64_t rank) {
  auto x = static_cast<uint64_t>(rank);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return static_cast<int64_t>(x ^ (x >> 31));
}

at::Tensor empty_key(const at::Tensor& like) {
  return at::empty({2}, like.options().dtype(at::kLong));
}

void check_rank(int64_t rank) {
  TORCH_CHECK_VALUE(rank >= 0, "[aimle::draw_key] expected rank >= 0 but got ", rank);
}

/// What random_ would write on the CPU; advances the generator as random_ does.
Key draw_from_host(const at::Generator& source) {
  auto* generator = at::check_generator<at::CPUGeneratorImpl>(source);
  const std::lock_guard<std::mutex> lock(generator->mutex_);
  const uint64_t seed = generator->random64();
  return {.seed = seed, .stream = generator->random64()};
}

at::Tensor key_on_host(Key drawn, int64_t rank) {
  at::Tensor key = empty_on(at::kCPU, {2}, at::kLong);
  auto* words = key.mutable_data_ptr<int64_t>();
  words[0] = static_cast<int64_t>(drawn.seed) ^ mix(rank);
  words[1] = static_cast<int64_t>(drawn.stream) ^ mix(rank);
  return key;
}

at::Tensor draw_key(const at::Tensor& like, std::optional<at::Generator> generator, int64_t rank) {
  check_rank(rank);
  const bool own = generator.has_value() && generator->defined();
  if (like.is_cpu() && (!own || generator->device().is_cpu())) {
    return key_on_host(draw_from_host(own ? *generator : at::detail::getDefaultCPUGenerator()),
                       rank);
  }
  at::Tensor key = empty_key(like);
  key.random_(std::numeric_limits<int64_t>::lowest(), std::nullopt, std::move(generator));
  return rank == 0 ? key : key.bitwise_xor_(mix(rank));
}

/// What random_ would write on the generator's device, a GPU; advances it as random_ does.
Key draw_from(c10::GeneratorImpl& generator) {
  const std::lock_guard<std::mutex> lock(generator.mutex_);
  const uint64_t offset = generator.get_offset();
  // Uses a second handle on the same state: set_offset also makes cuDNN restart its dropout in
  // every recurrent network, but only for the handle it is called on.
  generator.graphsafe_get_state()->set_offset(offset + kOffsetOfKey);
  return drawn_key(generator.current_seed(), offset);
}

at::Tensor draw_host_key(const at::Tensor& like, std::optional<at::Generator> generator,
                         int64_t rank) {
  const c10::Device device = like.device();
  const bool own = generator.has_value() && generator->defined();
  if (!device.is_cuda() || (own && generator->device().type() != device.type())) {
    return draw_key(like, std::move(generator), rank);
  }
  check_rank(rank);
  const c10::DeviceGuard guard(device);
  if (is_capturing(device)) return draw_key(like, std::move(generator), rank);
  const at::Generator& source = own ? *generator : at::globalContext().defaultGenerator(device);
  return key_on_host(draw_from(*source.unsafeGetGeneratorImpl()), rank);
}

at::Tensor draw_key_meta(const at::Tensor& like, std::optional<at::Generator>, int64_t rank) {
  check_rank(rank);
  return empty_key(like);
}

TORCH_LIBRARY_IMPL(aimle, CompositeExplicitAutograd, library) {
  library.impl("draw_key", draw_key);
  library.impl("draw_host_key", draw_host_key);
}

TORCH_LIBRARY_IMPL(aimle, Meta, library) {
  library.impl("draw_key", draw_key_meta);
  library.impl("draw_host_key", draw_key_meta);
}

}  // namespace
}  // namespace aimle::ops
