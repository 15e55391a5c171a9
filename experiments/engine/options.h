// The options of an experiment, declared once: they are the command line's options with their help,
// what config.json holds, what `--config` reads back, and what presets and grids may change.
//
//   const std::vector<Option> options = {
//       {.name = "k", .value = 10, .help = "Entries chosen in each row", .group = "Model"},
//   };
//   settings.get<int64_t>("k")
//
// The type of an option is the type of its default value: bool, whole number, number or text.
#pragma once

#include <functional>
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
  std::string group = "Model";
  std::vector<std::string> choices = {};  // of text; empty: any
  double low = -1e300;                    // of numbers
  double high = 1e300;
  bool of_data = false;  // decides what is loaded: the same for all runs of a command
  std::function<void(const std::string&)> verify = {};  // of text: throws if it says nothing

  /// The value that this text or JSON value stands for. Throws Failure with the value and what is
  /// allowed; Settings::set says of which option.
  Json parse(const std::string& text) const;
  Json check(const Json& value) const;
};

/// Where a setting's value comes from, in rising order of precedence. A method's settings are
/// dropped where the method has no use for them, unless the user gave them.
enum class Origin { kDefault, kPreset, kConfig, kUser };

/// "paper" -> what the paper's runs used
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

  /// Throws Failure for an unknown name, with the nearest known one, or a value not allowed.
  void set(const std::string& name, const std::string& text, Origin origin);
  void set(const std::string& name, const Json& value, Origin origin);
  void apply(const Preset& preset);
  /// The "settings" of a config.json.
  void apply(const Json& settings);

  const Option& option(const std::string& name) const;
  const std::vector<Option>& options() const { return options_; }
  /// Text that is not UTF-8 is escaped (experiments/process/bytes_in_json.h); `apply` reads it back.
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
