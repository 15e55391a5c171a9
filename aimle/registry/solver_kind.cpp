#include "aimle/registry/solver_kind.h"

#include <algorithm>
#include <string>

#include "aimle/base/check.h"
#include "aimle/base/join.h"
#include "aimle/base/nearest.h"
#include "aimle/base/numbers.h"
#include "aimle/base/shown_value.h"
#include "aimle/registry/register_solver.h"

namespace aimle {
namespace detail {

std::vector<std::string> values_in_order(const SolverKind& kind, const SettingTexts& given) {
  std::vector<std::string> names;
  names.reserve(kind.settings.size());
  for (const SolverSetting& setting : kind.settings) names.push_back(setting.name);
  std::vector<const std::string*> found(names.size());
  for (const auto& [name, value] : given) {
    const auto known = std::find(names.begin(), names.end(), name);
    AIMLE_CHECK(known != names.end(), "[aimle::", kind.name, "] takes no '", shown_value(name), "'",
                names.empty() ? "; it has no settings" : "; its settings are " + join(names),
                did_you_mean(name, names));
    const std::string*& slot = found[static_cast<size_t>(known - names.begin())];
    AIMLE_CHECK(slot == nullptr, "[aimle::", kind.name, "] expected ", name,
                " once but it was given twice");
    slot = &value;
  }
  std::vector<std::string> values;
  for (size_t i = 0; i < found.size(); ++i) {
    const SolverSetting& setting = kind.settings[i];
    AIMLE_CHECK(found[i] != nullptr || setting.default_value, "[aimle::", kind.name, "] needs ",
                setting.name, " (", setting.meaning, "), for example ", kind.name, ":",
                setting.name, "=", std::max<int64_t>(setting.min, 1));
    values.push_back(found[i] != nullptr ? *found[i] : *setting.default_value);
  }
  return values;
}

std::string canonical_text(const SolverKind& kind, const std::vector<std::string>& values) {
  std::string text = kind.name;
  for (size_t i = 0; i < values.size(); ++i) {
    text += (i == 0 ? ":" : ",") + kind.settings[i].name + "=" + values[i];
  }
  return text;
}

void throw_no_shape(const SolverKind& kind) {
  throw_invalid_argument("[aimle::", kind.name,
                         "] the shape of its instances does not follow from one number: pass "
                         "theta, or add a member shape_for to the solver");
}

void throw_needs_data(const SolverKind& kind) {
  throw_invalid_argument("[aimle::", kind.name,
                         "] its instances need data besides their scores: pass them as data");
}

}  // namespace detail

namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result + "\"";
}

std::string flag(bool value) { return value ? "true" : "false"; }

std::string as_json(const SolverSetting& setting) {
  constexpr const char* kTypes[] = {"integer", "cell", "choice"};
  return "{\"name\": " + quoted(setting.name) + ", \"meaning\": " + quoted(setting.meaning) +
         ", \"type\": " + quoted(kTypes[static_cast<size_t>(setting.type)]) + ", \"default\": " +
         (setting.default_value ? quoted(*setting.default_value) : std::string("null")) +
         ", \"min\": " + std::to_string(setting.min) + ", \"max\": " + std::to_string(setting.max) +
         ", \"choices\": [" + join(setting.choices, ", ", quoted) + "]}";
}

std::string as_json(const SolverKind& kind) {
  const auto settings =
      join(kind.settings, ", ", [](const SolverSetting& setting) { return as_json(setting); });
  return "{\"name\": " + quoted(kind.name) + ", \"summary\": " + quoted(kind.summary) +
         ", \"ties\": " + quoted(kind.ties) +
         ", \"sense\": " + quoted(kind.sense == Sense::kMax ? "max" : "min") +
         ", \"instance_dims\": " + std::to_string(kind.instance_dims) +
         ", \"fixed_size\": " + flag(kind.fixed_size) + ", \"has_costs\": " + flag(kind.has_costs) +
         ", \"takes_k\": " + flag(kind.takes_k) + ", \"takes_data\": " + flag(kind.takes_data) +
         ", \"lists\": " + flag(kind.lists) +
         ", \"thresholds\": " + flag(kind.swaps != Swaps::kNone) +
         ", \"noise\": " + quoted(kind.noise) +
         ", \"temperature\": " + exact_number(kind.temperature) +
         ", \"exact\": " + flag(kind.exact != nullptr) + ", \"settings\": [" + settings + "]}";
}

}  // namespace

std::string solvers_as_json() {
  std::vector<std::string> kinds;
  for (const std::string& name : solver_names()) kinds.push_back(as_json(solver_kind(name)));
  return "[" + join(kinds) + "]";
}

}  // namespace aimle
