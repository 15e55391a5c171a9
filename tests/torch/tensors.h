// Inputs of the tests of layers and estimators.
#pragma once

#include <ATen/Functions.h>

#include <cstdint>

namespace aimle {

inline at::Tensor leaf(at::IntArrayRef sizes, int64_t seed = 0) {
  at::manual_seed(seed);
  return at::randn(sizes).requires_grad_(true);
}

inline at::Tensor a_key() { return at::tensor({int64_t{5}, int64_t{6}}, at::kLong); }

}  // namespace aimle
