#include "experiments/process/python.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "experiments/process/failure.h"
#include "experiments/process/interrupt.h"
#include "experiments/process/progress.h"

extern char** environ;

namespace aimle::experiments {
namespace {

namespace fs = std::filesystem;

constexpr int kUsage = 2;      // the module has printed what is wrong with its arguments
constexpr int kExplained = 3;  // the same for its files
// Its standard output could not be written, or has been closed by its reader.
constexpr int kNotWritten = 4, kClosedPipe = 5;

// `python -m MODULE ARGUMENTS`, except that Ctrl-C, which reaches both processes, ends it without a
// traceback, as does standard output that cannot be written.
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

// After a signal the module has this long until SIGTERM, and this long until SIGKILL.
struct Patience {
  std::chrono::milliseconds terminate, kill;
};

constexpr Patience patience_with(WhenStopped when_stopped) {
  using std::chrono::milliseconds;
  return when_stopped == WhenStopped::kEnds ? Patience{milliseconds(500), milliseconds(1000)}
                                            : Patience{milliseconds(0), milliseconds(1800)};
}

using Clock = std::chrono::steady_clock;

/// The child's exit status, or none if it was lost. After a signal the child is ended too: Ctrl-C
/// reaches both processes, but `kill` only this one.
std::optional<int> wait_for(pid_t child, WhenStopped when_stopped) {
  const Patience patience = patience_with(when_stopped);
  std::optional<Clock::time_point> asked;
  bool told = false;
  const auto terminate = [&] {
    if (!told) ::kill(child, SIGTERM);
    told = true;
  };
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) return std::nullopt;
    if (interrupt_signal() != 0 && !asked) {
      asked = Clock::now();
      if (interrupt_signal() == SIGTERM) terminate();
    }
    if (asked && Clock::now() - *asked > patience.kill) {
      ::kill(child, SIGKILL);
    } else if (asked && Clock::now() - *asked > patience.terminate) {
      terminate();
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

/// The environment of this process, with the source tree's package first if it exists.
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

struct Streams {
  std::optional<std::string_view> input;  // none: that of this process
  bool shows_output = true;
  WhenStopped when_stopped = WhenStopped::kEnds;
};

/// An open, unnamed file with these contents, positioned at its beginning.
using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
File file_with(std::string_view contents) {
  File file(std::tmpfile(), std::fclose);
  if (!file || std::fwrite(contents.data(), 1, contents.size(), file.get()) != contents.size() ||
      std::fflush(file.get()) != 0) {
    throw Failure("cannot write a temporary file: " + std::string(std::strerror(errno)));
  }
  std::rewind(file.get());
  return file;
}

/// How a module ended: success, the program's exit code if it has printed what is wrong, or the
/// reason why it could not run.
struct Outcome {
  bool done = false;
  int explained = 0;
  std::string why;
};

Outcome run(std::string_view module, const std::vector<std::string>& arguments,
            const Streams& streams) {
  std::vector<std::string> command = {interpreter(), "-c", kRunModule, std::string(module)};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = environment();

  const KeepAlive until_it_ends;  // after a signal, wait_for ends it in time
  const InterruptHandler handler;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (!streams.shows_output) {  // standard error stays open for the module's error messages
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  }
  File input(nullptr, std::fclose);
  if (streams.input) {
    input = file_with(*streams.input);
    posix_spawn_file_actions_adddup2(&actions, fileno(input.get()), STDIN_FILENO);
  }
  pid_t child = 0;
  const int error = posix_spawnp(&child, command[0].c_str(), &actions, nullptr,
                                 pointers(command).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return {.why = "cannot run " + command[0] + " (" + std::strerror(error) + ")"};

  const std::optional<int> waited = wait_for(child, streams.when_stopped);
  if (!waited) return {.why = command[0] + " was lost (" + std::strerror(errno) + ")"};
  const int status = *waited;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {.done = true};
  if (const int signal = interrupt_signal()) {
    throw Stopped(signal, "stopped in " + std::string(module) + "; everything before is complete");
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kUsage) return {.explained = kUsage};
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExplained) return {.explained = EXIT_FAILURE};
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotWritten) {
    throw Failure("cannot write to standard output");
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kClosedPipe) throw ClosedPipe();
  if (WIFEXITED(status)) {
    return {.why = command[0] + " -m " + std::string(module) + " exited with code " +
                   std::to_string(WEXITSTATUS(status)) + " (set AIMLE_PYTHON to a Python that " +
                   "has torch, matplotlib and this package)"};
  }
  return {.why = command[0] + " was killed by signal " + std::to_string(WTERMSIG(status))};
}

}  // namespace

bool run_python_module(std::string_view module, const std::vector<std::string>& arguments) {
  const Outcome outcome = run(module, arguments, {.shows_output = !is_quiet()});
  if (!outcome.why.empty()) warn(outcome.why);
  return outcome.done;
}

void call_python_module(std::string_view module, const std::vector<std::string>& arguments,
                        std::string_view input, WhenStopped when_stopped) {
  const Outcome outcome = run(module, arguments, {.input = input, .when_stopped = when_stopped});
  if (outcome.explained != 0) throw Explained(outcome.explained);
  if (!outcome.done) throw Failure(outcome.why);
}

}  // namespace aimle::experiments
