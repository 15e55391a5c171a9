#include "experiments/run/read_array.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "aimle/base/numbers.h"
#include "experiments/run/failure.h"

namespace aimle::experiments {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostValues = 100'000'000;

[[noreturn]] void fail(const fs::path& path, const std::string& why) {
  throw Failure("cannot read " + path.string() + ": " + why);
}

std::string content_of(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) fail(path, "there is no such file");
  if (!fs::is_regular_file(path, error)) fail(path, "it is not a file");
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path, "it cannot be opened");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// The text after `'name':` in the header of a .npy.
std::string_view entry(std::string_view header, std::string_view name, const fs::path& path) {
  const size_t at = header.find(name);
  if (at == std::string_view::npos) fail(path, "its header has no " + std::string(name));
  return header.substr(at + name.size());
}

std::vector<int64_t> shape_of(std::string_view header, const fs::path& path) {
  std::string_view text = entry(header, "'shape':", path);
  const size_t open = text.find('(');
  const size_t close = text.find(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    fail(path, "its header has no shape");
  }
  text = text.substr(open + 1, close - open - 1);
  std::vector<int64_t> shape;
  while (!text.empty()) {
    if (text.front() == ' ' || text.front() == ',') {
      text.remove_prefix(1);
      continue;
    }
    int64_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || size < 0) fail(path, "its shape is not a list of sizes");
    shape.push_back(size);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
  return shape;
}

template <class T>
std::vector<double> values_of(std::string_view bytes) {
  std::vector<double> values(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(value);
  }
  return values;
}

Array read_npy(std::string_view content, const fs::path& path) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (!content.starts_with(kMagic) || content.size() < 12) fail(path, "it is not a .npy file");
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(content[i])); };
  const size_t start = byte(6) == 1 ? 10 : 12;
  const size_t length = byte(6) == 1 ? byte(8) | byte(9) << 8
                                     : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  if (length > content.size() - start) fail(path, "it ends within its header");
  const std::string_view header = content.substr(start, length);
  const std::string_view bytes = content.substr(start + length);

  if (entry(header, "'fortran_order':", path).substr(0, 6).find("True") != std::string_view::npos) {
    fail(path, "it is in Fortran order: save numpy.ascontiguousarray(...)");
  }
  const std::string_view type = entry(header, "'descr':", path).substr(0, 8);
  const bool is_double = type.find("<f8") != std::string_view::npos;
  if (!is_double && type.find("<f4") == std::string_view::npos) {
    fail(path, "expected float32 or float64 numbers");
  }
  const std::vector<int64_t> shape = shape_of(header, path);
  if (shape.empty() || shape.size() > 2) fail(path, "expected one or two dimensions");
  Array array{.rows = shape.size() == 2 ? shape[0] : 1, .columns = shape.back()};
  if (array.rows > kMostValues || array.columns > kMostValues ||
      array.rows * array.columns > kMostValues) {
    fail(path, "it has more than 100 million numbers");
  }
  const auto expected = static_cast<size_t>(array.rows * array.columns) * (is_double ? 8 : 4);
  if (bytes.size() != expected) {
    fail(path, "expected " + std::to_string(expected) + " bytes of numbers but it has " +
                   std::to_string(bytes.size()));
  }
  array.values = is_double ? values_of<double>(bytes) : values_of<float>(bytes);
  return array;
}

Array read_csv(std::string_view content, const fs::path& path) {
  Array array{.rows = 0};
  for (int64_t number = 1; !content.empty(); ++number) {
    const size_t end = std::min(content.find('\n'), content.size());
    std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    int64_t columns = 0;
    for (bool more = true; more; ++columns) {
      const size_t comma = line.find(',');
      more = comma != std::string_view::npos;
      std::string_view field = line.substr(0, comma);
      line.remove_prefix(more ? comma + 1 : line.size());
      const size_t first = std::min(field.find_first_not_of(" \t\r+"), field.size());
      field = field.substr(first, field.find_last_not_of(" \t\r") + 1 - first);
      const auto value = parse_number<double>(field);
      if (!value) {
        fail(path, "line " + std::to_string(number) + " has '" + std::string(field.substr(0, 40)) +
                       "' where a number is expected");
      }
      array.values.push_back(*value);
    }
    if (array.rows > 0 && columns != array.columns) {
      fail(path, "line " + std::to_string(number) + " has " + std::to_string(columns) +
                     " numbers, those before " + std::to_string(array.columns));
    }
    array.columns = columns;
    ++array.rows;
  }
  return array;
}

}  // namespace

Array read_array(const fs::path& path) {
  const std::string extension = path.extension().string();
  if (extension != ".npy" && extension != ".csv") {
    fail(path, "expected a file that ends in .npy or .csv");
  }
  const std::string content = content_of(path);
  Array array = extension == ".npy" ? read_npy(content, path) : read_csv(content, path);
  if (array.values.empty()) fail(path, "it holds no numbers");
  for (const double value : array.values) {
    if (!std::isfinite(value)) fail(path, "it holds a number that is not finite");
  }
  return array;
}

}  // namespace aimle::experiments
