// IDX files, plain or gzipped: the format of MNIST and Fashion-MNIST.
//
//   0x00 0x00 TYPE DIMENSIONS, then each size as 32 bits big-endian, then the values, row-major.
//
// Only unsigned bytes (TYPE 0x08) are read. Any error is a Failure that names the file and what was
// found: wrong magic number, sizes that do not fit the length, truncated or corrupted compression,
// bytes after the end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace aimle::experiments {

struct Idx {
  std::vector<int64_t> shape;
  std::vector<uint8_t> values;
};

/// The maximum number of values in a file: a wrong header cannot exhaust the memory.
inline constexpr int64_t kIdxLimit = int64_t{1} << 30;

Idx read_idx(const std::filesystem::path& file, int64_t limit = kIdxLimit);

/// The same from bytes in memory; `name` is for messages.
Idx parse_idx(std::span<const uint8_t> bytes, const std::string& name, int64_t limit = kIdxLimit);

/// The bytes of an IDX file.
std::string encode_idx(const Idx& idx);

}  // namespace aimle::experiments
