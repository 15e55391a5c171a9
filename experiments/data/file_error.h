// The exception of readers for invalid files: always the file, then what was expected and what was
// found.
//
//   train_maps.npy: expected shape [N, 96, 96, 3] but got [10000, 96, 96]
//   annotations.json:17: expected a list of token ranges under "0" but got a number
#pragma once

#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>

#include "experiments/process/failure.h"

namespace aimle::experiments::data {

struct FileError : Failure {
  using Failure::Failure;
};

/// One line of at most 400 bytes, whatever a file contains: control characters are escaped, and
/// longer text is truncated.
std::string one_line(const std::string& text);

template <class... Parts>
[[noreturn]] void fail(const std::filesystem::path& path, const Parts&... parts) {
  std::ostringstream message;
  (message << ... << parts);
  throw FileError(path.string() + ": " + one_line(message.str()));
}

/// The same, naming a line (counted from 1).
template <class... Parts>
[[noreturn]] void fail_line(const std::filesystem::path& path, int64_t line,
                            const Parts&... parts) {
  std::ostringstream message;
  (message << ... << parts);
  throw FileError(path.string() + ":" + std::to_string(line) + ": " + one_line(message.str()));
}

}  // namespace aimle::experiments::data
