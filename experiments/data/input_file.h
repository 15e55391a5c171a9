// Opens files for reading. Every reader of the program uses it, so that anything that is not a
// regular file is rejected by name before it is opened: opening a named pipe waits for a writer,
// and a device such as /dev/zero never ends. Symbolic links to regular files are followed.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace aimle::experiments::data {

/// Throws FileError if there is no such file, or if it is a folder, a named pipe, a device or a
/// socket.
void check_input_file(const std::filesystem::path& path);

/// The file, checked and opened in binary mode.
std::ifstream open_input_file(const std::filesystem::path& path);

/// All its bytes; throws if it exceeds `max_bytes`.
std::string read_input_file(const std::filesystem::path& path, size_t max_bytes = size_t{1} << 32);

/// The same, but /dev/stdin is read to its end even if it is a pipe.
std::string read_input_file_or_stdin(const std::filesystem::path& path,
                                     size_t max_bytes = size_t{1} << 26);

}  // namespace aimle::experiments::data
