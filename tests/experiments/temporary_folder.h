// Folders that vanish with the test, and files in them.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace aimle::experiments {

namespace fs = std::filesystem;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    // In memory where that is possible: the fuzzed readers write thousands of files.
    const fs::path memory = "/dev/shm";
    const fs::path parent = access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path();
    std::string name = (parent / "aimle_test_XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("cannot make " + name);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  fs::path operator/(const std::string& name) const { return path_ / name; }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

inline void write_bytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), std::ssize(bytes));
}

inline std::string read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace aimle::experiments
