// What a reader throws when a file is not what it should be: always the file, then what was
// expected and what was found.
//
//   train_maps.npy: expected shape [N, 96, 96, 3] but got [10000, 96, 96]
//   annotations.json:17: expected a list of token ranges under "0" but got a number
#pragma once

#include <cstdint>
#include <filesystem>
#include <sstream>

#include "experiments/run/failure.h"

namespace aimle::experiments::data {

struct FileError : Failure {
  using Failure::Failure;
};

template <class... Parts>
[[noreturn]] void fail(const std::filesystem::path& path, const Parts&... parts) {
  std::ostringstream message;
  message << path.string() << ": ";
  (message << ... << parts);
  throw FileError(message.str());
}

/// The same, naming a line (counted from 1).
template <class... Parts>
[[noreturn]] void fail_line(const std::filesystem::path& path, int64_t line,
                            const Parts&... parts) {
  std::ostringstream message;
  message << path.string() << ":" << line << ": ";
  (message << ... << parts);
  throw FileError(message.str());
}

}  // namespace aimle::experiments::data
