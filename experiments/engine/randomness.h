// All randomness of a run as pure functions of its seed, so that a run continues bit for bit after
// an interruption and parallel runs do not affect each other: no generator has a state to save.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace aimle::experiments {

/// The purpose of a key; no two purposes share noise.
enum class Purpose : uint32_t { kTrain = 1, kEvaluate = 2, kPictures = 3, kOrder = 4, kData = 5 };

/// 64 random bits.
uint64_t random_bits(uint64_t seed, Purpose purpose, uint64_t number);

/// Noise keys (aimle/noise/philox.h) for the numbers first ... first + count - 1: int64 [count, 2].
at::Tensor noise_keys(int64_t seed, Purpose purpose, int64_t first, int64_t count,
                      at::Device device);

/// A different key for other noise in the same step.
at::Tensor subkey(const at::Tensor& key, int64_t number);

/// The order in which an epoch visits the examples: int64 [examples].
at::Tensor epoch_order(int64_t seed, int64_t epoch, int64_t examples, at::Device device);

/// Dropout whose mask is a function of the key: entries are kept whose Gumbel noise is below
/// dropout_bound.
at::Tensor keyed_dropout(const at::Tensor& x, double share, const at::Tensor& key);
double dropout_bound(double share);

}  // namespace aimle::experiments
