// What every command shares: how the program starts, and how it ends.
//
//   exit code   0 success · 1 a Failure or another error · 2 wrong usage · 130, 143 stopped by a
//   signal
//
// Errors are one line on standard error, `aimle: ...`; unknown commands, options and names come
// with the nearest known one. Output that cannot be written is an error (1), unless the reader of a
// pipe has closed it.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "experiments/process/folder_lock.h"

namespace aimle::cli {

/// Loads what `--library` names, so that the options of its solvers are known. 0, or the exit code
/// of a library that cannot be loaded, which is said.
int load_libraries(int argc, char** argv);
void set_up(CLI::App& app);
int run(CLI::App& app, int argc, char** argv);
/// Runs the command that the arguments name, as if they had been typed; throws what it throws.
void parse(CLI::App& app, std::vector<std::string> arguments);
/// What the user wrote, or a command wrote for them.
const std::string& command_line();

/// `--out --force --quiet --threads`, alike in every command that computes.
struct CommonOptions {
  std::filesystem::path out;
  bool force = false;
  bool resume = false;
  bool can_resume = false;  // the command has --resume
  bool quiet = false;
  int64_t threads = 0;  // 0: as many as there are cores
};
void add_common_options(CLI::App& command, CommonOptions& options, const std::string& default_out);
/// `--resume`, for commands that can go on where they were stopped.
void add_resume_option(CLI::App& command, CommonOptions& options, const std::string& help);
/// `--workers`, for commands of several training runs.
void add_workers_option(CLI::App& command, std::string& workers);
/// What a command has while it works.
struct Prepared {
  int64_t threads;
  experiments::FolderLock lock;  // of --out
};
/// Obeys --quiet, --threads, --out, --force and --resume; called by a command before it works.
[[nodiscard]] Prepared apply(const CommonOptions& options);

/// For `option->check(...)`: a value that this function takes; what it throws is said of the
/// option, and is wrong usage.
CLI::Validator taken_by(std::function<void(const std::string&)> parse);
/// One of the names, or an error that suggests the nearest.
CLI::Validator one_of(const std::string& kind, std::vector<std::string> names);
/// A finite number within [low, high].
CLI::Validator number_between(double low, double high);
/// A whole number within [low, high].
CLI::Validator integer_between(int64_t low, int64_t high);

}  // namespace aimle::cli
