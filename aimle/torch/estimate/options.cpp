// Options by name: the table used by `set_option` and the checks of settings.
#include <c10/util/Exception.h>

#include <algorithm>
#include <string_view>

#include "aimle/base/nearest.h"
#include "aimle/base/numbers.h"
#include "aimle/base/shown_value.h"
#include "aimle/torch/estimator.h"
#include "aimle/torch/layer/setting_names.h"

namespace aimle {
namespace {

template <class... Parts>
[[noreturn]] void refuse(const std::string& name, const std::string& value, const Parts&... takes) {
  TORCH_CHECK_VALUE(false, "[aimle::set_option] expected ", name, " to be ", takes...,
                    " but got \"", shown_value(value), "\"");
}

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto found = parse_number<Number>(text);
  if (found) number = *found;
  return found.has_value();
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t start = 0; start <= text.size();) {
    const size_t stop = std::min(text.find(separator, start), text.size());
    parts.push_back(text.substr(start, stop - start));
    start = stop + 1;
  }
  return parts;
}

void read(const OptionInfo& info, const std::string& text, int64_t& value) {
  if (!read_number(text, value)) refuse(info.name, text, info.takes);
}

void read(const OptionInfo& info, const std::string& text, double& value) {
  if (!read_number(text, value)) refuse(info.name, text, info.takes);
}

void read(const OptionInfo& info, const std::string& text, bool& value) {
  if (text != "true" && text != "false") refuse(info.name, text, info.takes);
  value = text == "true";
}

void read(const OptionInfo&, const std::string& text, std::string& value) { value = text; }

void read(const OptionInfo& info, const std::string& text, std::pair<double, double>& value) {
  const std::vector<std::string_view> parts = split(text, ':');
  const bool good = parts.size() == 2 && read_number(parts[0], value.first) &&
                    read_number(parts[1], value.second);
  if (!good) refuse(info.name, text, info.takes);
}

void read(const OptionInfo& info, const std::string& text, NoiseSpec& value) {
  const std::vector<std::string_view> parts = split(text, ':');
  value = {};
  const auto* const known = std::find_if(ops::kNoises.begin(), ops::kNoises.end(),
                                         [&](const auto& word) { return word.first == parts[0]; });
  if (known == ops::kNoises.end()) refuse(info.name, text, info.takes);
  value.kind = known->second;
  const bool gamma = value.kind == NoiseKind::kSumOfGamma;
  const bool good = gamma ? (parts.size() == 2 || parts.size() == 3) &&
                                read_number(parts[1], value.k) &&
                                (parts.size() == 2 || read_number(parts[2], value.iterations))
                          : parts.size() == 1;
  if (!good) refuse(info.name, text, info.takes);
}

struct Setting {
  OptionInfo info;
  bool (*is_set)(const EstimatorOptions&);
  void (*set)(EstimatorOptions&, const OptionInfo&, const std::string&);
};

template <auto member>
Setting setting(const char* name, const char* takes, const char* meaning, std::string by_default) {
  return {.info = {name, takes, meaning, std::move(by_default)},
          .is_set = [](const EstimatorOptions& options) { return (options.*member).has_value(); },
          .set =
              [](EstimatorOptions& options, const OptionInfo& info, const std::string& text) {
                typename std::decay_t<decltype(options.*member)>::value_type value{};
                read(info, text, value);
                options.*member = value;
              }};
}

