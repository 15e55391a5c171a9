// The command-line syntax of the seeds and the grid of `aimle train`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/engine/options.h"

namespace aimle::experiments {

/// One option and the values to try.
struct GridAxis {
  std::string option;
  std::vector<std::string> values;
};

/// "0-9", "3", "0,2,5-7": up to 10,000 different seeds. Throws Failure for anything else.
std::vector<int64_t> parse_seeds(const std::string& text);
/// "lambda=1,10,100": an option that may vary within a command, and different allowed values.
/// Throws Failure for anything else.
GridAxis parse_grid_axis(const std::string& text, const Settings& settings);

}  // namespace aimle::experiments
