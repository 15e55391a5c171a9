#include "experiments/data/npy.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "aimle/base/join.h"
#include "experiments/data/file_error.h"
#include "experiments/data/input_file.h"
#include "experiments/data/npy_header.h"
#include "experiments/data/zip.h"
#include "experiments/process/atomic_file.h"

namespace aimle::experiments::data {
namespace {

using Path = std::filesystem::path;
constexpr size_t kChunkBytes = size_t{1} << 18;

double half_to_double(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const double fraction = bits & 1023;
  double size = 0;
  if (exponent == 31) {
    size = fraction == 0 ? std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    size = std::ldexp(fraction, -24);
  } else {
    size = std::ldexp(fraction + 1024, exponent - 25);
  }
  return bits >> 15 ? -size : size;
}

template <class T>
bool holds(double value) {
  if constexpr (std::is_floating_point_v<T>) {
    return !std::isfinite(value) || std::fabs(value) <= std::numeric_limits<T>::max();
  } else {
    return value >= std::numeric_limits<T>::min() && value <= std::numeric_limits<T>::max() &&
           value == std::floor(value);
  }
}

template <class From, class To>
void convert(const Path& path, const char* bytes, size_t first, size_t count, To* out) {
  for (size_t i = 0; i < count; ++i) {
    std::conditional_t<std::is_same_v<From, Half>, uint16_t, From> stored;
    std::memcpy(&stored, bytes + i * sizeof stored, sizeof stored);
    if constexpr (std::is_same_v<From, To>) {
      out[i] = stored;
    } else {
      double value = 0;
      if constexpr (std::is_same_v<From, Half>) {
        value = half_to_double(stored);
      } else {
        value = static_cast<double>(stored);
      }
      if (!holds<To>(value)) {
        fail(path, "expected ",
             std::is_floating_point_v<To> ? "a number that fits" : "a whole number in [0, 255]",
             " but entry ", first + i, " is ", value);
      }
      out[i] = static_cast<To>(value);
    }
  }
}

/// From Fortran order (first index fastest) to C order.
template <class T>
std::vector<T> to_c_order(std::span<const int64_t> shape, const std::vector<T>& values) {
  std::vector<size_t> strides;
  size_t stride = 1;
  for (const int64_t extent : shape) {
    strides.push_back(stride);
    stride *= static_cast<size_t>(extent);
  }
  std::vector<T> out(values.size());
  std::vector<int64_t> index(shape.size());
  size_t at = 0;
  for (T& value : out) {
    value = values[at];
    for (size_t d = shape.size(); d-- > 0;) {
      at += strides[d];
      if (++index[d] < shape[d]) break;
      at -= strides[d] * static_cast<size_t>(shape[d]);
      index[d] = 0;
    }
  }
  return out;
}

/// `read(out, n)` reads the next n bytes of an array of `size` bytes in total.
template <class T, class Read>
Array<T> read_values(const Path& path, size_t size, const Read& read) {
  const NpyHeader header = read_npy_header(path, size, read);
  Array<T> array{.shape = header.shape, .values = {}};
  array.values.resize(header.count);
  visit_type(header.type, [&]<class From>() {
    constexpr size_t width = sizeof(std::conditional_t<std::is_same_v<From, Half>, uint16_t, From>);
    if constexpr (std::is_same_v<From, T>) {
      read(reinterpret_cast<char*>(array.values.data()), header.count * width);
    } else {
      std::vector<char> chunk(kChunkBytes);
      for (size_t done = 0; done < header.count;) {
        const size_t count = std::min(kChunkBytes / width, header.count - done);
        read(chunk.data(), count * width);
        convert<From>(path, chunk.data(), done, count, array.values.data() + done);
        done += count;
      }
    }
  });
  if (header.fortran_order) array.values = to_c_order(header.shape, array.values);
  return array;
}

template <class T>
Array<T> parse_member(const ZipArchive& archive, const std::string& member) {
  const std::vector<char> bytes = archive.read(member);
  return parse_npy<T>(archive.path_of(member), {bytes.data(), bytes.size()});
}

}  // namespace

std::string to_string(std::span<const int64_t> shape) {
  std::string text = "[";
  text += join(shape, ", ", [](int64_t size) { return std::to_string(size); });
  return text + "]";
}

template <class T>
Array<T> read_npy(const Path& path) {
  std::ifstream file = open_input_file(path);
  const size_t size = std::filesystem::file_size(path);
  return read_values<T>(path, size, [&](char* out, size_t count) {
    if (!file.read(out, static_cast<std::streamsize>(count))) {
      fail(path, "is truncated: expected ", count, " more bytes but got ", file.gcount());
    }
  });
}

template <class T>
Array<T> parse_npy(const Path& path, std::string_view bytes) {
  return read_values<T>(path, bytes.size(), [&](char* out, size_t count) {
    if (count > 0) std::memcpy(out, bytes.data(), count);
    bytes.remove_prefix(count);
  });
}

template <class T>
Array<T> read_npy_parts(const Path& name) {
  const auto with = [&](const std::string& ending) {
    Path path = name;
    path += ending + ".npy";
    return path;
  };
  if (std::filesystem::exists(with(""))) return read_npy<T>(with(""));
  Path archive = name;
  archive += ".npz";
  if (std::filesystem::exists(archive)) {
    return read_npz_only<T>(archive, name.filename().string());
  }
  if (!std::filesystem::exists(with("_part0"))) {
    fail(with(""), "does not exist, nor does ", with("_part0").filename().string());
  }
  Array<T> joined;
  for (int part = 0; std::filesystem::exists(with("_part" + std::to_string(part))); ++part) {
    const Path path = with("_part" + std::to_string(part));
    Array<T> next = read_npy<T>(path);
    if (part == 0) {
      joined = std::move(next);
      if (joined.shape.empty()) fail(path, "expected an array but got a single number");
      continue;
    }
    std::vector<int64_t> expected = joined.shape;
    if (!next.shape.empty()) expected[0] = next.shape[0];
    if (next.shape != expected) {
      fail(path, "expected a shape like ", to_string(expected), ", as in part 0, but got ",
           to_string(next.shape));
    }
    joined.shape[0] += next.shape[0];
    joined.values.insert(joined.values.end(), next.values.begin(), next.values.end());
  }
  return joined;
}

template <class T>
Array<T> read_npz(const Path& archive, const std::string& name) {
  return parse_member<T>(ZipArchive(archive), name + ".npy");
}

template <class T>
Array<T> read_npz_only(const Path& archive, const std::string& name) {
  const ZipArchive zip(archive);
  return parse_member<T>(zip, zip.names().size() == 1 ? zip.names()[0] : name + ".npy");
}

template <class T>
void write_npy(const Path& path, std::span<const int64_t> shape, std::span<const T> values) {
  size_t count = 1;
  for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
  if (count != values.size()) {
    fail(path, "expected ", count, " values for shape ", to_string(shape), " but got ",
         values.size());
  }
  const std::string header = npy_header_text<T>(shape);
  write_atomically(path, [&](std::ostream& out) {
    out.write(header.data(), static_cast<std::streamsize>(header.size()));
    out.write(reinterpret_cast<const char*>(values.data()),
              static_cast<std::streamsize>(values.size_bytes()));
  });
}

#define AIMLE_INSTANTIATE_NPY(T)                                    \
  template Array<T> read_npy(const Path&);                          \
  template Array<T> parse_npy(const Path&, std::string_view);       \
  template Array<T> read_npy_parts(const Path&);                    \
  template Array<T> read_npz(const Path&, const std::string&);      \
  template Array<T> read_npz_only(const Path&, const std::string&); \
  template void write_npy(const Path&, std::span<const int64_t>, std::span<const T>);

AIMLE_INSTANTIATE_NPY(uint8_t)
AIMLE_INSTANTIATE_NPY(float)
AIMLE_INSTANTIATE_NPY(double)

}  // namespace aimle::experiments::data
