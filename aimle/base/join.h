// Parts of a text with a separator between them.
//
//   join(names, ", ")                                                    // "aimle, imle, ste"
//   join(presets, "; ", [](const Preset& preset) { return preset.name; })
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace aimle {

/// `text` turns a part into a string; without it the parts are strings themselves.
template <class Parts, class Text = std::identity>
std::string join(const Parts& parts, std::string_view separator = ", ", Text text = {}) {
  std::string result;
  bool first = true;
  for (const auto& part : parts) {
    if (!first) result += separator;
    first = false;
    result += std::invoke(text, part);
  }
  return result;
}

}  // namespace aimle
