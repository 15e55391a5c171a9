#include "cli/app.h"

#include <ATen/Parallel.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <thread>
#include <type_traits>

#include "aimle/base/join.h"
#include "aimle/base/nearest.h"
#include "aimle/base/numbers.h"
#include "aimle/base/shown_value.h"
#include "aimle/registry/load_library.h"
#include "cli/help.h"
#include "cli/messages.h"
#include "experiments/engine/processes.h"
#include "experiments/engine/worker_runs.h"
#include "experiments/process/atomic_file.h"
#include "experiments/process/failure.h"
#include "experiments/process/output_folder.h"
#include "experiments/process/progress.h"
#include "experiments/process/shell_word.h"

namespace aimle::cli {
namespace {

std::string written;

/// The command that was being parsed: the last one named in the chain.
const CLI::App& deepest(const CLI::App& app) {
  const CLI::App* found = &app;
  while (!found->get_subcommands().empty()) found = found->get_subcommands().back();
  return *found;
}

std::string path_of(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : path_of(*parent) + " " + app.get_name();
}

std::vector<std::string> names_of_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::string unknown(const std::string& kind, const std::string& given,
                    const std::vector<std::string>& known) {
  return "unknown " + kind + " '" + shown_value(given) + "'" + did_you_mean(given, known) + " (" +
         join(known, ", ") + ")";
}

/// What other programs call some options, with their names here.
std::string own_name(const std::string& given) {
  static const std::map<std::string, std::string> kOwn = {{"--estimator", "--method"},
                                                          {"--learning_rate", "--lr"},
                                                          {"--learning-rate", "--lr"},
                                                          {"--gpu", "--device"},
                                                          {"--cuda", "--device"}};
  const auto found = kOwn.find(given);
  return found == kOwn.end() ? given : found->second;
}

std::string unexpected(const CLI::App& app, std::string given) {
  const std::string command = path_of(app);
  const std::string help = " (see " + command + " --help)";
  if (given.starts_with("-")) {
    given = given.substr(0, given.find('='));
    return command + " has no option " + shown_value(given) +
           did_you_mean(own_name(given), names_of_options(app)) + help;
  }
  const std::vector<std::string> commands = names_of_commands(app);
  if (commands.empty()) return command + " does not take '" + shown_value(given) + "'" + help;
  return unknown("command", given, commands);
}

/// CLI11's message in the program's own wording.
std::string text_of(const CLI::ParseError& error) {
  const std::string text = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) return text;
  const std::string name = text.substr(0, text.find_first_of(": "));
  const bool is_flag = text.find("flag override") != std::string::npos;
  return name + (is_flag ? " does not take a value" : " needs a value");
}

int usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = deepest(app);
  if (const std::vector<std::string> rest = app.remaining(true); !rest.empty()) {
    return complain(unexpected(command, rest.front()), kUsage);
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
      !names_of_commands(command).empty()) {
    const CLI::App* parent = command.get_parent();
    const std::string before = parent == nullptr ? "" : path_of(*parent);
    std::fputs(command.help(before, CLI::AppFormatMode::Normal).c_str(), stderr);
    return complain(path_of(command) + " needs a command", kUsage);
  }
  const std::string help = " (see " + path_of(command) + " --help)";
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    const std::string text = error.what();
    const std::string missing = text.substr(0, text.find(" is required"));
    return complain(path_of(command) + " needs " + missing + help, kUsage);
  }
  return complain(text_of(error) + help, kUsage);
}

/// Whether an option takes one value each time it is given: --grid, --set.
bool may_repeat(const CLI::Option& option) {
  return option.get_items_expected_max() > 1 && !option.get_allow_extra_args();
}

/// The command among those of `app` that the argument names, or null.
const CLI::App* command_of(const CLI::App& app, const std::string& argument) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == argument) return command;
  }
  return nullptr;
}

/// Rejects options that are given twice, because it is not clear which value was meant.
void refuse_repeated(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  std::set<const CLI::Option*> given;
  for (const std::string& argument : arguments) {
    if (const CLI::App* below = command_of(*command, argument)) command = below;
    if (command->get_prefix_command()) return;  // the remaining arguments are passed on
    if (!argument.starts_with("--")) continue;
    const std::string name = argument.substr(0, argument.find('='));
    const CLI::Option* option = command->get_option_no_throw(name);
    if (option == nullptr || may_repeat(*option) || given.insert(option).second) continue;
    throw experiments::Misuse(
        name + " is given twice: give it once" +
        (option->get_items_expected_max() > 1 ? ", with values a,b,..." : ""));
  }
}

}  // namespace

int run(CLI::App& app, int argc, char** argv) {
  try {
    parse(app, {argv + 1, argv + argc});
    return EXIT_SUCCESS;
  } catch (const CLI::Success& wish) {  // --help, --version
    return experiments::processes().is_first() ? app.exit(wish) : EXIT_SUCCESS;
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error);
  } catch (const experiments::Misuse& error) {
    return complain(error.what(), kUsage);
  } catch (const experiments::ClosedPipe&) {
    return 128 + SIGPIPE;
  } catch (const experiments::Explained& error) {
    return error.code;
  } catch (const experiments::Stopped& stopped) {
    return complain(stopped.what(), 128 + stopped.signal);
  } catch (const std::exception& error) {
    return complain(describe(error), EXIT_FAILURE);
  }
}

