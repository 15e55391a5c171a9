// The folder of a gradient study: results.jsonl, summary.csv, what it was asked (study.json), and
// the figures and report.html that the Python package draws from them.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace aimle::cli {

class StudyFolder {
 public:
  StudyFolder(std::filesystem::path folder, const std::string& study,
              nlohmann::ordered_json settings);

  /// Writes every file whole, whatever happens meanwhile.
  void save(const std::map<std::string, std::string>& files, bool complete);

  /// It is some seconds since the last time.
  bool is_due() const { return Clock::now() - saved_ > std::chrono::seconds(3); }

  /// The end: throws Stopped, naming the files, if the study was cut short; else draws, and prints
  /// the names of the files.
  void finish(int64_t done, int64_t total) const;

 private:
  using Clock = std::chrono::steady_clock;
  std::filesystem::path folder_;
  nlohmann::ordered_json about_;
  Clock::time_point start_;
  Clock::time_point saved_;
};

}  // namespace aimle::cli
