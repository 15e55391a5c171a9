#include "aimle/map/declaration.h"

#include <algorithm>
#include <string>

#include "aimle/base/check.h"
#include "aimle/base/join.h"
#include "aimle/base/numbers.h"
#include "aimle/base/shown_value.h"

namespace aimle {
namespace {

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
  const auto value = parse_number<int64_t>(text);
  if (!value || *value < setting.min || *value > setting.max) refuse_setting(solver, setting, text);
  return *value;
}

Cell read_cell(std::string_view solver, const SolverSetting& setting, std::string_view text) {
  const size_t colon = std::min(text.find(':'), text.size());
  const auto row = parse_number<int64_t>(text.substr(0, colon));
  const auto column = parse_number<int64_t>(text.substr(std::min(colon + 1, text.size())));
  if (!row || !column) refuse_setting(solver, setting, text);
  return {.row = *row, .column = *column};
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
