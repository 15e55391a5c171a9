// Inputs made from others: bits, bytes and words changed, pieces cut, repeated and exchanged.
#pragma once

#include <random>
#include <string>
#include <vector>

namespace aimle::fuzz {

using Random = std::mt19937_64;

inline constexpr size_t kMaxLength = 4096;

/// One to eight random edits; pieces come from `pool`, which is not empty, and from `words`.
std::string mutated(std::string bytes, const std::vector<std::string>& pool,
                    const std::vector<std::string>& words, Random& random);

}  // namespace aimle::fuzz
