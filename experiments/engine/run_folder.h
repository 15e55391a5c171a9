// The files of a run:
//
//   config.json              all settings, versions, commit, seed, command
//   metrics.jsonl            one object per epoch
//   checkpoint.pt            where to continue from
//   checkpoint.previous.pt   the one before it, in case that one is damaged
//   best.pt                  the model of the best epoch
//   pictures/                PNG files
//   exhibits.json            a few examples with the model's output, for reports
//   progress.json            where the run is, for `aimle watch` (live_progress.h)
//   events.out.tfevents.aimle  with --tensorboard (event_file.h)
//
// Every file except the last is written atomically: a reader, or `--resume` after a crash, never
// sees a partial one. Events are appended.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/engine/experiment.h"

namespace aimle::experiments {

struct RunFolder {
  std::filesystem::path path;

  std::filesystem::path config() const { return path / "config.json"; }
  std::filesystem::path metrics() const { return path / "metrics.jsonl"; }
  std::filesystem::path checkpoint() const { return path / "checkpoint.pt"; }
  std::filesystem::path previous_checkpoint() const { return path / "checkpoint.previous.pt"; }
  std::filesystem::path best() const { return path / "best.pt"; }
  std::filesystem::path exhibits() const { return path / "exhibits.json"; }
  std::filesystem::path progress() const { return path / "progress.json"; }
  std::filesystem::path events() const { return path / "events.out.tfevents.aimle"; }
  std::filesystem::path pictures() const { return path / "pictures"; }
  std::filesystem::path picture(const std::string& name) const {
    return pictures() / (name + ".png");
  }
};

/// Prepares the folder for a new run. Throws Failure if it is not empty, unless `force`, which
/// removes only the files listed above.
void prepare_run_folder(const RunFolder& folder, bool force);

void write_config(const RunFolder& folder, const Experiment& experiment, const Settings& settings,
                  int64_t threads, const std::string& command);
/// Throws Failure if it is missing, not JSON, or not that of a run.
Json read_config(const std::filesystem::path& file);
/// The same, but returns nothing for JSON of something else: without an "experiment".
std::optional<Json> find_config(const std::filesystem::path& file);

/// Empty if there is no file.
std::vector<Json> read_metrics(const RunFolder& folder);
void write_metrics(const RunFolder& folder, const std::vector<Json>& metrics);
/// The same for readers: not flushed to disk.
void show_metrics(const RunFolder& folder, const std::vector<Json>& metrics);
/// The lines of such a file; throws Failure naming it if one is not an object.
std::vector<Json> parse_metrics(const std::filesystem::path& file, const std::string& lines);
std::string spell_metrics(const std::vector<Json>& metrics);

void write_picture(const RunFolder& folder, const Picture& picture);
void write_exhibits(const RunFolder& folder, const Json& exhibits);

}  // namespace aimle::experiments
