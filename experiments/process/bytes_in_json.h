// Text and errors of JSON files.
//
// JSON is UTF-8, but a folder name may be arbitrary bytes. In the files of this program a byte that
// is not UTF-8 is written as \xHH, visible to a reader ("data/caf\xe9"), and a backslash before
// what would look like such a byte as \x5c. Other text is unchanged.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace aimle::experiments {

/// Any bytes as UTF-8, as described above; `from_json_text(to_json_text(bytes)) == bytes`.
std::string to_json_text(std::string_view bytes);
std::string from_json_text(std::string_view text);

/// The error of a JSON file: "it is not valid JSON at byte 17".
std::string json_problem(const nlohmann::json::exception& error);

}  // namespace aimle::experiments
