#include "experiments/engine/options.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "aimle/base/join.h"
#include "aimle/base/nearest.h"
#include "aimle/base/numbers.h"
#include "aimle/base/shown_value.h"
#include "experiments/process/bytes_in_json.h"
#include "experiments/process/failure.h"

namespace aimle::experiments {
namespace {

std::string allowed(const Option& option) {
  if (!option.choices.empty()) return "one of " + join(option.choices, ", ");
  if (option.value.is_boolean()) return "true or false";
  if (option.value.is_string()) return "a text";
  std::string text = option.value.is_number_integer() ? "a whole number" : "a number";
  if (option.low > -1e300) text += " >= " + spell_number(option.low);
  if (option.high < 1e300)
    text += (option.low > -1e300 ? " and <= " : " <= ") + spell_number(option.high);
  return text;
}

[[noreturn]] void refuse(const Option& option, const std::string& given) {
  throw Failure("expected " + allowed(option) + " but got '" + shown_value(given) + "'" +
                did_you_mean(given, option.choices));
}

/// The value; the message about a wrong one includes the name of the option.
Json named(const Option& option, const std::function<Json()>& value) {
  try {
    return value();
  } catch (const std::exception& error) {
    throw Failure("option " + option.name + ": " + error.what());
  }
}

}  // namespace

Json Option::parse(const std::string& text) const {
  if (value.is_string()) return check(Json(text));
  if (value.is_boolean()) {
    if (text == "true" || text == "1" || text == "yes" || text == "on") return true;
    if (text == "false" || text == "0" || text == "no" || text == "off") return false;
    refuse(*this, text);
  }
  if (value.is_number_integer()) {
    if (const auto parsed = parse_number<int64_t>(text)) return check(Json(*parsed));
    refuse(*this, text);
  }
  const auto parsed = parse_number<double>(text);
  if (!parsed || !std::isfinite(*parsed)) refuse(*this, text);
  return check(Json(*parsed));
}

Json Option::check(const Json& given) const {
  const auto as_text = [&] { return given.is_string() ? given.get<std::string>() : given.dump(); };
  if (value.is_string()) {
    if (!given.is_string()) refuse(*this, as_text());
    const bool known =
        choices.empty() || std::find(choices.begin(), choices.end(), as_text()) != choices.end();
    if (!known) refuse(*this, as_text());
    if (verify && !as_text().empty()) verify(as_text());
    return given;
  }
  if (value.is_boolean()) {
    if (!given.is_boolean()) refuse(*this, as_text());
    return given;
  }
  if (!given.is_number() || (value.is_number_integer() && !given.is_number_integer())) {
    refuse(*this, as_text());
  }
  const double number = given.get<double>();
  if (!std::isfinite(number) || number < low || number > high) refuse(*this, as_text());
  return value.is_number_integer() ? given : Json(number);
}

std::vector<Option> in_group(const std::string& group, std::vector<Option> options) {
  for (Option& option : options) {
    if (option.group == Option().group) option.group = group;
  }
  return options;
}

std::vector<Option> in_data_group(std::vector<Option> options) {
  for (Option& option : options) option.of_data = true;
  return in_group("Data", std::move(options));
}

std::vector<Option> combined(std::initializer_list<std::vector<Option>> lists) {
  std::vector<Option> all;
  for (const std::vector<Option>& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

const Json* Preset::find(const std::string& option) const {
  for (const auto& [name, value] : values) {
    if (name == option) return &value;
  }
  return nullptr;
}

Settings::Settings(std::vector<Option> options) : options_(std::move(options)) {
  for (const Option& option : options_) entries_.push_back({.value = option.value});
}

void Settings::set(const std::string& name, const std::string& text, Origin origin) {
  const size_t i = index(name);
  const Option& option = options_[i];
  entries_[i] = {.value = named(option, [&] { return option.parse(text); }), .origin = origin};
}

void Settings::set(const std::string& name, const Json& value, Origin origin) {
  const size_t i = index(name);
  const Option& option = options_[i];
  entries_[i] = {.value = named(option, [&] { return option.check(value); }), .origin = origin};
}

void Settings::apply(const Preset& preset) {
  for (const auto& [name, value] : preset.values) set(name, value, Origin::kPreset);
}

void Settings::apply(const Json& settings) {
  for (const auto& [name, value] : settings.items()) {
    const bool is_text = value.is_string();
    set(name, is_text ? Json(from_json_text(value.get<std::string>())) : value, Origin::kConfig);
  }
}

const Option& Settings::option(const std::string& name) const { return options_[index(name)]; }

Json Settings::to_json() const {
  Json result = Json::object();
  for (size_t i = 0; i < options_.size(); ++i) {
    const Json& value = entries_[i].value;
    result[options_[i].name] =
        value.is_string() ? Json(to_json_text(value.get<std::string>())) : value;
  }
  return result;
}

const Settings::Entry& Settings::at(const std::string& name) const { return entries_[index(name)]; }

size_t Settings::index(const std::string& name) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < options_.size(); ++i) {
    if (options_[i].name == name) return i;
    names.push_back(options_[i].name);
  }
  throw Failure("there is no option '" + shown_value(name) + "'" + did_you_mean(name, names));
}

}  // namespace aimle::experiments
