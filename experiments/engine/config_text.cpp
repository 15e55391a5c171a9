#include "experiments/engine/config_text.h"

#include <algorithm>

#include "experiments/data/json_text.h"
#include "experiments/process/failure.h"

namespace aimle::experiments {

std::optional<Json> parse_config(const std::filesystem::path& path, std::string_view text) {
  Json config = data::parse_json<Json>(path, text);
  if (!config.is_object() || !config.contains("experiment")) return {};
  const auto is_texts = [](const Json& list) {
    return list.is_array() &&
           std::all_of(list.begin(), list.end(), [](const Json& one) { return one.is_string(); });
  };
  if (!config["experiment"].is_string() || !config.contains("settings") ||
      !config["settings"].is_object() || !config.value("select", Json("")).is_string() ||
      !is_texts(config.value("maximised", Json::array()))) {
    throw Failure(path.string() + " is not the config.json of a run");
  }
  return config;
}

}  // namespace aimle::experiments
