#include "experiments/data/zip.h"

#include <zlib.h>

#include <algorithm>
#include <span>

#include "aimle/base/join.h"
#include "experiments/data/file_error.h"
#include "experiments/data/input_file.h"

namespace aimle::experiments::data {
namespace {

constexpr uint32_t kEndOfDirectory = 0x06054b50, kDirectoryEntry = 0x02014b50, kMember = 0x04034b50;
constexpr size_t kEndSize = 22, kEntrySize = 46, kMemberSize = 30, kMaxComment = 65'535;
constexpr uint32_t kZip64 = 0xffffffff;
/// The compression ratio of deflate is at most about 1032.
constexpr size_t kMaxRatio = 1032;
constexpr size_t kMostShown = 100;  // bytes of a name

std::vector<char> inflate_raw(const std::filesystem::path& path, std::string_view packed,
                              size_t size) {
  if (size / kMaxRatio > packed.size()) {
    fail(path, "expected ", size, " bytes from ", packed.size(), " packed ones: impossible");
  }
  std::vector<char> out(size);
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) fail(path, "zlib failed to initialise");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  char none = 0;  // zlib needs an address even for no bytes
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

std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kMostNames = 10;
  if (names.empty()) return "none";
  const auto shown = std::span(names).first(std::min(names.size(), kMostNames));
  std::string text =
      join(shown, ", ", [](const std::string& name) { return name.substr(0, kMostShown); });
  if (names.size() > kMostNames) {
    text += " and " + std::to_string(names.size() - kMostNames) + " more";
  }
  return text;
}

}  // namespace

ZipArchive::ZipArchive(const std::filesystem::path& path)
    : ZipArchive(path, read_input_file(path)) {}

ZipArchive::ZipArchive(std::filesystem::path path, std::string bytes)
    : path_(std::move(path)), bytes_(std::move(bytes)) {
  read_directory();
}

std::string_view ZipArchive::view(size_t at, size_t length) const {
  if (at > bytes_.size() || length > bytes_.size() - at) {
    fail(path_, "is truncated: expected ", length, " bytes at ", at, " but the archive has ",
         bytes_.size());
  }
  return {bytes_.data() + at, length};
}

uint32_t ZipArchive::number(size_t at, int width) const {
  const std::string_view little = view(at, static_cast<size_t>(width));
  uint32_t value = 0;
  for (int i = width; i-- > 0;) value = value << 8 | static_cast<unsigned char>(little[i]);
  return value;
}

size_t ZipArchive::find_end() const {
  if (bytes_.size() >= kEndSize) {
    const size_t last = bytes_.size() - kEndSize;
    for (size_t back = 0; back <= last && back <= kMaxComment; ++back) {
      if (number(last - back, 4) == kEndOfDirectory) return last - back;
    }
  }
  fail(path_, "expected a ZIP archive but found no directory at its end");
}

void ZipArchive::read_directory() {
  const size_t end = find_end();
  const uint32_t count = number(end + 10, 2);
  size_t at = number(end + 16, 4);
  for (uint32_t i = 0; i < count; ++i) {
    if (number(at, 4) != kDirectoryEntry) fail(path_, "the directory is damaged");
    entries_.push_back({.flags = number(at + 8, 2),
                        .method = number(at + 10, 2),
                        .checksum = number(at + 16, 4),
                        .packed_size = number(at + 20, 4),
                        .size = number(at + 24, 4),
                        .start = number(at + 42, 4)});
    const uint32_t name_length = number(at + 28, 2);
    names_.emplace_back(view(at + kEntrySize, name_length));
    at += kEntrySize + name_length + number(at + 30, 2) + number(at + 32, 2);
  }
}

std::filesystem::path ZipArchive::path_of(const std::string& name) const {
  return path_ / one_line(name.substr(0, kMostShown));
}

std::vector<char> ZipArchive::read(const std::string& name) const {
  const auto found = std::ranges::find(names_, name);
  if (found == names_.end()) {
    fail(path_, "expected a member ", name, " but the archive holds ", listed(names_));
  }
  const Entry& entry = entries_[static_cast<size_t>(found - names_.begin())];
  const std::filesystem::path path = path_of(name);
  if (entry.flags & 1) fail(path, "expected a member without encryption");
  if (entry.packed_size == kZip64 || entry.size == kZip64 || entry.start == kZip64) {
    fail(path, "expected a member below 4 GiB (no ZIP64): save it as a .npy file");
  }
  if (number(entry.start, 4) != kMember) fail(path, "the member does not start where it should");
  const size_t data = size_t{entry.start} + kMemberSize + number(size_t{entry.start} + 26, 2) +
                      number(size_t{entry.start} + 28, 2);
  const std::string_view packed = view(data, entry.packed_size);
  std::vector<char> out;
  if (entry.method == 0) {
    if (entry.packed_size != entry.size) fail(path, "a stored member has two different lengths");
    out.assign(packed.begin(), packed.end());
  } else if (entry.method == 8) {
    out = inflate_raw(path, packed, entry.size);
  } else {
    fail(path, "expected a stored or deflated member but got method ", entry.method);
  }
  if (crc32_z(0, reinterpret_cast<const Bytef*>(out.data()), out.size()) != entry.checksum) {
    fail(path, "the checksum is wrong: download or copy the file again");
  }
  return out;
}

}  // namespace aimle::experiments::data
