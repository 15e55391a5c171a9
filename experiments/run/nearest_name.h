// "unknown estimator 'aimel': did you mean 'aimle'?"
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace aimle::experiments {

/// The known name that takes the fewest insertions, deletions, replacements and swaps of neighbours
/// to reach; empty if none is near (at most a third of the letters, and at least two).
std::string nearest_name(std::string_view given, std::span<const std::string> known);

/// "unknown estimator 'aimel': did you mean 'aimle'? Known are aimle, imle, ..."
std::string unknown_name(std::string_view kind, std::string_view given,
                         std::span<const std::string> known);

}  // namespace aimle::experiments
