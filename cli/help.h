// The layout of `--help`: as CLI11's, but wrapped to the width of the terminal.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace aimle::cli {

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
};

/// Wraps each line separately; continuation lines are indented a little further.
std::string wrap_lines(const std::string& text, size_t columns);

}  // namespace aimle::cli
