#include "experiments/process/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "aimle/base/numbers.h"

namespace aimle::experiments {
namespace {

constexpr size_t kDefault = 80;

bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

std::optional<size_t> of_environment() {
  const char* text = std::getenv("COLUMNS");
  const auto number = text == nullptr ? std::nullopt : parse_number<size_t>(text);
  return number && *number > 0 ? number : std::nullopt;
}

std::optional<size_t> of_terminal(int descriptor) {
  struct winsize size = {};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

}  // namespace

bool is_live_terminal(int descriptor) {
  const char* kind = std::getenv("TERM");
  return ::isatty(descriptor) == 1 && (kind == nullptr || std::string_view(kind) != "dumb");
}

size_t terminal_columns(int descriptor) {
  if (const auto columns = of_terminal(descriptor)) return *columns;
  return of_environment().value_or(kDefault);
}

size_t page_columns(int descriptor) {
  if (const auto columns = of_environment()) return *columns;
  return of_terminal(descriptor).value_or(kDefault);
}

size_t columns_of(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += starts_character(c) ? 1 : 0;
  return count;
}

std::string cut_to(std::string_view text, size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  if (columns == 0) return "";
  size_t end = 0;
  for (size_t count = 0; end < text.size(); ++end) {
    if (starts_character(text[end]) && ++count == columns) break;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string wrap(std::string_view text, size_t columns, size_t indent, size_t used) {
  const std::string next_line = "\n" + std::string(indent, ' ');
  std::string result;
  bool at_start = true;  // of a line: no word in it yet
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    const size_t width = columns_of(word);
    if (!word.empty()) {
      if (!at_start && used + 1 + width > columns) {
        result += next_line;
        used = indent;
        at_start = true;
      }
      if (!at_start) result += ' ';
      result += word;
      used += width + (at_start ? 0 : 1);
      at_start = false;
    }
    if (end < text.size() && text[end] == '\n') {
      result += next_line;
      used = indent;
      at_start = true;
    }
    begin = end + 1;
  }
  return result;
}

}  // namespace aimle::experiments
