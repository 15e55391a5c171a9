// The options of an experiment, declared once: they define the command-line options with their
// help, the contents of config.json, what `--config` reads, and what presets and grids may change.
//
//   const std::vector<Option> options = {
//       {.name = "k", .value = 10, .help = "Entries chosen in each row", .group = "Model"},
//   };
//   settings.get<int64_t>("k")
//
// The type of an option is the type of its default value: bool, whole number, number or text.
#pragma once

#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace aimle::experiments {

using Json = nlohmann::ordered_json;

struct Option {
  std::string name;  // snake_case; '-' for '_' on the command line
  Json value;        // the default
  std::string help;
  std::string group = "Model";            // the heading of the help
  std::vector<std::string> choices = {};  // of text; empty: any
  double low = -1e300;                    // of numbers
  double high = 1e300;
  bool of_data = false;  // affects what is loaded: the same for all runs of a command
  std::function<void(const std::string&)> verify = {};  // validates a text value; throws if invalid

  /// Converts a text or JSON value. Throws Failure with the value and what is allowed;
  /// Settings::set adds the name of the option.
  Json parse(const std::string& text) const;
  Json check(const Json& value) const;
};

/// These options under a heading of the help, except those that name their own.
std::vector<Option> in_group(const std::string& group, std::vector<Option> options);
/// In the group "Data", and `of_data`.
std::vector<Option> in_data_group(std::vector<Option> options);
std::vector<Option> combined(std::initializer_list<std::vector<Option>> lists);

/// The source of a setting's value, in increasing order of precedence. Settings of a method that
/// does not use them are dropped, unless the user gave them.
enum class Origin { kDefault, kPreset, kConfig, kUser };

/// "paper" -> the settings of the paper's runs
struct Preset {
  std::string name;
  std::string help;
  std::vector<std::pair<std::string, Json>> values;

  /// The value it gives to an option; null if none.
  const Json* find(const std::string& option) const;
};

/// A value for every option.
class Settings {
 public:
  explicit Settings(std::vector<Option> options);

  template <class T>
  T get(const std::string& name) const {
    return at(name).value.get<T>();
  }
  Origin origin(const std::string& name) const { return at(name).origin; }

  /// Throws Failure for an unknown name, with the nearest known one, or for an invalid value.
  void set(const std::string& name, const std::string& text, Origin origin);
  void set(const std::string& name, const Json& value, Origin origin);
  void apply(const Preset& preset);
  /// The "settings" of a config.json.
  void apply(const Json& settings);

  const Option& option(const std::string& name) const;
  const std::vector<Option>& options() const { return options_; }
  /// Text that is not UTF-8 is escaped (experiments/process/bytes_in_json.h); `apply` reads it
  /// back.
  Json to_json() const;

 private:
  struct Entry {
    Json value;
    Origin origin = Origin::kDefault;
  };
  const Entry& at(const std::string& name) const;
  size_t index(const std::string& name) const;

  std::vector<Option> options_;
  std::vector<Entry> entries_;
};

}  // namespace aimle::experiments
