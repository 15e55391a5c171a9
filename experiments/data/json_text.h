// JSON from files: one value, or one object per line.
//
// Errors are a FileError that names the file and the line. Values are nested at most kMaxJsonDepth
// deep, so that no file can overflow the stack of functions that copy or print them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "experiments/data/file_error.h"

namespace aimle::experiments::data {

inline constexpr int kMaxJsonDepth = 64;

/// Rejects text that is nested deeper. `first_line` is the number of its first line in the file.
void check_json_depth(const std::filesystem::path& path, std::string_view text, int64_t first_line);

/// The line, counted from `first_line`, that contains the byte at `at`.
int64_t line_of(std::string_view text, size_t at, int64_t first_line);

/// Parses the text. `Json` is nlohmann::json or nlohmann::ordered_json.
template <class Json = nlohmann::json>
Json parse_json(const std::filesystem::path& path, std::string_view text, int64_t first_line = 1) {
  check_json_depth(path, text, first_line);
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const size_t at = error.byte > 0 ? error.byte - 1 : 0;
    fail_line(path, line_of(text, at, first_line),
              at + 1 >= text.size() ? "the JSON text is truncated" : "expected JSON");
  } catch (const nlohmann::json::out_of_range&) {
    fail_line(path, first_line, "a number of the JSON text is out of range");
  }
}

template <class Json>
struct JsonLines {
  std::vector<Json> lines;
  /// The last line has no newline and is not valid: the rest of an incomplete copy. It is not among
  /// the lines.
  bool is_torn = false;
};

/// An object per line.
template <class Json = nlohmann::json>
JsonLines<Json> parse_json_lines(const std::filesystem::path& path, std::string_view text);

}  // namespace aimle::experiments::data
