#include "experiments/data/json_text.h"

#include <algorithm>

namespace aimle::experiments::data {

void check_json_depth(const std::filesystem::path& path, std::string_view text,
                      int64_t first_line) {
  int depth = 0;
  bool within_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (within_string) {
      if (c == '\\') ++i;
      within_string = c != '"';
    } else if (c == '"') {
      within_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxJsonDepth) {
        fail_line(path, line_of(text, i, first_line), "expected JSON nested at most ",
                  kMaxJsonDepth, " deep");
      }
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

int64_t line_of(std::string_view text, size_t at, int64_t first_line) {
  return first_line + std::ranges::count(text.substr(0, at), '\n');
}

template <class Json>
JsonLines<Json> parse_json_lines(const std::filesystem::path& path, std::string_view text) {
  JsonLines<Json> result;
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const bool is_last = end == std::string_view::npos;
    text.remove_prefix(is_last ? text.size() : end + 1);
    if (is_last && !nlohmann::json::accept(line)) {
      result.is_torn = true;
      break;
    }
    result.lines.push_back(parse_json<Json>(path, line, number));
    if (!result.lines.back().is_object()) fail_line(path, number, "expected a JSON object");
  }
  return result;
}

template JsonLines<nlohmann::json> parse_json_lines(const std::filesystem::path&, std::string_view);
template JsonLines<nlohmann::ordered_json> parse_json_lines(const std::filesystem::path&,
                                                            std::string_view);

}  // namespace aimle::experiments::data
