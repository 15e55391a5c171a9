// How a study ends other than well. The program prints `aimle: <message>` and exits with the code.
#pragma once

#include <stdexcept>
#include <string>

namespace aimle::experiments {

/// Something the user can mend: a missing file, a folder in use, a full disk. Exit code 1.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Options that cannot be: a name, a value or a combination that the command does not take. Exit
/// code 2.
struct Misuse : Failure {
  using Failure::Failure;
};

/// What went wrong has been said, by a process that worked for this one. Exit code 1.
struct Explained : std::runtime_error {
  Explained() : std::runtime_error("it was said what went wrong") {}
};

/// Whoever read standard output has closed it, as `head` does: the program ends without a word.
struct ClosedPipe : std::runtime_error {
  ClosedPipe() : std::runtime_error("standard output is closed") {}
};

/// SIGINT or SIGTERM was obeyed at a safe point. The message says what is kept and where. Exit code
/// 128 + signal.
struct Stopped : std::runtime_error {
  Stopped(int signal, const std::string& message) : std::runtime_error(message), signal(signal) {}
  int signal;
};

}  // namespace aimle::experiments
