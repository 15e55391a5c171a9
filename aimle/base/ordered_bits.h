// Floating-point numbers as unsigned integers in the same order; -0 is treated as +0.
#pragma once

#include <cstdint>
#include <type_traits>

#include "aimle/base/host_device.h"

namespace aimle {

template <class T>
using OrderedBits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

/// 0 for NaN: the smallest of the ordered ones, that of -inf, is larger.
template <class T>
AIMLE_HD OrderedBits<T> ordered(T x) {
  using Bits = OrderedBits<T>;
  constexpr int kTop = 8 * sizeof(Bits) - 1;
  const auto bits = __builtin_bit_cast(Bits, x + T{0});
  return bits ^ ((Bits{0} - (bits >> kTop)) | (Bits{1} << kTop));
}

/// The number with these bits.
template <class T>
AIMLE_HD T from_ordered(OrderedBits<T> bits) {
  using Bits = OrderedBits<T>;
  constexpr Bits kTop = Bits{1} << (8 * sizeof(Bits) - 1);
  return __builtin_bit_cast(T, bits ^ (bits & kTop ? kTop : ~Bits{0}));
}

}  // namespace aimle
