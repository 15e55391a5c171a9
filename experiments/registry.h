// The experiments of `aimle train`. An experiment is a folder X with `experiments/X/X.h`, which
// declares `Experiment experiment()` in the namespace `aimle::experiments::X`, and an entry in
// registry.cpp.
#pragma once

#include <string>
#include <vector>

#include "experiments/engine/experiment.h"

namespace aimle::experiments {

/// Every experiment.
const std::vector<Experiment>& experiments();
/// The experiment of this name; throws Failure, with a suggestion, if there is none.
const Experiment& experiment(const std::string& name);

}  // namespace aimle::experiments
