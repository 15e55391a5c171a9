#include "experiments/data/npy_header.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "experiments/data/file_error.h"
#include "experiments/data/npy.h"

namespace aimle::experiments::data {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeader = 10'000;  // NumPy's own limit
constexpr size_t kMaxDimensions = 32;
constexpr std::array<std::pair<std::string_view, NpyType>, 13> kTypes{{{"|b1", NpyType::kB1},
                                                                       {"|i1", NpyType::kI1},
                                                                       {"|u1", NpyType::kU1},
                                                                       {"<u1", NpyType::kU1},
                                                                       {"<i2", NpyType::kI2},
                                                                       {"<u2", NpyType::kU2},
                                                                       {"<i4", NpyType::kI4},
                                                                       {"<u4", NpyType::kU4},
                                                                       {"<i8", NpyType::kI8},
                                                                       {"<u8", NpyType::kU8},
                                                                       {"<f2", NpyType::kF2},
                                                                       {"<f4", NpyType::kF4},
                                                                       {"<f8", NpyType::kF8}}};

/// Walks through {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class Dictionary {
 public:
  Dictionary(const std::filesystem::path& path, std::string_view text) : path_(path), rest_(text) {}

  NpyHeader parse() {
    NpyHeader header;
    bool has_type = false;
    bool has_order = false;
    bool has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !has_type) {
        header.type = type(quoted());
        has_type = true;
      } else if (key == "fortran_order" && !has_order) {
        header.fortran_order = accept_word("True");
        if (!header.fortran_order && !accept_word("False")) {
          fail(path_, "expected fortran_order False or True but got '", rest_.substr(0, 8), "'");
        }
        has_order = true;
      } else if (key == "shape" && !has_shape) {
        header.shape = shape();
        has_shape = true;
      } else {
        fail(path_, "expected the keys descr, fortran_order and shape once each but got '", key,
             "'");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip();
    if (!rest_.empty()) fail(path_, "expected the header to end after the dictionary");
    if (!has_type || !has_order || !has_shape) {
      fail(path_, "expected the keys descr, fortran_order and shape in the header");
    }
    return header;
  }

 private:
  void skip() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  bool accept(char c) {
    skip();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool accept_word(std::string_view word) {
    skip();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void expect(char c) {
    if (!accept(c)) {
      fail(path_, "expected '", c, "' in the header but got '", rest_.substr(0, 12), "'");
    }
  }
  std::string_view quoted() {
    const char quote = accept('"') ? '"' : (expect('\''), '\'');
    const size_t end = rest_.find(quote);
    if (end == std::string_view::npos) fail(path_, "a quoted word of the header does not end");
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return word;
  }
  NpyType type(std::string_view descr) const {
    for (const auto& [name, type] : kTypes) {
      if (name == descr) return type;
    }
    fail(path_, "expected little-endian numbers of 1 to 8 bytes but got descr '", descr,
         "': save it with .astype(numpy.float32)");
  }
  int64_t number() {
    skip();
    int64_t value = 0;
    size_t digits = 0;
    for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; ++digits) {
      if (digits == 18) fail(path_, "an extent of the shape has more than 18 digits");
      value = value * 10 + (rest_[digits] - '0');
    }
    if (digits == 0)
      fail(path_, "expected a number in the shape but got '", rest_.substr(0, 12), "'");
    rest_.remove_prefix(digits);
    return value;
  }
  std::vector<int64_t> shape() {
    std::vector<int64_t> extents;
    expect('(');
    while (!accept(')')) {
      if (extents.size() == kMaxDimensions) fail(path_, "expected at most 32 dimensions");
      extents.push_back(number());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return extents;
  }

  const std::filesystem::path& path_;
  std::string_view rest_;
};

}  // namespace

size_t width(NpyType type) {
  size_t bytes = 0;
  visit_type(type, [&]<class T>() { bytes = std::is_same_v<T, Half> ? 2 : sizeof(T); });
  return bytes;
}

NpyHeader read_npy_header(const std::filesystem::path& path, size_t size,
                          FunctionRef<void(char*, size_t)> read) {
  std::array<char, 8> start{};
  size_t at = start.size() + 2;
  if (size < at) fail(path, "expected a .npy file but it has only ", size, " bytes");
  read(start.data(), start.size());
  if (std::string_view(start.data(), kMagic.size()) != kMagic) {
    fail(path, "expected a .npy file but it does not start with \\x93NUMPY");
  }
  const int version = static_cast<unsigned char>(start[6]);
  if (version < 1 || version > 3) fail(path, "expected .npy version 1 to 3 but got ", version);
  const size_t length_bytes = version == 1 ? 2 : 4;
  at = start.size() + length_bytes;
  if (size < at) fail(path, "is truncated inside the header");
  std::array<unsigned char, 4> little{};
  read(reinterpret_cast<char*>(little.data()), length_bytes);
  const size_t length =
      little[0] + (size_t{little[1]} << 8) + (size_t{little[2]} << 16) + (size_t{little[3]} << 24);
  if (length > kMaxHeader) {
    fail(path, "expected a header of at most ", kMaxHeader, " bytes but got ", length);
  }
  if (size - at < length) fail(path, "is truncated inside the header");
  std::string text(length, '\0');
  read(text.data(), length);
  at += length;

  NpyHeader header = Dictionary(path, text).parse();
  const size_t bytes = size - at;
  const size_t wide = width(header.type);
  // An empty array stays empty whatever its other extents are.
  header.count = std::ranges::find(header.shape, 0) == header.shape.end() ? 1 : 0;
  for (const int64_t extent : header.shape) {
    if (header.count == 0) break;
    if (static_cast<size_t>(extent) > bytes / wide / header.count) {
      fail(path, "is truncated: shape ", to_string(header.shape), " at ", wide,
           " bytes per value needs more than the ", bytes, " bytes after the header");
    }
    header.count *= static_cast<size_t>(extent);
  }
  if (header.count * wide != bytes) {
    fail(path, "expected ", header.count * wide, " bytes for shape ", to_string(header.shape),
         " but ", bytes, " come after the header");
  }
  return header;
}

template <class T>
std::string npy_header_text(std::span<const int64_t> shape) {
  const std::string descr = std::is_same_v<T, uint8_t> ? "|u1" : sizeof(T) == 4 ? "<f4" : "<f8";
  std::string text = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
  for (const int64_t extent : shape) text += std::to_string(extent) + ", ";
  text += "), }";
  constexpr size_t kStart = 10;
  text.append(63 - (kStart + text.size()) % 64, ' ');
  text += '\n';
  std::string start(kMagic);
  start +=
      {'\x01', '\x00', static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8)};
  return start + text;
}

template std::string npy_header_text<uint8_t>(std::span<const int64_t>);
template std::string npy_header_text<float>(std::span<const int64_t>);
template std::string npy_header_text<double>(std::span<const int64_t>);

}  // namespace aimle::experiments::data
