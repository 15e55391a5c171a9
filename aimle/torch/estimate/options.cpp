// Options by their names: the table that `set_option` and the checks of settings read.
#include <c10/util/Exception.h>

#include <algorithm>
#include <string_view>

#include "aimle/base/nearest.h"
#include "aimle/base/numbers.h"
#include "aimle/torch/estimator.h"
#include "aimle/torch/setting_names.h"

namespace aimle {
namespace {

template <class... Parts>
[[noreturn]] void refuse(const std::string& name, const std::string& value, const Parts&... takes) {
  TORCH_CHECK_VALUE(false, "[aimle::set_option] expected ", name, " to be ", takes...,
                    " but got \"", value, "\"");
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

void read(const SettingInfo& info, const std::string& text, int64_t& value) {
  if (!read_number(text, value)) refuse(info.name, text, info.takes);
}

void read(const SettingInfo& info, const std::string& text, double& value) {
  if (!read_number(text, value)) refuse(info.name, text, info.takes);
}

void read(const SettingInfo& info, const std::string& text, bool& value) {
  if (text != "true" && text != "false") refuse(info.name, text, info.takes);
  value = text == "true";
}

void read(const SettingInfo&, const std::string& text, std::string& value) { value = text; }

void read(const SettingInfo& info, const std::string& text, std::pair<double, double>& value) {
  const std::vector<std::string_view> parts = split(text, ':');
  const bool good = parts.size() == 2 && read_number(parts[0], value.first) &&
                    read_number(parts[1], value.second);
  if (!good) refuse(info.name, text, info.takes);
}

void read(const SettingInfo& info, const std::string& text, NoiseSpec& value) {
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
  SettingInfo info;
  bool (*is_set)(const EstimatorOptions&);
  void (*set)(EstimatorOptions&, const SettingInfo&, const std::string&);
};

template <auto member>
Setting setting(const char* name, const char* takes, const char* meaning) {
  return {.info = {name, takes, meaning},
          .is_set = [](const EstimatorOptions& options) { return (options.*member).has_value(); },
          .set =
              [](EstimatorOptions& options, const SettingInfo& info, const std::string& text) {
                typename std::decay_t<decltype(options.*member)>::value_type value{};
                read(info, text, value);
                options.*member = value;
              }};
}

const std::vector<Setting>& table() {
  using O = EstimatorOptions;
  constexpr const char* kNumber = "a number >= 0";
  constexpr const char* kFlag = "true or false";
  static const std::vector<Setting> settings = {
      setting<&O::nb_samples>("nb_samples", "an integer >= 1", "samples of every example, S"),
      setting<&O::noise>("noise", "none, gumbel, normal, logistic or sum_of_gamma:K[:ITERATIONS]",
                         "the distribution that perturbs theta"),
      setting<&O::temperature>("temperature", kNumber,
                               "scale of the noise in forward; relaxations: of their softmax"),
      setting<&O::theta_noise_temperature>("theta_noise_temperature", kNumber,
                                           "another name of the noise's temperature"),
      setting<&O::target_noise_temperature>("target_noise_temperature", kNumber,
                                            "scale of the noise in backward; unset: the same"),
      setting<&O::lambda>("lambda", kNumber, "the fixed step, in units of the gradient of z"),
      setting<&O::symmetric_perturbation>("symmetric_perturbation", kFlag,
                                          "the central difference instead of the forward one"),
      setting<&O::initial_alpha>("initial_alpha", kNumber, "where alpha starts"),
      setting<&O::step>("step", kNumber, "the additive rule's change of alpha"),
      setting<&O::target_norm>("target_norm", kNumber,
                               "changed entries aimed for, c; unset: measured"),
      setting<&O::decay>("decay", "a number in [0, 1)", "of the moving average of changed entries"),
      setting<&O::scope>("scope", "example, sample or batch", "whose norms make the step"),
      setting<&O::scale>("scale", "auto, theta or noise", "what the step is measured by"),
      setting<&O::rule>("rule", "additive or multiplicative", "how alpha changes"),
      setting<&O::factor>("factor", "a number > 1", "of the multiplicative rule"),
      setting<&O::alpha_range>("alpha_range", "LOW:HIGH, HIGH may be inf", "bounds of alpha"),
      setting<&O::momentum>("momentum", "a number in [0, 1)", "of alpha's changes"),
      setting<&O::initial_gbar>("initial_gbar", kNumber, "where the moving average starts"),
      setting<&O::reference>("reference", kFlag, "what the authors' code does, not the paper"),
      setting<&O::share>("share", "a number in [0, 1]", "of the covariance in the gradient"),
      setting<&O::order>("order", "trapezoid or first", "of the expansion of the loss"),
      setting<&O::max_weight>("max_weight", "a number > 0", "larger weights are cut to it"),
      setting<&O::projection>("projection", "std, mean, norm or none", "of theta, before solving"),
      setting<&O::baseline>("baseline", "none or leave_one_out", "subtracted from the losses"),
      setting<&O::hard>("hard", kFlag, "show the discrete sample, keep the soft one's gradient"),
      setting<&O::variance_reduction>("variance_reduction", "leave_one_out or none",
                                      "subtract the mean of the other samples"),
      setting<&O::sense>("sense", "max or min", "whether theta is maximised or a cost"),
      setting<&O::output>("output", "samples, flat or mean", "the shape of z"),
      setting<&O::noise_in_eval>("noise_in_eval", kFlag, "keep noise and samples in eval mode"),
  };
  return settings;
}

}  // namespace

const std::vector<SettingInfo>& estimator_settings() {
  static const std::vector<SettingInfo> infos = [] {
    std::vector<SettingInfo> result;
    for (const Setting& known : table()) result.push_back(known.info);
    return result;
  }();
  return infos;
}

void set_option(EstimatorOptions& options, const std::string& name, const std::string& value) {
  std::string folded = name;
  std::replace(folded.begin(), folded.end(), '-', '_');
  std::vector<std::string> names;
  for (const Setting& known : table()) {
    if (known.info.name == folded) return known.set(options, known.info, value);
    names.push_back(known.info.name);
  }
  TORCH_CHECK_VALUE(false, "[aimle::set_option] no estimator has an option \"", name, "\"",
                    did_you_mean(name, names));
}

std::vector<std::string> given_options(const EstimatorOptions& options) {
  std::vector<std::string> names;
  for (const Setting& known : table()) {
    if (known.is_set(options)) names.push_back(known.info.name);
  }
  return names;
}

}  // namespace aimle
