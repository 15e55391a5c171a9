#include "cli/help.h"

#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "experiments/process/terminal.h"

namespace aimle::cli {
namespace {

using experiments::columns_of;
using experiments::wrap;

constexpr size_t kLeast = 40;  // narrower terminals break words

size_t columns() { return std::max(kLeast, experiments::page_columns(STDOUT_FILENO)); }

/// A name with its meaning next to it, or below it if the name is long.
std::string entry(const std::string& name, const std::string& meaning) {
  const size_t width = columns(), indent = std::min<size_t>(30, width / 3);
  std::string text = "  " + wrap(name, width, indent, 2);
  if (meaning.empty()) return text + "\n";
  const size_t used = columns_of(text);
  if (used + 2 > indent) {
    text += "\n" + std::string(indent, ' ');
  } else {
    text += std::string(indent - used, ' ');
  }
  return text + wrap(meaning, width, indent, indent) + "\n";
}

}  // namespace

std::string wrap_lines(const std::string& text, size_t columns) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    if (columns_of(line) > columns) {
      const size_t spaces = std::min(line.find_first_not_of(' '), line.size());
      line = std::string(spaces, ' ') + wrap(line.substr(spaces), columns, spaces + 2, spaces);
    }
    result += line + "\n";
  }
  return result;
}

/// CLI11 leaves two empty lines between groups and one at the end.
std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode mode) const {
  std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
  for (size_t at = 0; (at = text.find("\n\n\n", at)) != std::string::npos;) text.erase(at, 1);
  while (text.ends_with("\n\n")) text.pop_back();
  return text;
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  return entry(make_option_name(option, is_positional) + make_option_opts(option),
               make_option_desc(option));
}

/// `INT:INT in [0, 9]=0` and `TEXT:a|b` without the type, which the check repeats; lists as they are
/// typed, `INT=1,10` and `TEXT,...`.
std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  std::string text = CLI::Formatter::make_option_opts(option);
  if (option->get_delimiter() == ',' && text.ends_with(" ...")) {
    text.resize(text.size() - 4);
    const size_t start = option->get_default_str().empty() ? text.size() : text.rfind('=');
    if (start == text.size()) text += ",...";
    std::replace(text.begin() + static_cast<ptrdiff_t>(start), text.end(), ' ', ',');
  }
  for (const std::string type : {" INT:", " FLOAT:", " UINT:", " TEXT:"}) {
    if (text.starts_with(type)) return " " + text.substr(type.size());
  }
  return text;
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  return entry(command->get_name(), command->get_description());
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return wrap_lines(CLI::Formatter::make_description(app), columns());
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  return wrap_lines(CLI::Formatter::make_footer(app), columns());
}

}  // namespace aimle::cli
