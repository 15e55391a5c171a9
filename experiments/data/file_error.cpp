#include "experiments/data/file_error.h"

#include "aimle/base/shown_value.h"

namespace aimle::experiments::data {

std::string one_line(const std::string& text) {
  constexpr size_t kMostBytes = 400;
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 32 || byte == 127) {
      line += hex_escape(c);
    } else {
      line += c;
    }
    // Does not cut a UTF-8 character: continuation bytes start with 10.
    if (line.size() >= kMostBytes && (byte & 0xc0) != 0x80) {
      line.resize(kMostBytes - 4);
      while (!line.empty() && (static_cast<unsigned char>(line.back()) & 0xc0) == 0x80) {
        line.pop_back();
      }
      if (!line.empty() && static_cast<unsigned char>(line.back()) >= 0xc0) line.pop_back();
      return line + " ...";
    }
  }
  return line;
}

}  // namespace aimle::experiments::data
