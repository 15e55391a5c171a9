#include "experiments/process/digest.h"

#include <bit>
#include <cstdio>
#include <cstring>

namespace aimle::experiments {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87, kPrime2 = 0xC2B2AE3D27D4EB4F,
                   kPrime3 = 0x165667B19E3779F9, kPrime4 = 0x85EBCA77C2B2AE63,
                   kPrime5 = 0x27D4EB2F165667C5;

/// The next number of the input, which is shortened by it.
template <class T>
uint64_t take(std::string_view& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}

uint64_t mix(uint64_t lane, uint64_t word) {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

/// Four lanes of eight bytes each, folded into one number.
uint64_t digest_stripes(std::string_view& bytes) {
  uint64_t lanes[4] = {kPrime1 + kPrime2, kPrime2, 0, 0 - kPrime1};
  while (bytes.size() >= 32) {
    for (uint64_t& lane : lanes) lane = mix(lane, take<uint64_t>(bytes));
  }
  uint64_t hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
                  std::rotl(lanes[3], 18);
  for (const uint64_t lane : lanes) hash = (hash ^ mix(0, lane)) * kPrime1 + kPrime4;
  return hash;
}

}  // namespace

uint64_t xxh64(std::string_view bytes) {
  const uint64_t size = bytes.size();
  uint64_t hash = size + (size >= 32 ? digest_stripes(bytes) : kPrime5);
  while (bytes.size() >= 8) {
    hash = std::rotl(hash ^ mix(0, take<uint64_t>(bytes)), 27) * kPrime1 + kPrime4;
  }
  if (bytes.size() >= 4) {
    hash = std::rotl(hash ^ (take<uint32_t>(bytes) * kPrime1), 23) * kPrime2 + kPrime3;
  }
  while (!bytes.empty()) {
    hash = std::rotl(hash ^ (take<uint8_t>(bytes) * kPrime5), 11) * kPrime1;
  }
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

std::string xxh64_hex(std::string_view bytes) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(xxh64(bytes)));
  return text;
}

}  // namespace aimle::experiments
