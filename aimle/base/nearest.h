// The known name that a mistyped one probably meant.
//
//   AIMLE_CHECK(is_known(given), "expected one of ... but got ", given, did_you_mean(given,
//   known));
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace aimle {

/// How many insertions, deletions, substitutions and swaps of neighbours turn `a` into `b` (the
/// restricted edit distance of Damerau, 1964). O(|a| |b|) time.
int edit_distance(std::string_view a, std::string_view b);

/// The nearest of `known`, the first of them in a tie; empty if more than half of the letters would
/// have to change. Case does not matter, and '-' is '_'.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

/// "; did you mean 'aimle'?", or empty if no known name is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

}  // namespace aimle
