// The paths that neural relational inference learns from: the public generator's files, or paths
// made by the program.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "experiments/engine/options.h"

namespace aimle::experiments::nri {

/// One split, on the run's device.
struct Split {
  at::Tensor paths;  // [count, n, frames, 2]
  at::Tensor trees;  // bool [count, n (n-1) / 2]: the pairs that are linked

  int64_t count() const { return paths.size(0); }
};

struct Data {
  Split train, validation, test;
};

std::vector<Option> data_options();

/// From the folder `data`, or made if it is empty.
Data load_data(const Settings& settings);

}  // namespace aimle::experiments::nri
