// The scores of a row as logarithms of weights.
#pragma once

#include <cstdint>

#include "aimle/base/host_device.h"

namespace aimle {

/// -inf where an entry may not be chosen.
template <class T>
struct MaskedScores {
  const T* scores;
  const bool* mask;  // or null

  AIMLE_HD double operator()(int64_t j) const {
    return mask == nullptr || mask[j] ? static_cast<double>(scores[j]) : -__builtin_huge_val();
  }
};

}  // namespace aimle
