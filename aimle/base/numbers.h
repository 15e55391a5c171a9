// Numbers from and to text, the same wherever a user writes one: an option, a setting, a field.
#pragma once

#include <charconv>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace aimle {

/// Parses the whole text as a number; none if it is empty, has spaces or other characters, or is
/// out of range.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

/// The shortest text that parse_number reads back as the same number.
template <class T>
std::string exact_number(T value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

/// 0.5 -> "0.5", 1e12 -> "1e+12"
inline std::string spell_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

}  // namespace aimle
