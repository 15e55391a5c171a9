// Words in a row: "argmax, topk, grid_path".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace aimle {

inline std::string join(const std::vector<std::string>& words, std::string_view between = ", ") {
  std::string result;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) result += between;
    result += words[i];
  }
  return result;
}

}  // namespace aimle
