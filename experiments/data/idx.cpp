#include "experiments/data/idx.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <sstream>

#include "experiments/data/file_error.h"
#include "experiments/data/gzip_stream.h"
#include "experiments/data/input_file.h"

namespace aimle::experiments {
namespace {

constexpr uint8_t kUnsignedByte = 0x08;
constexpr size_t kMaxDimensions = 4;

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  data::fail(name, "is not an IDX file of bytes: ", why);
}

/// The bytes, unpacked if they are gzipped. Never more than `limit` bytes, whatever they unpack to.
std::vector<uint8_t> unpack(std::span<const uint8_t> bytes, const std::string& name, size_t limit) {
  data::GzipStream stream(
      std::make_unique<std::istringstream>(std::string(bytes.begin(), bytes.end())));
  std::vector<uint8_t> result;
  std::vector<char> piece(size_t{1} << 18);
  try {
    while (const size_t count = stream.read(piece.data(), piece.size())) {
      result.insert(result.end(), piece.data(), piece.data() + count);
      if (result.size() > std::max(limit, bytes.size())) {
        refuse(name, "it unpacks to more than " + std::to_string(limit) + " bytes");
      }
    }
  } catch (const data::GzipStream::Damaged& damaged) {
    refuse(name, std::string("its compressed data is damaged or ends early (") + damaged.why + ")");
  }
  return result;
}

std::string hexadecimal(uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", value);
  return text;
}

uint32_t big_endian(std::span<const uint8_t> bytes, size_t at) {
  return static_cast<uint32_t>(bytes[at]) << 24 | static_cast<uint32_t>(bytes[at + 1]) << 16 |
         static_cast<uint32_t>(bytes[at + 2]) << 8 | bytes[at + 3];
}

}  // namespace

Idx parse_idx(std::span<const uint8_t> given, const std::string& name, int64_t limit) {
  const std::vector<uint8_t> unpacked =
      unpack(given, name, static_cast<size_t>(limit) + 4 + 4 * kMaxDimensions);
  const std::span<const uint8_t> bytes = unpacked;
  if (bytes.size() < 4) refuse(name, "it has only " + std::to_string(bytes.size()) + " bytes");
  const uint32_t magic = big_endian(bytes, 0);
  const size_t dimensions = bytes[3];
  if ((magic >> 8) != kUnsignedByte || dimensions < 1 || dimensions > kMaxDimensions) {
    refuse(name, "it begins with " + hexadecimal(magic) + ", expected 0x00000801 to 0x00000804");
  }
  const size_t header = 4 + 4 * dimensions;
  if (bytes.size() < header) refuse(name, "it ends within its header");

  Idx idx;
  int64_t count = 1;
  for (size_t i = 0; i < dimensions; ++i) {
    const int64_t size = big_endian(bytes, 4 + 4 * i);
    idx.shape.push_back(size);
    if (size > 0 && count > limit / size) {
      refuse(name, "its header declares more than " + std::to_string(limit) + " values");
    }
    count *= size;
  }
  const auto found = static_cast<int64_t>(bytes.size() - header);
  if (found != count) {
    refuse(name, "its header declares " + std::to_string(count) + " values but " +
                     std::to_string(found) + " follow");
  }
  const std::span<const uint8_t> values = bytes.subspan(header);
  idx.values.assign(values.begin(), values.end());
  return idx;
}

Idx read_idx(const std::filesystem::path& path, int64_t limit) {
  const std::string bytes = data::read_input_file(path, static_cast<size_t>(limit) + 1024);
  return parse_idx({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, path.string(),
                   limit);
}

std::string encode_idx(const Idx& idx) {
  std::string bytes = {0, 0, kUnsignedByte, static_cast<char>(idx.shape.size())};
  for (const int64_t size : idx.shape) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(size >> shift));
  }
  bytes.append(reinterpret_cast<const char*>(idx.values.data()), idx.values.size());
  return bytes;
}

}  // namespace aimle::experiments
