// A value for an error message: on one line and limited in length.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace aimle {

/// A byte as \x1b.
inline std::string hex_escape(char c) {
  char text[8];
  std::snprintf(text, sizeof text, "\\x%02x", static_cast<unsigned char>(c));
  return text;
}

/// The value itself up to 60 bytes, otherwise its beginning and length: "9999… (5000 characters)".
/// Control characters are written as \n or \x1b.
inline std::string shown_value(std::string_view value) {
  constexpr size_t kMost = 60;
  size_t end = value.size();
  if (end > kMost) {
    end = kMost;
    const auto continues = [&](size_t i) {
      return (static_cast<unsigned char>(value[i]) & 0xC0) == 0x80;
    };
    while (end > kMost - 4 && continues(end)) --end;  // not inside a character of UTF-8
  }
  std::string text;
  for (const char c : value.substr(0, end)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      text += "\\n";
    } else if (byte < 0x20 || byte == 0x7F) {
      text += hex_escape(c);
    } else {
      text += c;
    }
  }
  if (end < value.size()) text += "… (" + std::to_string(value.size()) + " characters)";
  return text;
}

}  // namespace aimle
