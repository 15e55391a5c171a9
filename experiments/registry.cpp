#include "experiments/registry.h"

#include "aimle/base/nearest.h"
#include "experiments/dvae/dvae.h"
#include "experiments/l2x/l2x.h"
#include "experiments/nri/nri.h"
#include "experiments/process/failure.h"
#include "experiments/warcraft/warcraft.h"

namespace aimle::experiments {

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all = {dvae::experiment(), l2x::experiment(),
                                              nri::experiment(), warcraft::experiment()};
  return all;
}

const Experiment& experiment(const std::string& name) {
  std::vector<std::string> names;
  for (const Experiment& entry : experiments()) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  throw Failure("there is no experiment '" + name + "'" + did_you_mean(name, names));
}

}  // namespace aimle::experiments
