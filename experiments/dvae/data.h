// The images of the DVAE: MNIST-like files, or digits drawn by the program.
#pragma once

#include <ATen/core/Tensor.h>

#include "experiments/engine/options.h"

namespace aimle::experiments::dvae {

/// Grey values as bytes, [count, height * width], on the run's device; never binarised.
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

/// Bytes to [0, 1].
at::Tensor to_unit(const at::Tensor& bytes);

}  // namespace aimle::experiments::dvae
