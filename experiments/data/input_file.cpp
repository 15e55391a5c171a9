#include "experiments/data/input_file.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <iostream>

#include "experiments/data/file_error.h"

namespace aimle::experiments::data {
namespace {

namespace fs = std::filesystem;

const char* kind_of(fs::file_type type) {
  switch (type) {
    case fs::file_type::directory:
      return "a folder";
    case fs::file_type::fifo:
      return "a named pipe: write its contents to a file and use that";
    case fs::file_type::character:
    case fs::file_type::block:
      return "a device";
    case fs::file_type::socket:
      return "a socket";
    default:
      return "something else";
  }
}

}  // namespace

void check_input_file(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) fail(path, "there is no such file");
  if (error) fail(path, "cannot be read: ", error.message());
  if (status.type() != fs::file_type::regular) {
    fail(path, "expected a regular file but it is ", kind_of(status.type()));
  }
}

std::ifstream open_input_file(const fs::path& path) {
  check_input_file(path);
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path, "cannot be opened: ", std::strerror(errno));
  return file;
}

std::string read_input_file(const fs::path& path, size_t max_bytes) {
  std::ifstream file = open_input_file(path);
  const auto size = static_cast<size_t>(fs::file_size(path));
  if (size > max_bytes) {
    fail(path, "expected at most ", max_bytes, " bytes but it has ", size);
  }
  std::string bytes(size, '\0');
  if (!file.read(bytes.data(), static_cast<std::streamsize>(size))) {
    fail(path, "is truncated: expected ", size, " bytes but got ", file.gcount());
  }
  return bytes;
}

std::string read_input_file_or_stdin(const fs::path& path, size_t max_bytes) {
  if (path != "/dev/stdin") return read_input_file(path, max_bytes);
  std::string bytes;
  std::array<char, 4096> chunk{};
  while (std::cin.read(chunk.data(), chunk.size()), std::cin.gcount() > 0) {
    bytes.append(chunk.data(), static_cast<size_t>(std::cin.gcount()));
    if (bytes.size() > max_bytes) fail(path, "expected at most ", max_bytes, " bytes");
  }
  return bytes;
}

}  // namespace aimle::experiments::data
