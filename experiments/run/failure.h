// How a study ends other than well. The program prints `aimle: <message>` and exits with the code.
#pragma once

#include <stdexcept>
#include <string>

namespace aimle::experiments {

/// Something the user can mend: a missing file, a folder in use, a full disk. Exit code 1.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// SIGINT or SIGTERM was obeyed at a safe point. The message says what is kept and where. Exit code
/// 128 + signal.
struct Stopped : std::runtime_error {
  Stopped(int signal, const std::string& message) : std::runtime_error(message), signal(signal) {}
  int signal;
};

}  // namespace aimle::experiments
