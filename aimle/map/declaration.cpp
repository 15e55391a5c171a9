#include "aimle/map/declaration.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "aimle/base/check.h"
#include "aimle/base/join.h"
#include "aimle/base/shown_value.h"

namespace aimle {
namespace {

/// Whether the whole `text` is an integer, which is then stored.
bool is_integer(std::string_view text, int64_t& value) {
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stopped == end && !text.empty();
}

[[noreturn]] void refuse_setting(std::string_view solver, const SolverSetting& setting,
                                 std::string_view text) {
  detail::throw_invalid_argument("[aimle::", solver, "] expected ", setting.allowed(), " but got ",
                                 setting.name, "=", shown_value(text));
}

}  // namespace

std::string SolverSetting::allowed() const {
  switch (type) {
    case Type::kCell:
      return name + " to be row:column, two integers";
    case Type::kChoice:
      return name + " to be " + join(choices, " or ");
    case Type::kInteger:
      break;
  }
  const std::string at_least = std::to_string(min) + " <= " + name;
  return max == std::numeric_limits<int64_t>::max() ? name + " >= " + std::to_string(min)
                                                    : at_least + " <= " + std::to_string(max);
}

namespace detail {

int64_t read_integer(std::string_view solver, const SolverSetting& setting, std::string_view text) {
  int64_t value = 0;
  if (!is_integer(text, value) || value < setting.min || value > setting.max) {
    refuse_setting(solver, setting, text);
  }
  return value;
}

Cell read_cell(std::string_view solver, const SolverSetting& setting, std::string_view text) {
  Cell cell;
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || !is_integer(text.substr(0, colon), cell.row) ||
      !is_integer(text.substr(colon + 1), cell.column)) {
    refuse_setting(solver, setting, text);
  }
  return cell;
}

size_t read_choice(std::string_view solver, const SolverSetting& setting, std::string_view text) {
  const auto found = std::find(setting.choices.begin(), setting.choices.end(), text);
  if (found == setting.choices.end()) refuse_setting(solver, setting, text);
  return static_cast<size_t>(found - setting.choices.begin());
}

std::string cell_text(const Cell& cell) {
  return std::to_string(cell.row) + ":" + std::to_string(cell.column);
}

}  // namespace detail
}  // namespace aimle
