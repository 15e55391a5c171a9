// The declaration of a solver: its summary, its tie rule and its settings, each bound to a member
// of its struct (see registry/register_solver.h).
//
//   void TopK::declare(Declaration<TopK>& solver) {
//     solver.summary = "the k largest scores";
//     solver.required("k", &TopK::k, {.min = 0}, "how many entries are chosen");
//   }
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "aimle/map/map.h"

namespace aimle {

/// A setting for text, Python and the command line.
struct SolverSetting {
  enum class Type { kInteger, kCell, kChoice };

  std::string name;
  std::string meaning;  // a phrase for help texts
  Type type = Type::kInteger;
  std::optional<std::string> default_value;  // none: it must be given
  int64_t min = 0;                           // of integers
  int64_t max = std::numeric_limits<int64_t>::max();
  std::vector<std::string> choices = {};  // of choices

  /// What is allowed: "0 <= k", "neighbourhood in {4, 8}".
  std::string allowed() const;
};

/// The allowed values of an integer setting.
struct Range {
  int64_t min = 0;
  int64_t max = std::numeric_limits<int64_t>::max();
};

namespace detail {

// Each throws std::invalid_argument naming the setting, the value and what is allowed.
int64_t read_integer(std::string_view solver, const SolverSetting& setting, std::string_view text);
Cell read_cell(std::string_view solver, const SolverSetting& setting, std::string_view text);
size_t read_choice(std::string_view solver, const SolverSetting& setting, std::string_view text);
std::string cell_text(const Cell& cell);

}  // namespace detail

/// Collects the results of `S::declare`. A setting is bound to a member, which has its default.
template <class S>
class Declaration {
 public:
  std::string summary;  // one line: what is chosen
  std::string ties = "the lower index wins";
  /// The default noise of layers, by name, at temperature 1. Empty: Gumbel if all solutions have
  /// the same size; Normal, at a temperature for costs, if they vary.
  std::string noise;

  /// A setting that must be given.
  void required(const char* name, int64_t S::*member, Range range, const char* meaning) {
    add_integer(name, member, range, meaning, std::nullopt);
  }
  void setting(const char* name, int64_t S::*member, Range range, const char* meaning) {
    add_integer(name, member, range, meaning, std::to_string(S{}.*member));
  }
  void setting(const char* name, Cell S::*member, const char* meaning) {
    settings_.push_back({.name = name,
                         .meaning = meaning,
                         .type = SolverSetting::Type::kCell,
                         .default_value = detail::cell_text(S{}.*member)});
    writers_.push_back([member](S& solver, const SolverSetting& setting, const std::string& text) {
      solver.*member = detail::read_cell(S::kName, setting, text);
      return detail::cell_text(solver.*member);
    });
  }
  /// One of several values, each with its word.
  template <class Value>
  void setting(const char* name, Value S::*member,
               std::initializer_list<std::pair<const char*, std::type_identity_t<Value>>> words,
               const char* meaning) {
    SolverSetting added{.name = name, .meaning = meaning, .type = SolverSetting::Type::kChoice};
    std::vector<Value> values;
    for (const auto& [word, value] : words) {
      added.choices.emplace_back(word);
      if (value == S{}.*member) added.default_value = word;
      values.push_back(value);
    }
    settings_.push_back(std::move(added));
    writers_.push_back(
        [member, values](S& solver, const SolverSetting& setting, const std::string& text) {
          solver.*member = values[detail::read_choice(S::kName, setting, text)];
          return text;
        });
  }

  const std::vector<SolverSetting>& settings() const { return settings_; }

  /// Writes a value to its member, and returns its canonical text.
  std::string write(size_t setting, const std::string& text, S& solver) const {
    return writers_[setting](solver, settings_[setting], text);
  }

 private:
  using Writer = std::function<std::string(S&, const SolverSetting&, const std::string&)>;

  void add_integer(const char* name, int64_t S::*member, Range range, const char* meaning,
                   std::optional<std::string> default_value) {
    settings_.push_back({.name = name,
                         .meaning = meaning,
                         .default_value = std::move(default_value),
                         .min = range.min,
                         .max = range.max});
    writers_.push_back([member](S& solver, const SolverSetting& setting, const std::string& text) {
      solver.*member = detail::read_integer(S::kName, setting, text);
      return std::to_string(solver.*member);
    });
  }

  std::vector<SolverSetting> settings_;
  std::vector<Writer> writers_;
};

}  // namespace aimle
