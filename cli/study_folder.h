// The folder of a gradient study: results.jsonl, summary.csv, its request (study.json), and the
// figures and report.html that the Python package draws from them.
//
// The files are saved atomically during the study, so a process that is killed loses only the last
// seconds: `--resume` reads them back and computes the rest.
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

  /// The lines of results.jsonl that an earlier call has written; none if the file does not exist.
  /// Throws Failure if its request was different, or if the file is damaged.
  std::vector<nlohmann::json> resume();

  std::filesystem::path results() const { return folder_ / "results.jsonl"; }

  /// Writes every file atomically.
  void save(const std::map<std::string, std::string>& files, bool complete);

  /// Whether nothing was saved yet, or not for some seconds.
  bool is_due() const { return !saved_ || Clock::now() - *saved_ > std::chrono::seconds(3); }

  /// The message if the current measurement does not end in time after a signal.
  std::string late_message() const;

  /// Finishes the study: throws Stopped, with the names of the files, if it was interrupted;
  /// otherwise draws the report and prints the names of the files.
  void finish(int64_t done, int64_t total) const;

 private:
  void check_settings(const nlohmann::ordered_json& before);

  using Clock = std::chrono::steady_clock;
  void check_results(const nlohmann::ordered_json& before, const std::string& text);
  /// While results are being replaced, both the old and the new checksum are recorded.
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
