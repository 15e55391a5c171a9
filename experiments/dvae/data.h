// The images of the DVAE: MNIST-like files, or digits drawn by the program.
#pragma once

#include <ATen/core/Tensor.h>

#include "experiments/engine/options.h"

namespace aimle::experiments::dvae {

/// Grey values, [count, height * width], on the run's device; never binarised. On a CPU bytes, a
/// quarter of the memory; on a GPU floats in [0, 1], so that a step does not convert them.
struct Data {
  at::Tensor train;
  at::Tensor validation;  // the last of the training images; may be empty
  at::Tensor test;
  int64_t height = 0;
  int64_t width = 0;
};

std::vector<Option> data_options();

/// From the folder `data`, or drawn if it is empty.
Data load_data(const Settings& settings);

/// Images of the data to [0, 1].
at::Tensor to_unit(const at::Tensor& images);

}  // namespace aimle::experiments::dvae
