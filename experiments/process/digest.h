// XXH64, a 64-bit checksum: https://github.com/Cyan4973/xxHash. It detects accidents, such as a bit
// flipped on a disk, not forgeries.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace aimle::experiments {

/// With seed 0.
uint64_t xxh64(std::string_view bytes);

/// The same as 16 hexadecimal digits.
std::string xxh64_hex(std::string_view bytes);

}  // namespace aimle::experiments
