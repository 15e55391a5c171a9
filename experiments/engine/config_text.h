// The text of a config.json, without Torch.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "experiments/engine/options.h"

namespace aimle::experiments {

/// The config of a run; nothing if it belongs to something else. Throws Failure naming `path` if it
/// is damaged.
std::optional<Json> parse_config(const std::filesystem::path& path, std::string_view text);

}  // namespace aimle::experiments
