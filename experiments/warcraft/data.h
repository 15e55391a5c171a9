// The maps of a run as tensors on its device.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "experiments/engine/options.h"
#include "experiments/warcraft/maps.h"

namespace aimle::experiments::warcraft {

struct Split {
  Maps maps;          // costs and paths for the scores; on a GPU without the pictures
  at::Tensor images;  // uint8 [N, 8K, 8K, 3]
  at::Tensor paths;   // float [N, K, K]
};

struct Data {
  Split train;
  Split validation;  // may be empty
  Split test;
  at::Tensor mean;  // float [3], of the training set
  at::Tensor stddev;
  int64_t cells = 0;

  /// Normalised pictures, [B, 3, 8K, 8K].
  at::Tensor pictures(const at::Tensor& images) const;
};

std::vector<Option> data_options();

/// From the folder `data` (that of the size, or the one above it), or generated if it is empty.
Data load_data(const Settings& settings);

}  // namespace aimle::experiments::warcraft
