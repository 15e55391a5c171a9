// The common part of all commands: start and exit of the program.
//
//   exit code   0 success · 1 a Failure or another error · 2 wrong usage · 130, 143 stopped by a
//   signal
//
// Errors are one line on standard error, `aimle: ...`; for unknown commands, options and names the
// message suggests the nearest known one. Output that cannot be written is an error (1), unless the
// reader of a pipe has closed it.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "experiments/process/folder_lock.h"

namespace aimle::cli {

/// Loads the libraries given by `--library`, so that the options of their solvers are known.
/// Returns 0, or the exit code after reporting a library that cannot be loaded.
int load_libraries(int argc, char** argv);
void set_up(CLI::App& app);
int run(CLI::App& app, int argc, char** argv);
/// Runs the command given by the arguments, as if they had been typed; passes on its exceptions.
void parse(CLI::App& app, std::vector<std::string> arguments);
/// The command line, as typed by the user or written by a command.
const std::string& command_line();

/// `--out --force --quiet --threads`, the same in every command that computes.
struct CommonOptions {
  std::filesystem::path out;
  bool force = false;
  bool resume = false;
  bool can_resume = false;  // the command has --resume
  bool quiet = false;
  int64_t threads = 0;  // 0: as many as there are cores
};
void add_common_options(CLI::App& command, CommonOptions& options, const std::string& default_out);
/// `--resume`, for commands that can continue after an interruption.
void add_resume_option(CLI::App& command, CommonOptions& options, const std::string& help);
/// `--workers`, for commands of several training runs.
void add_workers_option(CLI::App& command, std::string& workers);
/// The state of a running command.
struct Prepared {
  int64_t threads;
  experiments::FolderLock lock;  // of --out
};
/// Applies --quiet, --threads, --out, --force and --resume; called by a command before it starts.
[[nodiscard]] Prepared apply(const CommonOptions& options);

/// For `option->check(...)`: accepts the values that this function accepts. Its exceptions are
/// reported as wrong usage of the option.
CLI::Validator taken_by(std::function<void(const std::string&)> parse);
/// One of the names, or an error that suggests the nearest.
CLI::Validator one_of(const std::string& kind, std::vector<std::string> names);
/// A number within [low, high]: finite, and whole if T is int64_t.
template <class T>
CLI::Validator number_between(T low, T high);

/// An option that takes such a number, or several separated by commas, and whose help shows its
/// default.
template <class T>
void add_number(CLI::App& command, const std::string& name, T& value, const std::string& help,
                std::type_identity_t<T> low, std::type_identity_t<T> high) {
  command.add_option(name, value, help)->check(number_between(low, high))->capture_default_str();
}
template <class T>
void add_number(CLI::App& command, const std::string& name, std::vector<T>& values,
                const std::string& help, std::type_identity_t<T> low,
                std::type_identity_t<T> high) {
  command.add_option(name, values, help)
      ->delimiter(',')
      ->check(number_between(low, high))
      ->capture_default_str();
}

}  // namespace aimle::cli
