#include "experiments/process/bytes_in_json.h"

#include <cstdint>

#include "aimle/base/shown_value.h"

namespace aimle::experiments {
namespace {

int hex_digit(char c) {
  if ('0' <= c && c <= '9') return c - '0';
  return 'a' <= c && c <= 'f' ? c - 'a' + 10 : -1;
}

/// \xHH at the start of the text: the byte, else -1.
int escaped_byte(std::string_view text) {
  if (text.size() < 4 || !text.starts_with("\\x")) return -1;
  const int high = hex_digit(text[2]), low = hex_digit(text[3]);
  return high < 0 || low < 0 ? -1 : 16 * high + low;
}

/// Bytes of the well-formed UTF-8 character at the start of the text; 0 if there is none.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool surrogate = first == 0xED && byte(1) >= 0xA0;
  const bool beyond = first == 0xF4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

}  // namespace

std::string to_json_text(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const size_t length = character_length(bytes);
    if (length == 0 || escaped_byte(bytes) >= 0) {
      text += hex_escape(bytes[0]);
      bytes.remove_prefix(1);
    } else {
      text += bytes.substr(0, length);
      bytes.remove_prefix(length);
    }
  }
  return text;
}

std::string from_json_text(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const int byte = escaped_byte(text);
    bytes += byte >= 0 ? static_cast<char>(byte) : text[0];
    text.remove_prefix(byte >= 0 ? 4 : 1);
  }
  return bytes;
}

std::string json_problem(const nlohmann::json::exception& error) {
  if (const auto* parse = dynamic_cast<const nlohmann::json::parse_error*>(&error)) {
    return "it is not valid JSON at byte " + std::to_string(parse->byte);
  }
  return "an entry is missing or has another type";
}

}  // namespace aimle::experiments
