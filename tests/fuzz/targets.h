// What is fuzzed: every reader of files, and the parser of settings.
//
// A reader takes any bytes and either returns or throws a Failure that names the file; anything
// else (another exception, a sanitizer's report, a hang, a value that contradicts itself) is a bug.
// The readers take bytes in memory, so that an input costs microseconds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace aimle::fuzz {

struct Target {
  std::string name;
  /// Throws Failure, or Broken for what must not happen.
  void (*read)(const std::string& bytes);
  std::vector<std::string> seeds;  // inputs that are read, or nearly so
  std::vector<std::string> words;  // that mean something to the reader
};

/// A result that contradicts itself.
struct Broken {
  std::string what;
};

/// Of this program.
const std::vector<Target>& targets();

/// The name that readers are given for their file.
inline constexpr const char* kFile = "fuzzed.file";

/// Reads one input; aborts, after a message, for everything but a Failure.
void read_one(const Target& target, const std::string& bytes);

/// The target that LLVMFuzzerTestOneInput reads with.
void select(const Target& target);

}  // namespace aimle::fuzz

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size);
