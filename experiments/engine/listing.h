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

/// Every folder with a config.json of a run, `folder` itself included, in order of their names.
/// A config.json without an "experiment" is another program's and left out.
Listing find_runs(const std::filesystem::path& folder);

/// One line a run: folder, experiment, method, seed, epochs, the metric it is chosen by at its best
/// epoch, the test loss there, alpha at the end, time.
std::string to_table(const std::vector<RunRecord>& runs);

}  // namespace aimle::experiments
