// The bytes of a stream, unpacked if its first two bytes show that it is gzipped.
#pragma once

#include <istream>
#include <memory>
#include <vector>

namespace aimle::experiments::data {

class GzipStream {
 public:
  explicit GzipStream(std::unique_ptr<std::istream> source);
  ~GzipStream();
  GzipStream(GzipStream&&) noexcept;

  /// Up to `size` bytes; 0 at the end. Throws Damaged for a gzip stream that is damaged, truncated
  /// or followed by other data. Consecutive members are one stream.
  size_t read(char* out, size_t size);

  struct Damaged {
    const char* why;
  };

 private:
  struct Inflate;

  /// Makes at least `wanted` bytes of the source available, fewer only at its end.
  size_t fill(size_t wanted);
  bool starts_member();
  size_t unpack(char* out, size_t size);

  std::unique_ptr<std::istream> source_;
  std::vector<char> packed_;
  size_t begin_ = 0;
  size_t end_ = 0;
  std::unique_ptr<Inflate> inflate_;  // null: the source is not gzipped
};

}  // namespace aimle::experiments::data
