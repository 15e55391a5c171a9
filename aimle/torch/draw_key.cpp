// draw_key: an int64 [2] key on the device of `like`, from PyTorch's generator.
//
// The draw happens inside an op that says it is random, so that eager and compiled code take the
// same key under one seed, graphs capture it and activation checkpointing replays it. `rank` sets
// processes apart that share a seed; rank 0 leaves the key as drawn.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <limits>

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

at::Tensor draw_key(const at::Tensor& like, std::optional<at::Generator> generator, int64_t rank) {
  check_rank(rank);
  at::Tensor key = empty_key(like);
  key.random_(std::numeric_limits<int64_t>::lowest(), std::nullopt, std::move(generator));
  return rank == 0 ? key : key.bitwise_xor_(mix(rank));
}

at::Tensor draw_key_meta(const at::Tensor& like, std::optional<at::Generator>, int64_t rank) {
  check_rank(rank);
  return empty_key(like);
}

TORCH_LIBRARY_IMPL(aimle, CompositeExplicitAutograd, library) {
  library.impl("draw_key", draw_key);
}

TORCH_LIBRARY_IMPL(aimle, Meta, library) { library.impl("draw_key", draw_key_meta); }

}  // namespace
}  // namespace aimle::ops