const std::vector<Setting>& settings_table() {
  using O = EstimatorOptions;
  constexpr const char* kNumber = "a number >= 0";
  constexpr const char* kFlag = "true or false";
  const AdaptiveTarget target;
  static const std::vector<Setting> settings = {
      setting<&O::nb_samples>("nb_samples", "an integer >= 1", "samples per example, S",
                              "1 (aimle_covariance: 2, dpo: 10)"),
      setting<&O::noise>(
          "noise", "none, gumbel, normal, logistic or sum_of_gamma:K[:ITERATIONS]",
          "the distribution that perturbs theta",
          "gumbel (paths of costs and dpo: normal, bernoulli: logistic, dbb and identity: none)"),
      setting<&O::temperature>(
          "temperature", kNumber, "scale of the noise in forward; relaxations: of their softmax",
          "1 (noise on paths of costs: " + spell_number(kCostTemperature) + ")"),
      setting<&O::theta_noise_temperature>(
          "theta_noise_temperature", kNumber, "alias for the temperature of the noise",
          "1 (paths of costs: " + spell_number(kCostTemperature) + ")"),
      setting<&O::target_noise_temperature>("target_noise_temperature", kNumber,
                                            "scale of the noise in backward", "(that of forward)"),
      setting<&O::lambda>("lambda", kNumber, "the fixed step, in units of the gradient of z", "1"),
      setting<&O::symmetric_perturbation>("symmetric_perturbation", kFlag,
                                          "the central difference instead of the forward one",
                                          "(true for aimle, but false on costs; false for imle)"),
      setting<&O::initial_alpha>("initial_alpha", kNumber, "where alpha starts",
                                 "(the upper end of alpha_range, or the lower one if that is inf)"),
      setting<&O::step>("step", kNumber, "increment of alpha in the additive rule",
                        spell_number(target.step)),
      setting<&O::target_norm>("target_norm", kNumber, "target number of changed entries, c",
                               "(measured)"),
      setting<&O::decay>("decay", "a number in [0, 1)", "decay of the average of changed entries",
                         spell_number(target.decay)),
      setting<&O::scope>("scope", "example, sample or batch", "what the norms are taken over",
                         "sample (with reference: batch)"),
      setting<&O::scale>("scale", "auto, theta or noise", "what the step is relative to",
                         "auto (aimle_noise: noise, with reference: theta)"),
      setting<&O::rule>("rule", "additive or multiplicative", "how alpha changes",
                        "multiplicative (with step or reference: additive)"),
      setting<&O::factor>("factor", "a number > 1", "factor of the multiplicative rule",
                          spell_number(target.factor)),
      setting<&O::alpha_range>("alpha_range", "LOW:HIGH, HIGH may be inf", "bounds of alpha",
                               spell_number(target.alpha_min) + ":" +
                                   spell_number(target.alpha_max) +
                                   " (forward on costs: " + spell_number(target.alpha_min) + ":" +
                                   spell_number(AdaptiveTarget::kLargestAlphaOfCosts) +
                                   ", aimle_noise: 1:1, with reference: 0:inf)"),
      setting<&O::momentum>("momentum", "a number in [0, 1)", "momentum of alpha",
                            spell_number(target.momentum)),
      setting<&O::initial_gbar>("initial_gbar", kNumber, "where the moving average starts",
                                spell_number(LayerOptions{.solver = argmax()}.initial_gbar)),
      setting<&O::reference>("reference", kFlag, "follow the authors' code, not the paper",
                             "false"),
      setting<&O::share>("share", "a number in [0, 1]", "weight of the covariance", "0.5"),
      setting<&O::order>("order", "trapezoid or first", "order of the expansion of the loss",
                         "trapezoid"),
      setting<&O::max_weight>("max_weight", "a number > 0", "larger weights are capped at it",
                              spell_number(ThresholdTarget{}.max_weight)),
      setting<&O::projection>("projection", "std, mean, norm or none", "projection of theta",
                              "std"),
      setting<&O::baseline>("baseline", "none or leave_one_out", "subtracted from the losses",
                            "none"),
      setting<&O::hard>("hard", kFlag, "return the discrete sample with the soft one's gradient",
                        "false"),
      setting<&O::draws>("draws", "an integer >= 1", "draws of the noise given z, to average over",
                         std::to_string(kConditionalDraws)),
      setting<&O::variance_reduction>("variance_reduction", "leave_one_out or none",
                                      "subtract the mean of the other samples", "leave_one_out"),
      setting<&O::sense>("sense", "max or min", "whether theta is maximised or a cost",
                         "(the solver's own)"),
      setting<&O::output>("output", "samples, flat or mean", "the shape of z",
                          "samples (dbb: mean, identity: mean, dpo: mean)"),
      setting<&O::noise_in_eval>("noise_in_eval", kFlag, "keep noise and samples in eval mode",
                                 "false"),
  };
  return settings;
}

}  // namespace

const std::vector<OptionInfo>& known_estimator_options() {
  static const std::vector<OptionInfo> infos = [] {
    std::vector<OptionInfo> result;
    for (const Setting& known : settings_table()) result.push_back(known.info);
    return result;
  }();
  return infos;
}

void set_option(EstimatorOptions& options, const std::string& name, const std::string& value) {
  std::string folded = name;
  std::replace(folded.begin(), folded.end(), '-', '_');
  std::vector<std::string> names;
  for (const Setting& known : settings_table()) {
    if (known.info.name == folded) return known.set(options, known.info, value);
    names.push_back(known.info.name);
  }
  TORCH_CHECK_VALUE(false, "[aimle::set_option] no estimator has an option \"", shown_value(name),
                    "\"", did_you_mean(name, names));
}

std::vector<std::string> given_options(const EstimatorOptions& options) {
  std::vector<std::string> names;
  for (const Setting& known : settings_table()) {
    if (known.is_set(options)) names.push_back(known.info.name);
  }
  return names;
}

}  // namespace aimle
