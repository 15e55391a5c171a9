#include "experiments/data/gzip_stream.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace aimle::experiments::data {

struct GzipStream::Inflate {
  z_stream stream{};
  bool within = true;  // a member

  Inflate() {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    if (inflateInit2(&stream, kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~Inflate() { inflateEnd(&stream); }
  Inflate(const Inflate&) = delete;
};

GzipStream::GzipStream(std::unique_ptr<std::istream> source)
    : source_(std::move(source)), packed_(size_t{1} << 16) {
  if (starts_member()) inflate_ = std::make_unique<Inflate>();
}

GzipStream::~GzipStream() = default;
GzipStream::GzipStream(GzipStream&&) noexcept = default;

size_t GzipStream::fill(size_t wanted) {
  if (end_ - begin_ < wanted) {
    std::memmove(packed_.data(), packed_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    source_->read(packed_.data() + end_, static_cast<std::streamsize>(packed_.size() - end_));
    end_ += static_cast<size_t>(source_->gcount());
  }
  return end_ - begin_;
}

bool GzipStream::starts_member() {
  return fill(2) >= 2 && packed_[begin_] == '\x1f' && packed_[begin_ + 1] == '\x8b';
}

size_t GzipStream::read(char* out, size_t size) {
  if (inflate_) return unpack(out, size);
  const size_t count = std::min(size, fill(1));
  std::memcpy(out, packed_.data() + begin_, count);
  begin_ += count;
  return count;
}

size_t GzipStream::unpack(char* out, size_t size) {
  z_stream& stream = inflate_->stream;
  stream.next_out = reinterpret_cast<Bytef*>(out);
  stream.avail_out = static_cast<uInt>(size);
  while (stream.avail_out > 0) {
    if (!inflate_->within) {
      if (fill(1) == 0) break;
      if (!starts_member()) throw Damaged{"there is extra data after the compressed data"};
      inflateReset(&stream);
      inflate_->within = true;
    }
    const size_t available = fill(1);
    if (available == 0) throw Damaged{"it is truncated"};
    stream.next_in = reinterpret_cast<Bytef*>(packed_.data() + begin_);
    stream.avail_in = static_cast<uInt>(available);
    const int status = inflate(&stream, Z_NO_FLUSH);
    begin_ = end_ - stream.avail_in;
    if (status == Z_STREAM_END) {
      inflate_->within = false;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      throw Damaged{stream.msg ? stream.msg : "it cannot be unpacked"};
    }
  }
  return size - stream.avail_out;
}

}  // namespace aimle::experiments::data
