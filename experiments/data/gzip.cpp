#include "experiments/data/gzip.h"

#include <cstring>
#include <sstream>

#include "experiments/data/file_error.h"
#include "experiments/data/input_file.h"

namespace aimle::experiments::data {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 16;

}  // namespace

LineReader::LineReader(const std::filesystem::path& path, size_t max_line)
    : path_(path),
      max_line_(max_line),
      stream_(std::make_unique<std::ifstream>(open_input_file(path))),
      buffer_(kBufferBytes) {}

LineReader::LineReader(std::filesystem::path path, std::string bytes, size_t max_line)
    : path_(std::move(path)),
      max_line_(max_line),
      stream_(std::make_unique<std::istringstream>(std::move(bytes))),
      buffer_(kBufferBytes) {}

bool LineReader::fill() {
  begin_ = 0;
  try {
    end_ = stream_.read(buffer_.data(), buffer_.size());
  } catch (const GzipStream::Damaged& damaged) {
    fail_line(path_, number_ + 1, "the gzip stream is damaged or truncated (", damaged.why,
              "): download or copy the file again");
  }
  return end_ > 0;
}

bool LineReader::next(std::string& line) {
  line.clear();
  bool any = false;
  while (begin_ < end_ || fill()) {
    any = true;
    const char* first = buffer_.data() + begin_;
    const auto* newline = static_cast<const char*>(std::memchr(first, '\n', end_ - begin_));
    const size_t length = newline ? static_cast<size_t>(newline - first) : end_ - begin_;
    if (line.size() + length > max_line_) {
      fail_line(path_, number_ + 1, "expected lines of at most ", max_line_,
                " bytes but this one is longer");
    }
    line.append(first, length);
    begin_ += length + (newline ? 1 : 0);
    if (newline) break;
  }
  if (!any) return false;
  ++number_;
  if (line.find('\0') != std::string::npos) {
    fail_line(path_, number_, "expected text but found a zero byte");
  }
  return true;
}

std::string read_text(const std::filesystem::path& path, size_t max_bytes) {
  LineReader reader(path, max_bytes);
  std::string text;
  std::string line;
  while (reader.next(line)) {
    if (text.size() + line.size() >= max_bytes) {
      fail(path, "expected at most ", max_bytes, " bytes of text");
    }
    text += line;
    text += '\n';
  }
  return text;
}

std::filesystem::path plain_or_gz(const std::filesystem::path& path) {
  if (std::filesystem::exists(path)) return path;
  std::filesystem::path packed = path;
  packed += ".gz";
  if (std::filesystem::exists(packed)) return packed;
  fail(path, "does not exist, nor does ", packed.filename().string());
}

}  // namespace aimle::experiments::data
