// The noise ops, written once for all devices. A device is a struct with
//
//   static at::Tensor fill(NoiseKind kind, const at::Tensor& key, const NoiseShape& shape,
//                          const std::optional<at::Tensor>& table);
//
//   key       int64 [2] on the requested device: seed and stream; [3]: also the number of the first
//             instance, for a part of a larger batch
//   batch     sizes of the batch dimensions; instance b is numbered in row-major order
//   samples   S >= 1 draws of every instance, or -1 for one draw without a sample dimension
//   instance  sizes of the dimensions of one instance; element j is numbered in row-major order
//   table     float32 quantile table, for Sum-of-Gamma
//   result    float32 [*batch, S, *instance], a pure function of (key, b, s, j)
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <optional>

#include "aimle/noise/noise.h"

namespace aimle::ops {

struct NoiseShape {
  c10::SymIntArrayRef batch;
  c10::SymInt samples;
  c10::SymIntArrayRef instance;

  /// [*batch, samples, *instance], uninitialised, on the device of `like`.
  at::Tensor empty(const at::Tensor& like) const;
  /// All rows of the shape; the sizes must be known.
  NoiseRows rows() const;
};

/// Throws TypeError or ValueError naming the op, the argument, its value and what is allowed.
void check_noise(NoiseKind kind, const at::Tensor& key, const NoiseShape& shape,
                 const std::optional<at::Tensor>& table);

/// Whether the tensor has the shape of a key.
inline bool has_shape_of_key(const at::Tensor& key) {
  return key.dim() == 1 && (key.sym_size(0) == 2 || key.sym_size(0) == 3);
}

/// The numbers of a contiguous key on the CPU.
inline Key host_key(const at::Tensor& key) {
  const auto* words = key.const_data_ptr<int64_t>();
  return {.seed = static_cast<uint64_t>(words[0]),
          .stream = static_cast<uint64_t>(words[1]),
          .first = key.size(0) == 3 ? static_cast<uint64_t>(words[2]) : 0};
}

template <class Device, NoiseKind kind>
at::Tensor noise(const at::Tensor& key, c10::SymIntArrayRef batch, c10::SymInt samples,
                 c10::SymIntArrayRef instance) {
  const NoiseShape shape{batch, samples, instance};
  check_noise(kind, key, shape, std::nullopt);
  return Device::fill(kind, key, shape, std::nullopt);
}

template <class Device>
at::Tensor sum_of_gamma(const at::Tensor& key, c10::SymIntArrayRef batch, c10::SymInt samples,
                        c10::SymIntArrayRef instance, const at::Tensor& table) {
  const NoiseShape shape{batch, samples, instance};
  check_noise(NoiseKind::kSumOfGamma, key, shape, table);
  return Device::fill(NoiseKind::kSumOfGamma, key, shape, table);
}

template <class Device>
void register_noise(torch::Library& library) {
  library.impl("gumbel", noise<Device, NoiseKind::kGumbel>);
  library.impl("normal", noise<Device, NoiseKind::kNormal>);
  library.impl("logistic", noise<Device, NoiseKind::kLogistic>);
  library.impl("sum_of_gamma", sum_of_gamma<Device>);
}

}  // namespace aimle::ops
