#include "experiments/process/python.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

#include "experiments/process/failure.h"
#include "experiments/process/interrupt.h"
#include "experiments/process/progress.h"

extern char** environ;

namespace aimle::experiments {
namespace {

namespace fs = std::filesystem;

constexpr int kExplained = 3;  // the module has said what is wrong with its arguments or files
// Its standard output could not be written, or nobody reads it any more.
constexpr int kNotWritten = 4, kClosedPipe = 5;

// `python -m MODULE ARGUMENTS`, but Ctrl-C, which reaches both processes, ends it without a
// traceback, and so does standard output that cannot be written.
constexpr const char* kRunModule =
    "import os, runpy, signal, sys\n"
    "signal.signal(signal.SIGINT, lambda *_: sys.exit(130))\n"
    "del sys.argv[0]\n"
    "class Output:\n"
    "    def __init__(self, stream):\n"
    "        self._stream = stream\n"
    "    def __getattr__(self, name):\n"
    "        return getattr(self._stream, name)\n"
    "    def _do(self, act, *given):\n"
    "        try:\n"
    "            return act(*given)\n"
    "        except OSError as error:\n"
    "            os._exit(5 if isinstance(error, BrokenPipeError) else 4)\n"
    "    def write(self, text):\n"
    "        return self._do(self._stream.write, text)\n"
    "    def flush(self):\n"
    "        self._do(self._stream.flush)\n"
    "sys.stdout = Output(sys.stdout)\n"
    "try:\n"
    "    runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)\n"
    "finally:\n"
    "    sys.stdout.flush()\n";

// After a signal the module has this long to end, and then again after SIGTERM.
constexpr auto kPatience = std::chrono::milliseconds(500);

using Clock = std::chrono::steady_clock;

/// The child's exit status, or none if it was lost. After a signal it is told to end, too: Ctrl-C
/// reaches both processes, but `kill` only this one.
std::optional<int> wait_for(pid_t child) {
  std::optional<Clock::time_point> asked;
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) return std::nullopt;
    if (interrupt_signal() != 0 && !asked) {
      asked = Clock::now();
      if (interrupt_signal() == SIGTERM) ::kill(child, SIGTERM);
    }
    if (asked && Clock::now() - *asked > 2 * kPatience) {
      ::kill(child, SIGKILL);
    } else if (asked && Clock::now() - *asked > kPatience) {
      ::kill(child, SIGTERM);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

std::string interpreter() {
  if (const char* given = std::getenv("AIMLE_PYTHON"); given != nullptr && *given != '\0') {
    return given;
  }
  const std::string configured = AIMLE_BUILD_PYTHON;
  if (configured.find('/') != std::string::npos && ::access(configured.c_str(), X_OK) == 0) {
    return configured;
  }
  return "python3";
}

/// The environment of this process, with the source tree's package in front if it is there.
std::vector<std::string> environment() {
  std::vector<std::string> result;
  std::string path = AIMLE_BUILD_PACKAGE;
  const bool in_build_tree = !path.empty() && fs::exists(fs::path(path) / "aimle" / "__init__.py");
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (in_build_tree && text.starts_with("PYTHONPATH=")) {
      path.append(":").append(text.substr(std::strlen("PYTHONPATH=")));
    } else {
      result.emplace_back(text);
    }
  }
  if (in_build_tree) result.push_back("PYTHONPATH=" + path);
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

bool fail(const std::string& why) {
  warn(why);
  return false;
}

}  // namespace

bool run_python_module(std::string_view module, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {interpreter(), "-c", kRunModule, std::string(module)};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = environment();

  const InterruptHandler handler;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (is_quiet()) {  // standard error stays: a module says there why it failed
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  }
  pid_t child = 0;
  const int error = posix_spawnp(&child, command[0].c_str(), &actions, nullptr,
                                 pointers(command).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return fail("cannot run " + command[0] + " (" + std::strerror(error) + ")");

  const std::optional<int> waited = wait_for(child);
  if (!waited) return fail(command[0] + " was lost (" + std::strerror(errno) + ")");
  const int status = *waited;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  if (const int signal = interrupt_signal()) {
    throw Stopped(signal, "stopped in " + std::string(module) + "; all before it is complete");
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExplained) return false;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotWritten) {
    throw Failure("cannot write to standard output");
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kClosedPipe) throw ClosedPipe();
  if (WIFEXITED(status)) {
    return fail(command[0] + " -m " + std::string(module) + " ended with code " +
                std::to_string(WEXITSTATUS(status)) + " (set AIMLE_PYTHON to a Python that has " +
                "torch, matplotlib and this package)");
  }
  return fail(command[0] + " was ended by signal " + std::to_string(WTERMSIG(status)));
}

}  // namespace aimle::experiments
