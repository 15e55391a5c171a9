// The runs below a folder, read from their config.json and metrics.jsonl.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/engine/options.h"

namespace aimle::experiments {

struct RunRecord {
  std::filesystem::path folder;
  Json config;
  std::vector<Json> metrics;
};

struct Listing {
  std::vector<RunRecord> runs;
  std::vector<std::filesystem::path> unreadable;  // folders whose files are damaged

  /// "2 folders have a config.json or metrics.jsonl that could not be read: a, b"; empty if none.
  std::string complaint() const;
};

/// Every folder with a config.json of a run, including `folder` itself, ordered by name. A
/// config.json without an "experiment" belongs to another program and is skipped.
Listing find_runs(const std::filesystem::path& folder);

/// One line per run: folder, experiment, method, seed, epochs, its metric at the best epoch, the
/// test loss there, alpha at the end, time.
std::string to_table(const std::vector<RunRecord>& runs);

}  // namespace aimle::experiments
