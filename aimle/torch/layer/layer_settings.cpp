#include "aimle/torch/layer/layer_settings.h"

#include <c10/util/Exception.h>
#include <c10/util/SmallVector.h>

#include "aimle/base/numbers.h"
#include "aimle/base/shown_value.h"
#include "aimle/base/text_cache.h"
#include "aimle/torch/layer/setting_names.h"
#include "aimle/torch/solve/solver_checks.h"
#include "aimle/torch/tensor/value_error.h"

namespace aimle::ops {
namespace {

/// name=value fields of a text; each must be taken once.
class Fields {
 public:
  Fields(std::string_view text, char between) {
    while (!text.empty()) {
      const size_t end = std::min(text.find(between), text.size());
      const std::string_view field = text.substr(0, end);
      const size_t equals = field.find('=');
      TORCH_CHECK_VALUE(equals != std::string_view::npos,
                        "[aimle::perturbed_map] expected settings as name=value but got \"",
                        shown_value(field), "\"");
      fields_.emplace_back(field.substr(0, equals), field.substr(equals + 1));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  std::string_view text(std::string_view name) {
    for (auto& [known, value] : fields_) {
      if (known != name) continue;
      known = {};
      return value;
    }
    TORCH_CHECK_VALUE(false, "[aimle::perturbed_map] expected settings with ", name,
                      "=... but there is none");
  }

  double number(std::string_view name) { return parse<double>(name, "a number"); }
  int64_t integer(std::string_view name) { return parse<int64_t>(name, "an integer"); }

  template <class Table>
  auto word(std::string_view name, const Table& allowed) {
    return parse_word("perturbed_map", name, text(name), allowed);
  }

  void check_all_taken() const {
    for (const auto& [name, value] : fields_) {
      TORCH_CHECK_VALUE(name.empty(), "[aimle::perturbed_map] there is no setting \"",
                        shown_value(name), "\" here");
    }
  }

 private:
  template <class Number>
  Number parse(std::string_view name, const char* kind) {
    const std::string_view value = text(name);
    const auto result = parse_number<Number>(value);
    TORCH_CHECK_VALUE(result, "[aimle::perturbed_map] expected ", name, " to be ", kind,
                      " but got \"", shown_value(value), "\"");
    return *result;
  }

  c10::SmallVector<std::pair<std::string_view, std::string_view>, 24> fields_;
};

Target parse_target(Fields& fields) {
  const std::string_view target = fields.text("target");
  if (target == "fixed") return FixedTarget{.lambda = fields.number("lambda")};
  if (target == "thresholds") {
    return ThresholdTarget{.density = fields.word("density", kNoises),
                           .order = fields.word("order", kOrders),
                           .max_weight = fields.number("max_weight")};
  }
  TORCH_CHECK_VALUE(target == "adaptive",
                    "[aimle::perturbed_map] expected target to be \"fixed\", \"adaptive\" or "
                    "\"thresholds\" but got \"",
                    shown_value(target), "\"");
  return AdaptiveTarget{.step = fields.number("step"),
                        .target_norm = fields.number("target_norm"),
                        .decay = fields.number("decay"),
                        .scope = fields.word("scope", kScopes),
                        .scale = fields.word("scale", kScales),
                        .rule = fields.word("rule", kRules),
                        .factor = fields.number("factor"),
                        .alpha_min = fields.number("alpha_min"),
                        .alpha_max = fields.number("alpha_max"),
                        .momentum = fields.number("momentum"),
                        .reference = fields.word("variant", kVariants)};
}

constexpr std::string_view kCallable = "callable:";

void parse_solver_field(std::string_view text, LayerSettings& settings) {
  if (!text.starts_with(kCallable)) {
    settings.solver = parse_solver_text(text);
    return;
  }
  Fields fields(text.substr(kCallable.size()), ',');
  settings.callable = {.sense = fields.word("sense", kSenses),
                       .size = {.fixed = fields.integer("fixed_size") != 0}};
  settings.callable_dims = fields.integer("dims");
  TORCH_CHECK_VALUE(settings.callable_dims >= 0,
                    "[aimle::perturbed_map] expected dims >= 0 but got ", settings.callable_dims);
  fields.check_all_taken();
}

LayerSettings parse_anew(std::string_view text) {
  Fields fields(text, ' ');
  LayerSettings settings;
  parse_solver_field(fields.text("solver"), settings);
  const std::string_view output = fields.text("output");
  settings.flat = output == "flat";
  settings.adapt = fields.integer("adapt") != 0;
  settings.check = check_level("perturbed_map", fields.integer("check"));
  settings.estimator =
      PassSettings{.noise = {.kind = fields.word("noise", kNoises)},
                   .noise_stddev = fields.number("stddev"),
                   .noise_mean = fields.number("noise_mean"),
                   .samples = fields.integer("samples"),
                   .sense = fields.word("sense", kSenses),
                   .output = parse_word("perturbed_map", "output", output, kOutputs),
                   .difference = fields.word("difference", kDifferences),
                   .target = parse_target(fields)};
  fields.check_all_taken();
  with_value_errors([&] { settings.estimator.validate(); });
  if (settings.solver) {
    const SolverKind& kind = settings.solver->kind();
    check_sense("perturbed_map", kind, settings.estimator.sense);
    TORCH_CHECK_VALUE(settings.estimator.noise_mean == 0.0 || !kind.fixed_size,
                      "[aimle::perturbed_map] expected noise that is not centred for \"", kind.name,
                      "\", whose solutions have one size, but got ", settings.estimator.noise_mean,
                      " to be subtracted from it");
  }
  return settings;
}

std::string target_text(const Target& target) {
  if (const auto* fixed = std::get_if<FixedTarget>(&target)) {
    return "target=fixed lambda=" + exact_number(fixed->lambda);
  }
  if (const auto* thresholds = std::get_if<ThresholdTarget>(&target)) {
    return "target=thresholds density=" + word_of(thresholds->density, kNoises) +
           " order=" + word_of(thresholds->order, kOrders) +
           " max_weight=" + exact_number(thresholds->max_weight);
  }
  const auto& adaptive = std::get<AdaptiveTarget>(target);
  return "target=adaptive scope=" + word_of(adaptive.scope, kScopes) +
         " scale=" + word_of(adaptive.scale, kScales) + " rule=" + word_of(adaptive.rule, kRules) +
         " variant=" + word_of(adaptive.reference, kVariants) +
         " step=" + exact_number(adaptive.step) +
         " target_norm=" + exact_number(adaptive.target_norm) +
         " decay=" + exact_number(adaptive.decay) + " factor=" + exact_number(adaptive.factor) +
         " alpha_min=" + exact_number(adaptive.alpha_min) +
         " alpha_max=" + exact_number(adaptive.alpha_max) +
         " momentum=" + exact_number(adaptive.momentum);
}

}  // namespace

std::shared_ptr<const LayerSettings> parse_layer_settings(std::string_view text) {
  static TextCache<LayerSettings> cache;
  return cache.get(text, [](std::string_view unknown) {
    return std::make_shared<const LayerSettings>(parse_anew(unknown));
  });
}

LayerSettings layer_settings(at::ArrayRef<c10::IValue> arguments) {
  LayerSettings settings = *parse_layer_settings(arguments[0].toStringRef());
  settings.estimator.theta_temperature = arguments[1].toDouble();
  settings.estimator.target_temperature = arguments[2].toDouble();
  with_value_errors([&] { settings.estimator.validate(); });
  return settings;
}

std::string layer_settings_text(std::string_view solver, const PassSettings& estimator, bool flat,
                                bool adapt, Check check) {
  return "solver=" + std::string(solver) + " noise=" + word_of(estimator.noise.kind, kNoises) +
         " sense=" + word_of(estimator.sense, kSenses) +
         " output=" + (flat ? "flat" : word_of(estimator.output, kOutputs)) +
         " difference=" + word_of(estimator.difference, kDifferences) +
         " samples=" + std::to_string(estimator.samples) + (adapt ? " adapt=1" : " adapt=0") +
         " check=" + std::to_string(static_cast<int64_t>(check)) +
         " stddev=" + exact_number(estimator.noise_stddev) +
         " noise_mean=" + exact_number(estimator.noise_mean) + ' ' + target_text(estimator.target);
}

}  // namespace aimle::ops
