#include "experiments/run/python.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "experiments/run/failure.h"
#include "experiments/run/interrupt.h"
#include "experiments/run/progress.h"

extern char** environ;

namespace aimle::experiments {
namespace {

namespace fs = std::filesystem;

constexpr int kExplained = 3;  // the module has said what is wrong with its arguments or files

// `python -m MODULE ARGUMENTS`, but Ctrl-C, which reaches both processes, ends it without a
// traceback.
constexpr const char* kRunModule =
    "import runpy, signal, sys\n"
    "signal.signal(signal.SIGINT, lambda *_: sys.exit(130))\n"
    "del sys.argv[0]\n"
    "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)\n";

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
  say(why);
  return false;
}

}  // namespace

bool run_python_module(std::string_view module, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {interpreter(), "-c", kRunModule, std::string(module)};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = environment();

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (is_quiet()) {
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  }
  pid_t child = 0;
  const int error = posix_spawnp(&child, command[0].c_str(), &actions, nullptr,
                                 pointers(command).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return fail("cannot run " + command[0] + " (" + std::strerror(error) + ")");

  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return fail(command[0] + " was lost (" + std::strerror(errno) + ")");
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  if (const int signal = interrupt_signal()) {
    throw Stopped(signal, "stopped in " + std::string(module) + "; all before it is complete");
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExplained) return false;
  if (WIFEXITED(status)) {
    return fail(command[0] + " -m " + std::string(module) + " ended with code " +
                std::to_string(WEXITSTATUS(status)) + " (set AIMLE_PYTHON to a Python that has " +
                "torch, matplotlib and this package)");
  }
  return fail(command[0] + " was ended by signal " + std::to_string(WTERMSIG(status)));
}

}  // namespace aimle::experiments
