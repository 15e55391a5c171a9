// Text and errors of JSON files.
//
// JSON is UTF-8, but the name of a folder may be any bytes. In the files of this program a byte
// that is not UTF-8 is written as \xHH, in text that a reader sees as such ("data/caf\xe9"), and a
// backslash before what would look like such a byte as \x5c. Other text is written as it is.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace aimle::experiments {

/// Any bytes as UTF-8, as described above; `from_json_text(to_json_text(bytes)) == bytes`.
std::string to_json_text(std::string_view bytes);
std::string from_json_text(std::string_view text);

/// What is wrong with a JSON file: "it is not valid JSON at byte 17".
std::string json_problem(const nlohmann::json::exception& error);

}  // namespace aimle::experiments
