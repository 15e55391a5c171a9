// A word of a command line that a message suggests.
#pragma once

#include <string>
#include <string_view>

namespace aimle::experiments {

/// The word as it is typed in a shell: in single quotes if it has spaces or other characters that
/// a shell does not pass on as they are.
inline std::string shell_word(std::string_view word) {
  constexpr std::string_view kSafe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%^";
  const auto is_safe = [&](char c) {
    return kSafe.find(c) != std::string_view::npos || static_cast<unsigned char>(c) >= 0x80;
  };
  bool plain = !word.empty();
  for (const char c : word) plain = plain && is_safe(c);
  if (plain) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace aimle::experiments
