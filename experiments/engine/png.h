// PNG pictures, and sheets of many small ones.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace aimle::experiments {

/// The bytes of a PNG file; pixels: uint8 [height, width] or [height, width, 3].
std::string encode_png(const at::Tensor& pixels);

/// Images [count, height, width] of values in [0, 1], row by row, `columns` per row, enlarged by
/// `zoom`, with a thin frame between them: uint8 [H, W].
at::Tensor contact_sheet(const at::Tensor& images, int64_t columns, int64_t zoom = 1);

}  // namespace aimle::experiments
