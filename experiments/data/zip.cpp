#include "experiments/data/zip.h"

#include <zlib.h>

#include <cstdint>
#include <fstream>
#include <string_view>

#include "experiments/data/file_error.h"

namespace aimle::experiments::data {
namespace {

constexpr uint32_t kEndOfDirectory = 0x06054b50, kDirectoryEntry = 0x02014b50, kMember = 0x04034b50;
constexpr size_t kEndSize = 22, kEntrySize = 46, kMemberSize = 30, kMaxComment = 65'535;
constexpr uint32_t kZip64 = 0xffffffff;
/// Deflate cannot pack better than about 1032 to 1.
constexpr size_t kMaxRatio = 1032;

class Bytes {
 public:
  Bytes(const std::filesystem::path& path, const std::vector<char>& bytes)
      : path_(path), bytes_(bytes) {}

  std::string_view view(size_t at, size_t length) const {
    if (at > bytes_.size() || length > bytes_.size() - at) {
      fail(path_, "breaks off: expected ", length, " bytes at ", at, " but the archive has ",
           bytes_.size());
    }
    return {bytes_.data() + at, length};
  }
  uint32_t number(size_t at, int width) const {
    const std::string_view little = view(at, static_cast<size_t>(width));
    uint32_t value = 0;
    for (int i = width; i-- > 0;) value = value << 8 | static_cast<unsigned char>(little[i]);
    return value;
  }
  size_t size() const { return bytes_.size(); }

 private:
  const std::filesystem::path& path_;
  const std::vector<char>& bytes_;
};

std::vector<char> slurp(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || !std::filesystem::is_regular_file(path)) fail(path, "cannot open, or not a file");
  std::vector<char> bytes(std::filesystem::file_size(path));
  if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    fail(path, "cannot be read to its end");
  }
  return bytes;
}

size_t find_end(const std::filesystem::path& path, const Bytes& bytes) {
  if (bytes.size() >= kEndSize) {
    const size_t last = bytes.size() - kEndSize;
    for (size_t back = 0; back <= last && back <= kMaxComment; ++back) {
      if (bytes.number(last - back, 4) == kEndOfDirectory) return last - back;
    }
  }
  fail(path, "expected a ZIP archive but found no directory at its end");
}

std::vector<char> inflate_raw(const std::filesystem::path& path, std::string_view packed,
                              size_t size) {
  if (size / kMaxRatio > packed.size()) {
    fail(path, "expected ", size, " bytes from ", packed.size(), " packed ones: impossible");
  }
  std::vector<char> out(size);
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) fail(path, "zlib does not start");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  char none = 0;  // zlib wants an address even for no bytes
  stream.next_out = reinterpret_cast<Bytef*>(size ? out.data() : &none);
  stream.avail_out = static_cast<uInt>(size);
  const int code = inflate(&stream, Z_FINISH);
  const size_t got = stream.total_out;
  inflateEnd(&stream);
  if (code != Z_STREAM_END || got != size) {
    fail(path, "expected ", size, " bytes from the deflated member but got ", got);
  }
  return out;
}

}  // namespace

std::vector<char> read_zip_member(const std::filesystem::path& archive, const std::string& name) {
  const std::vector<char> content = slurp(archive);
  const Bytes bytes(archive, content);
  const size_t end = find_end(archive, bytes);
  const uint32_t entries = bytes.number(end + 10, 2);
  size_t at = bytes.number(end + 16, 4);
  for (uint32_t entry = 0; entry < entries; ++entry) {
    if (bytes.number(at, 4) != kDirectoryEntry) fail(archive, "the directory is damaged");
    const uint32_t flags = bytes.number(at + 8, 2);
    const uint32_t method = bytes.number(at + 10, 2);
    const uint32_t checksum = bytes.number(at + 16, 4);
    const uint32_t packed_size = bytes.number(at + 20, 4);
    const uint32_t size = bytes.number(at + 24, 4);
    const uint32_t name_length = bytes.number(at + 28, 2);
    const uint32_t skip = bytes.number(at + 30, 2) + bytes.number(at + 32, 2);
    const uint32_t member = bytes.number(at + 42, 4);
    if (bytes.view(at + kEntrySize, name_length) != name) {
      at += kEntrySize + name_length + skip;
      continue;
    }
    const std::filesystem::path path = archive / name;
    if (flags & 1) fail(path, "expected a member without encryption");
    if (packed_size == kZip64 || size == kZip64 || member == kZip64) {
      fail(path, "expected a member below 4 GiB (no ZIP64)");
    }
    if (bytes.number(member, 4) != kMember) fail(path, "the member does not start where it should");
    const size_t data =
        size_t{member} + kMemberSize + bytes.number(member + 26, 2) + bytes.number(member + 28, 2);
    const std::string_view packed = bytes.view(data, packed_size);
    std::vector<char> out;
    if (method == 0) {
      if (packed_size != size) fail(path, "a stored member has two different lengths");
      out.assign(packed.begin(), packed.end());
    } else if (method == 8) {
      out = inflate_raw(path, packed, size);
    } else {
      fail(path, "expected a stored or deflated member but got method ", method);
    }
    if (crc32_z(0, reinterpret_cast<const Bytef*>(out.data()), out.size()) != checksum) {
      fail(path, "the checksum is wrong");
    }
    return out;
  }
  fail(archive, "expected a member ", name, " but there is none among ", entries);
}

}  // namespace aimle::experiments::data