int load_libraries(int argc, char** argv) {
  constexpr std::string_view kOption = "--library";
  for (int i = 1; i < argc; ++i) {
    std::string_view path = argv[i];
    if (!path.starts_with(kOption)) continue;
    path.remove_prefix(kOption.size());
    if (path.empty() && i + 1 < argc) path = argv[++i];
    if (path.starts_with('=')) path.remove_prefix(1);
    try {
      load_library(std::string(path));
    } catch (const std::exception& error) {
      return complain("--library: " + describe(error), EXIT_FAILURE);
    }
  }
  return 0;
}

void set_up(CLI::App& app) {
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_version_flag("--version", "aimle " AIMLE_VERSION " (torch " TORCH_VERSION ")");
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
}

const std::string& command_line() { return written; }

void parse(CLI::App& app, std::vector<std::string> arguments) {
  written = "aimle";
  for (std::string& argument : arguments) {
    written += " " + experiments::shell_word(argument);
    if (!argument.starts_with("--")) continue;
    const auto end = argument.begin() + std::min(argument.find('='), argument.size());
    std::replace(argument.begin() + 2, end, '-', '_');  // --test-examples is --test_examples
  }
  refuse_repeated(app, arguments);
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  app.parse(std::move(arguments));
}

void add_common_options(CLI::App& command, CommonOptions& options, const std::string& default_out) {
  options.out = default_out;
  command.add_option("--out", options.out, "Folder for results")->capture_default_str();
  command.add_flag("--force", options.force, "Use the folder even if it is not empty");
  command.add_flag("--quiet", options.quiet, "Show no progress; errors are still shown");
  add_number(command, "--threads", options.threads,
             "Threads; 0: one per core. Does not affect results", 0, 1024);
}

void add_resume_option(CLI::App& command, CommonOptions& options, const std::string& help) {
  options.can_resume = true;
  command.add_flag("--resume", options.resume, help)->excludes("--force");
}

void add_workers_option(CLI::App& command, std::string& workers) {
  command
      .add_option("--workers", workers,
                  "Several runs: on every GPU of this machine (gpus, or gpus:0,2) or on a Ray "
                  "cluster (ray, or ray:ADDRESS), at most --threads at once")
      ->type_name("gpus|ray")
      ->check(taken_by([](const std::string& given) { experiments::check_workers(given); }));
}

Prepared apply(const CommonOptions& options) {
  using experiments::IfNotEmpty;
  experiments::set_quiet(options.quiet);
  experiments::FolderLock lock(options.out);
  const IfNotEmpty refuse = options.can_resume ? IfNotEmpty::kResumeOrRefuse : IfNotEmpty::kRefuse;
  experiments::prepare_output_folder(
      options.out, options.force || options.resume ? IfNotEmpty::kKeepFiles : refuse);
  experiments::remove_temporaries(options.out);
  const auto cores = static_cast<int64_t>(std::thread::hardware_concurrency());
  const int64_t threads = std::max<int64_t>(1, options.threads > 0 ? options.threads : cores);
  at::set_num_threads(static_cast<int>(threads));
  return {threads, std::move(lock)};
}

CLI::Validator taken_by(std::function<void(const std::string&)> parse) {
  return CLI::Validator(
      [parse = std::move(parse)](std::string& given) {
        try {
          parse(given);
          return std::string();
        } catch (const std::exception& error) {
          return describe(error);
        }
      },
      "");
}

CLI::Validator one_of(const std::string& kind, std::vector<std::string> names) {
  const std::string listed = join(names, "|");
  return CLI::Validator(
      [kind, names = std::move(names)](std::string& given) {
        const bool known = std::find(names.begin(), names.end(), given) != names.end();
        return known ? std::string() : unknown(kind, given, names);
      },
      listed);
}

template <class T>
CLI::Validator number_between(T low, T high) {
  constexpr bool is_whole = std::is_integral_v<T>;
  const auto spell = [](T value) {
    return is_whole ? std::to_string(value) : spell_number(static_cast<double>(value));
  };
  const std::string range = "in [" + spell(low) + ", " + spell(high) + "]";
  return CLI::Validator(
      [=](std::string& given) {
        const std::optional<T> value = parse_number<T>(given);
        const bool fits = value && std::isfinite(*value) && low <= *value && *value <= high;
        return fits ? std::string()
                    : (is_whole ? "expected a whole number " : "expected a number ") + range +
                          " but got '" + shown_value(given) + "'";
      },
      (is_whole ? "INT " : "FLOAT ") + range);
}

template CLI::Validator number_between(double low, double high);
template CLI::Validator number_between(int64_t low, int64_t high);

}  // namespace aimle::cli
