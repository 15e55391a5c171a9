#include "experiments/data/gzip.h"

#include <zlib.h>

#include <cerrno>
#include <cstring>

#include "experiments/data/file_error.h"

namespace aimle::experiments::data {

struct LineReader::Stream {
  gzFile file = nullptr;
  ~Stream() {
    if (file) gzclose(file);
  }
};

LineReader::LineReader(const std::filesystem::path& path, size_t max_line)
    : path_(path), max_line_(max_line), stream_(std::make_unique<Stream>()), buffer_(1 << 18) {
  if (std::filesystem::is_directory(path)) fail(path, "expected a file but it is a folder");
  stream_->file = gzopen(path.c_str(), "rb");
  if (!stream_->file) fail(path, "cannot open: ", std::strerror(errno));
  gzbuffer(stream_->file, 1 << 18);
}

LineReader::~LineReader() = default;
LineReader::LineReader(LineReader&&) noexcept = default;

bool LineReader::fill() {
  begin_ = 0;
  const int got = gzread(stream_->file, buffer_.data(), static_cast<unsigned>(buffer_.size()));
  int code = Z_OK;
  const char* message = gzerror(stream_->file, &code);
  // A stream that breaks off is reported as Z_BUF_ERROR, also with its last bytes.
  if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
    fail_line(path_, number_ + 1, "the gzip stream is damaged or breaks off (", message, ")");
  }
  end_ = static_cast<size_t>(got);
  return got > 0;
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
  fail(path, "not there, and neither is ", packed.filename().string());
}

}  // namespace aimle::experiments::data
