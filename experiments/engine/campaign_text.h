// How the seeds and the grid of `aimle train` are written on the command line.
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
/// "lambda=1,10,100": an option of these settings that may vary within a command, and different
/// values that it allows. Throws Failure for anything else.
GridAxis parse_grid_axis(const std::string& text, const Settings& settings);

}  // namespace aimle::experiments
