// The header of a .npy file, for npy.h.
#pragma once

#include <bit>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "aimle/base/function_ref.h"

namespace aimle::experiments::data {

static_assert(std::endian::native == std::endian::little,
              "values are read as they lie in the file");

struct Half {};

enum class NpyType { kB1, kI1, kU1, kI2, kU2, kI4, kU4, kI8, kU8, kF2, kF4, kF8 };

struct NpyHeader {
  NpyType type = NpyType::kF8;
  bool fortran_order = false;
  std::vector<int64_t> shape;
  size_t count = 0;
};

/// Reads up to the first value, and checks that `size`, the size of the whole file, fits the shape.
NpyHeader read_npy_header(const std::filesystem::path& path, size_t size,
                          FunctionRef<void(char*, size_t)> read);

/// Magic, version and dictionary, padded to a multiple of 64 bytes, as NumPy writes them.
template <class T>
std::string npy_header_text(std::span<const int64_t> shape);

size_t width(NpyType type);

/// Calls `f.operator()<T>()` with the type of the stored values.
template <class F>
void visit_type(NpyType type, F&& f) {
  switch (type) {
    case NpyType::kB1:
    case NpyType::kU1:
      return f.template operator()<uint8_t>();
    case NpyType::kI1:
      return f.template operator()<int8_t>();
    case NpyType::kI2:
      return f.template operator()<int16_t>();
    case NpyType::kU2:
      return f.template operator()<uint16_t>();
    case NpyType::kI4:
      return f.template operator()<int32_t>();
    case NpyType::kU4:
      return f.template operator()<uint32_t>();
    case NpyType::kI8:
      return f.template operator()<int64_t>();
    case NpyType::kU8:
      return f.template operator()<uint64_t>();
    case NpyType::kF2:
      return f.template operator()<Half>();
    case NpyType::kF4:
      return f.template operator()<float>();
    case NpyType::kF8:
      return f.template operator()<double>();
  }
}

}  // namespace aimle::experiments::data
