// The ways a command can fail. The program prints `aimle: <message>` and exits with the code.
#pragma once

#include <stdexcept>
#include <string>

namespace aimle::experiments {

/// Something the user can fix: a missing file, a folder in use, a full disk. Exit code 1.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Invalid options: a name, a value or a combination that the command does not accept. Exit code 2.
struct Misuse : Failure {
  using Failure::Failure;
};

/// A child process has already printed the error. Exit code 1, or 2 if its options were invalid.
struct Explained : std::runtime_error {
  explicit Explained(int code)
      : std::runtime_error("the error has already been printed"), code(code) {}
  int code;
};

/// The reader of standard output has closed it, as `head` does: the program exits silently.
struct ClosedPipe : std::runtime_error {
  ClosedPipe() : std::runtime_error("standard output is closed") {}
};

/// SIGINT or SIGTERM was handled at a safe point. The message says what was saved and where. Exit
/// code 128 + signal.
struct Stopped : std::runtime_error {
  Stopped(int signal, const std::string& message) : std::runtime_error(message), signal(signal) {}
  int signal;
};

}  // namespace aimle::experiments
