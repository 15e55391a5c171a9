#include <gtest/gtest.h>

#include <set>
#include <string>

#include "experiments/registry.h"

namespace aimle::experiments {
namespace {

// Every preset and default of every experiment names options that exist, with values they allow.
TEST(Experiments, DeclareConsistentOptions) {
  for (const Experiment& experiment : experiments()) {
    const Settings defaults = default_settings(experiment);
    std::set<std::string> names;
    for (const Option& option : defaults.options()) {
      EXPECT_TRUE(names.insert(option.name).second) << experiment.name << " " << option.name;
      EXPECT_FALSE(option.help.empty()) << option.name;
      EXPECT_EQ(option.check(option.value), option.value) << option.name;
    }
    for (const auto& [name, value] : experiment.defaults) {
      EXPECT_EQ(defaults.get<Json>(name), value) << experiment.name << " " << name;
    }
    for (const Preset& preset : experiment.presets) {
      Settings settings = defaults;
      settings.apply(preset);
    }
  }
}

}  // namespace
}  // namespace aimle::experiments
