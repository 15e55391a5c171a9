// Lines of text files, plain or gzipped, distinguished by their first two bytes.
//
//   aimle::experiments::data::LineReader reader(path);
//   std::string line;
//   while (reader.next(line)) ...   // without the newline; reader.number() is 1 for the first
//
// A truncated or damaged gzip stream, a line longer than `max_line` bytes, and a zero byte in the
// text are errors that name the file and the line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/data/gzip_stream.h"

namespace aimle::experiments::data {

class LineReader {
 public:
  static constexpr size_t kMaxLine = size_t{1} << 24;

  explicit LineReader(const std::filesystem::path& path, size_t max_line = kMaxLine);
  /// Of bytes in memory; `path` is for messages.
  LineReader(std::filesystem::path path, std::string bytes, size_t max_line = kMaxLine);

  bool next(std::string& line);
  int64_t number() const { return number_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  bool fill();

  std::filesystem::path path_;
  size_t max_line_;
  GzipStream stream_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  int64_t number_ = 0;
};

/// The whole file, unpacked if it is gzipped; throws if it exceeds `max_bytes`.
std::string read_text(const std::filesystem::path& path, size_t max_bytes = size_t{1} << 31);

/// `path` if it exists, otherwise `path.gz`; throws an error naming both if neither does.
std::filesystem::path plain_or_gz(const std::filesystem::path& path);

}  // namespace aimle::experiments::data
