#include "experiments/engine/estimator_options.h"

#include <ATen/Functions.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "aimle/base/join.h"
#include "experiments/process/failure.h"

namespace aimle::experiments {
namespace {

/// All settings except those that an experiment chooses itself.
std::vector<OptionInfo> settings_for_users() {
  std::vector<OptionInfo> result;
  for (const OptionInfo& setting : known_estimator_options()) {
    const bool own =
        setting.name == "output" || setting.name == "sense" || setting.name == "noise_in_eval";
    if (!own) result.push_back(setting);
  }
  return result;
}

/// The default of a setting. Some experiments have their own noise: default_noise.
std::string default_of(const OptionInfo& setting) {
  if (setting.name != "noise") return setting.by_default;
  return "of the experiment and the method: gumbel or sum_of_gamma, dpo normal, dbb and identity "
         "none";
}

/// The smallest structure of each kind.
std::vector<SolverSpec> small_solvers() {
  return {argmax(), topk(1), spanning_tree(3), grid_path()};
}

/// The error of building the estimator with these options; empty if there is none.
std::string problem_of(const EstimatorInfo& info, const SolverSpec& solver,
                       const EstimatorOptions& options) {
  try {
    estimator(info.name, solver, options);
    return "";
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
}

/// Throws unless some estimator accepts this value, alone or with the paper's other settings, by
/// building one.
void check_setting(const std::string& name, const std::string& text) {
  EstimatorOptions alone;
  try {
    set_option(alone, name, text);
  } catch (const c10::Error& error) {
    throw Failure(error.what_without_backtrace());
  }
  std::string first;
  for (const EstimatorInfo& info : estimators()) {
    for (const SolverSpec& solver : small_solvers()) {
      if (!info.takes(name) || !info.applies_to(solver)) continue;
      EstimatorOptions with_others = alone;
      for (const auto& [other, value] : with_paper_target({})) {
        if (other != name && info.takes(other)) {
          set_option(with_others, other, value.get<std::string>());
        }
      }
      for (const EstimatorOptions& options : {alone, with_others}) {
        const std::string problem = problem_of(info, solver, options);
        if (problem.empty()) return;
        if (first.empty()) first = problem;
      }
    }
  }
  throw Failure(first);
}

/// The settings that define a method, as far as it takes them.
std::vector<std::string> settings_of_the_name(const std::string& method) {
  if (method == "aimle_noise") {
    return {"scale", "rule", "step", "factor", "alpha_range", "initial_alpha"};
  }
  if (method == "imle") return {"symmetric_perturbation"};
  return {};
}

OptionValues replaced(OptionValues values, const OptionValues& own) {
  for (const auto& [name, value] : own) {
    const auto same = std::find_if(values.begin(), values.end(),
                                   [&](const auto& entry) { return entry.first == name; });
    if (same == values.end()) {
      values.emplace_back(name, value);
    } else {
      same->second = value;
    }
  }
  return values;
}

bool gives_mean(const EstimatorInfo& method) { return method.name == "dpo"; }

std::string methods_with(const std::string& setting) {
  std::vector<std::string> names;
  for (const EstimatorInfo& info : estimators()) {
    if (info.takes(setting)) names.push_back(info.name);
  }
  return join(names, ", ");
}

/// A value from the user for a noise's temperature, under either name, replaces that of a preset or
/// a config under the other name, so that a saved config has one.
void keep_one_temperature(Settings& settings) {
  const auto by_user = [&](const char* name) {
    return settings.origin(name) == Origin::kUser && !settings.get<std::string>(name).empty();
  };
  const bool short_name = by_user("temperature"), long_name = by_user("theta_noise_temperature");
  if (short_name == long_name) return;
  const char* other = short_name ? "theta_noise_temperature" : "temperature";
  settings.set(other, Json(""), Origin::kDefault);
}

/// A noise's temperature under the name that the experiments read.
void use_one_temperature(const Settings& settings, EstimatorOptions& options) {
  if (!options.temperature) return;
  if (options.theta_noise_temperature && settings.origin("temperature") == Origin::kUser &&
      settings.origin("theta_noise_temperature") == Origin::kUser) {
    throw Misuse(
        "expected --temperature or --theta_noise_temperature, two names of one setting, but got "
        "both");
  }
  // A config of an older build can have both: that of the user, and a preset's under the long name.
  options.theta_noise_temperature = options.temperature;
  options.temperature.reset();
}

}  // namespace

std::vector<Option> estimator_options() {
  std::vector<std::string> names;
  for (const EstimatorInfo& info : estimators()) names.push_back(info.name);
  std::vector<Option> options = {{.name = "method",
                                  .value = "aimle",
                                  .help = "Estimator of the gradient",
                                  .group = "Estimator",
                                  .choices = names}};
  for (const OptionInfo& setting : settings_for_users()) {
    options.push_back(
        {.name = setting.name,
         .value = "",
         .help = setting.meaning + "; " + setting.takes + "; unset: " + default_of(setting),
         .group = "Estimator",
         .verify = [name = setting.name](const std::string& text) { check_setting(name, text); }});
  }
  return options;
}

OptionValues with_paper_target(const OptionValues& own) {
  const OptionValues algorithm_1 = {{"symmetric_perturbation", "true"},
                                    {"initial_alpha", "0"},
                                    {"step", "0.001"},
                                    {"target_norm", "1"},
                                    {"decay", "0.9"},
                                    {"scope", "example"},
                                    {"scale", "theta"},
                                    {"rule", "additive"},
                                    {"factor", "1.1"},
                                    {"alpha_range", "0:inf"},
                                    {"momentum", "0"},
                                    {"initial_gbar", "1"},
                                    {"reference", "false"}};
  return replaced(algorithm_1, own);
}

OptionValues with_reference_target(const OptionValues& own) {
  return replaced(with_paper_target({{"scope", "batch"}, {"reference", "true"}}), own);
}

void use_paper_target(const std::string& method, EstimatorOptions& options) {
  const EstimatorInfo& info = estimator_info(method);
  if (!info.takes("initial_alpha")) return;
  std::vector<std::string> given = given_options(options);
  for (const std::string& name : settings_of_the_name(method)) given.push_back(name);
  for (const auto& [name, value] : with_paper_target({})) {
    const bool is_given = std::find(given.begin(), given.end(), name) != given.end();
    if (info.takes(name) && !is_given) set_option(options, name, value.get<std::string>());
  }
}

void keep_what_the_method_is(Settings& settings) {
  for (const std::string& name : settings_of_the_name(settings.get<std::string>("method"))) {
    if (settings.origin(name) == Origin::kPreset) settings.set(name, Json(""), Origin::kDefault);
  }
  keep_one_temperature(settings);
}

void check_step_defaults(const Json& config, const std::string& file) {
  const Json& settings = config.at("settings");
  const std::string version = config.value("/versions/aimle"_json_pointer, "");
  const bool names_its_rule = !settings.value("scale", "").empty();
  const std::string method = settings.value("method", "aimle");
  if (version.rfind("0.1.", 0) != 0 || names_its_rule) return;
  if (!estimator_info(method).takes("initial_alpha")) return;
  throw Failure(file + " was written by aimle " + version + ", in which the adaptive step of " +
                method + " had other defaults: finish that run with that version, or start a new " +
                "one; --preset paper is the old rule");
}

EstimatorOptions chosen_estimator_options(const Settings& given) {
  Settings settings = given;
  keep_what_the_method_is(settings);
  const EstimatorInfo& method = estimator_info(settings.get<std::string>("method"));
  EstimatorOptions options;
  for (const OptionInfo& setting : settings_for_users()) {
    const std::string value = settings.get<std::string>(setting.name);
    if (value.empty()) continue;
    if (method.takes(setting.name)) {
      set_option(options, setting.name, value);
    } else if (settings.origin(setting.name) == Origin::kUser) {
      throw Misuse("the method " + method.name + " does not take " + setting.name +
                   "; those that do are " + methods_with(setting.name));
    }
  }
  if (method.takes("theta_noise_temperature")) use_one_temperature(settings, options);
  if (method.takes("output") && !gives_mean(method)) options.output = "samples";
  return options;
}

bool needs_whole_batch(const Settings& settings) {
  if (!estimator_info(settings.get<std::string>("method")).takes("scope")) return false;
  const auto scope = settings.get<std::string>("scope");
  return scope == "batch" || (scope.empty() && settings.get<std::string>("reference") == "true");
}

NoiseSpec default_noise(const EstimatorInfo& method, int64_t k) {
  if (method.name == "identity") return {.kind = NoiseKind::kNone};
  if (method.name == "dpo") return {.kind = NoiseKind::kNormal};
  if (method.name == "thresholds" || k == 1) return {.kind = NoiseKind::kGumbel};
  return {.kind = NoiseKind::kSumOfGamma, .k = k};
}

int64_t given_samples(const EstimatorInfo& method, const EstimatorOptions& options) {
  if (gives_mean(method)) return 1;
  return options.nb_samples.value_or(method.name == "aimle_covariance" ? 2 : 1);
}

at::Tensor with_samples(const at::Tensor& z, const at::Tensor& theta, int64_t dim) {
  return z.dim() == theta.dim() ? z.unsqueeze(dim) : z;
}

at::Tensor averaging(const at::Tensor& theta, int64_t samples) {
  if (samples == 1) return theta;
  at::Tensor same = theta.view_as(theta);
  same.register_hook(
      [samples](const at::Tensor& gradient) { return gradient / static_cast<double>(samples); });
  return same;
}

std::unique_ptr<Estimator> make_estimator(const Settings& settings, const SolverSpec& solver,
                                          const EstimatorOptions& options, at::Device device) {
  auto made = [&] {
    try {
      return estimator(settings.get<std::string>("method"), solver, options);
    } catch (const c10::Error& error) {
      throw Misuse(error.what_without_backtrace());
    }
  }();
  for (const auto* tensors : {&made->state(), &made->constants()}) {
    for (const auto& [name, tensor] : *tensors) tensor.set_data(tensor.to(device));
  }
  return made;
}

Scalars estimator_state(const Estimator& estimator) {
  Scalars result;
  for (const auto& [name, tensor] : estimator.state()) {
    if (name == "alpha" || name == "temperature") result.emplace_back(name, tensor);
  }
  return result;
}

Scalars estimator_stats(const Estimator& estimator) {
  Scalars result;
  const auto stats = estimator.stats();
  for (const auto& [from, to] : {std::pair("lambda_mean", "lambda"), std::pair("count", "count")}) {
    if (const auto found = stats.find(from); found != stats.end()) {
      result.emplace_back(to, found->second);
    }
  }
  return result;
}

}  // namespace aimle::experiments
