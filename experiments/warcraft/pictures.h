// Pictures of the results.
#pragma once

#include <ATen/core/Tensor.h>

namespace aimle::experiments::warcraft {

/// For every map a row of three: the map with its true path, the map with the predicted path, and
/// the predicted costs (dark: cheap). images: uint8 [N, 8K, 8K, 3]; paths [N, K, K], 0 or 1; costs
/// [N, K, K]. Returns uint8 [height, width, 3].
at::Tensor draw_paths(const at::Tensor& images, const at::Tensor& truth,
                      const at::Tensor& predicted, const at::Tensor& costs, int64_t zoom = 2);

}  // namespace aimle::experiments::warcraft
