// Files in the formats that are fuzzed, small and well-formed.
#pragma once

#include <string>
#include <vector>

namespace aimle::fuzz {

std::vector<std::string> sample_idx();
std::vector<std::string> sample_texts();
std::vector<std::string> sample_npy();
std::vector<std::string> sample_npz();

}  // namespace aimle::fuzz
