// Floating-point numbers as unsigned integers in the same order; -0 is treated as +0.
#pragma once

#include <cstdint>
#include <type_traits>

#include "aimle/cuda/group.h"

namespace aimle::cuda {

template <class T>
using OrderedBits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

template <class T>
AIMLE_DEVICE OrderedBits<T> bits_of(T x) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(T) == 4) {
    return __float_as_uint(x);
  } else {
    return static_cast<uint64_t>(__double_as_longlong(x));
  }
#else
  OrderedBits<T> bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
#endif
}

/// 0 for NaN: the smallest of the ordered ones, that of -inf, is larger.
template <class T>
AIMLE_DEVICE OrderedBits<T> ordered(T x) {
  using Bits = OrderedBits<T>;
  constexpr int kTop = 8 * sizeof(Bits) - 1;
  const Bits bits = bits_of(x + T{0});
  return bits ^ ((Bits{0} - (bits >> kTop)) | (Bits{1} << kTop));
}

}  // namespace aimle::cuda
