// Presets set everything that determines an adaptive step, so library defaults have no effect.
#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "experiments/engine/estimator_options.h"
#include "experiments/registry.h"

namespace aimle::experiments {
namespace {

/// The settings of the adaptive step: what aimle takes and the straight-through layer does not, but
/// for the temperature of the noise in backward, which is that of forward.
std::vector<std::string> settings_of_the_step() {
  std::vector<std::string> names;
  const EstimatorInfo& plain = estimator_info("ste");
  for (const std::string& name : estimator_info("aimle").settings) {
    if (!plain.takes(name) && name != "target_noise_temperature") names.push_back(name);
  }
  return names;
}

const Preset* find_preset(const Experiment& experiment, const std::string& name) {
  for (const Preset& preset : experiment.presets) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

Settings preset_settings(const Experiment& experiment, const std::string& preset,
                         const std::string& method) {
  Settings settings = default_settings(experiment);
  settings.apply(*find_preset(experiment, preset));
  settings.set("method", method, Origin::kUser);
  keep_what_the_method_is(settings);
  return settings;
}

TEST(Presets, PinEverySettingOfTheStep) {
  EXPECT_GE(settings_of_the_step().size(), 13U);
  for (const Experiment& experiment : experiments()) {
    for (const std::string name : {"paper", "reference"}) {
      const Preset* preset = find_preset(experiment, name);
      ASSERT_NE(preset, nullptr) << experiment.name << " has no preset " << name;
      std::set<std::string> given;
      for (const auto& [option, value] : preset->values) {
        EXPECT_TRUE(given.insert(option).second) << experiment.name << " " << name << " " << option;
      }
      for (const std::string& setting : settings_of_the_step()) {
        EXPECT_TRUE(given.contains(setting)) << experiment.name << " " << name << " " << setting;
      }
    }
  }
}

TEST(Presets, PaperIsAlgorithmOne) {
  constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  for (const Experiment& experiment : experiments()) {
    SCOPED_TRACE(experiment.name);
    const EstimatorOptions options =
        chosen_estimator_options(preset_settings(experiment, "paper", "aimle"));
    EXPECT_EQ(options.symmetric_perturbation, true);
    EXPECT_EQ(options.initial_alpha, 0.0);
    EXPECT_EQ(options.step, experiment.name == "warcraft" ? 0.01 : 0.001);
    EXPECT_EQ(options.target_norm, 1.0);
    EXPECT_EQ(options.decay, 0.9);
    EXPECT_EQ(options.scope, "example");
    EXPECT_EQ(options.scale, "theta");
    EXPECT_EQ(options.rule, "additive");
    EXPECT_EQ(options.alpha_range, (std::pair{0.0, kUnbounded}));
    EXPECT_EQ(options.momentum, 0.0);
    EXPECT_EQ(options.initial_gbar, 1.0);
    EXPECT_EQ(options.reference, false);
  }
}

TEST(Presets, ReferenceIsTheAuthorsRule) {
  for (const Experiment& experiment : experiments()) {
    SCOPED_TRACE(experiment.name);
    const EstimatorOptions options =
        chosen_estimator_options(preset_settings(experiment, "reference", "aimle"));
    EXPECT_EQ(options.reference, true);
    EXPECT_EQ(options.scope, "batch");
    EXPECT_EQ(options.initial_alpha, 0.0);
    EXPECT_EQ(options.step, experiment.name == "l2x" ? 1e-4 : 1e-3);
  }
}

// Presets pin the step of aimle; methods whose names say another one keep it.
TEST(Presets, LeaveAMethodWhatItsNameSays) {
  for (const Experiment& experiment : experiments()) {
    SCOPED_TRACE(experiment.name);
    const EstimatorOptions noise =
        chosen_estimator_options(preset_settings(experiment, "paper", "aimle_noise"));
    EXPECT_FALSE(noise.scale || noise.rule || noise.factor || noise.alpha_range ||
                 noise.initial_alpha);
    EXPECT_EQ(noise.target_norm, 1.0);
    const EstimatorOptions forward =
        chosen_estimator_options(preset_settings(experiment, "paper", "imle"));
    EXPECT_FALSE(forward.symmetric_perturbation);
    Settings asked = preset_settings(experiment, "paper", "aimle");
    asked.set("method", std::string("aimle_noise"), Origin::kUser);
    asked.set("scale", std::string("theta"), Origin::kUser);
    keep_what_the_method_is(asked);
    EXPECT_EQ(chosen_estimator_options(asked).scale, "theta");
    EXPECT_FALSE(chosen_estimator_options(asked).rule);
  }
}

TEST(Presets, PaperTargetFillsWhatIsNotSet) {
  EstimatorOptions options{.target_norm = 3.0};
  use_paper_target("aimle_forward", options);
  EXPECT_EQ(options.target_norm, 3.0);
  EXPECT_EQ(options.initial_alpha, 0.0);
  EXPECT_EQ(options.rule, "additive");
  EXPECT_FALSE(options.symmetric_perturbation);
  EstimatorOptions noise;
  use_paper_target("aimle_noise", noise);
  EXPECT_FALSE(noise.scale || noise.rule || noise.initial_alpha);
  EXPECT_EQ(noise.target_norm, 1.0);
  EstimatorOptions fixed;
  use_paper_target("imle", fixed);
  EXPECT_TRUE(given_options(fixed).empty());
}

}  // namespace
}  // namespace aimle::experiments
