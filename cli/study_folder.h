// The folder of a gradient study: results.jsonl, summary.csv, what it was asked (study.json), and
// the figures and report.html that the Python package draws from them.
//
// The files are saved as the study goes, each whole, so that a process that was killed loses the
// last seconds only: `--resume` reads them back and does the rest.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace aimle::cli {

class StudyFolder {
 public:
  StudyFolder(std::filesystem::path folder, const std::string& study,
              nlohmann::ordered_json settings);

  /// The lines of results.jsonl that an earlier call has left; none if there is no such file.
  /// Throws Failure if it was asked something else, or if the file is damaged.
  std::vector<nlohmann::json> resume();

  std::filesystem::path results() const { return folder_ / "results.jsonl"; }

  /// Writes every file whole, whatever happens meanwhile.
  void save(const std::map<std::string, std::string>& files, bool complete);

  /// Nothing was saved yet, or some seconds ago.
  bool is_due() const { return !saved_ || Clock::now() - *saved_ > std::chrono::seconds(3); }

  /// What to say if a measurement under way does not end in time after a signal.
  std::string late_message() const;

  /// The end: throws Stopped, naming the files, if the study was cut short; else draws, and prints
  /// the names of the files.
  void finish(int64_t done, int64_t total) const;

 private:
  void check_settings(const nlohmann::ordered_json& before);

  using Clock = std::chrono::steady_clock;
  void check_results(const nlohmann::ordered_json& before, const std::string& text);
  /// While results are being replaced, the checksums are those of the old file and of the new one.
  void write_about(bool complete, std::vector<std::string> digests);

  std::filesystem::path folder_;
  nlohmann::ordered_json about_;
  bool is_resumed_ = false;
  std::string digest_;           // of the results in the folder
  double seconds_before_ = 0.0;  // of the call that is resumed
  Clock::time_point start_;
  std::optional<Clock::time_point> saved_;
};

}  // namespace aimle::cli
