#include "cli/study_folder.h"

#include <algorithm>
#include <cstdio>

#include "experiments/data/input_file.h"
#include "experiments/data/json_text.h"
#include "experiments/process/atomic_file.h"
#include "experiments/process/bytes_in_json.h"
#include "experiments/process/digest.h"
#include "experiments/process/failure.h"
#include "experiments/process/interrupt.h"
#include "experiments/process/progress.h"
#include "experiments/process/python.h"

namespace aimle::cli {

StudyFolder::StudyFolder(std::filesystem::path folder, const std::string& study,
                         nlohmann::ordered_json settings)
    : folder_(std::move(folder)),
      about_({{"study", study}, {"version", AIMLE_VERSION}, {"settings", std::move(settings)}}),
      start_(Clock::now()) {}

std::vector<nlohmann::json> StudyFolder::resume() {
  const std::filesystem::path file = folder_ / "study.json";
  if (!std::filesystem::exists(file)) return {};
  const auto before = experiments::data::parse_json<nlohmann::ordered_json>(
      file, experiments::data::read_input_file(file));
  check_settings(before);
  const std::string text = std::filesystem::exists(results())
                               ? experiments::data::read_input_file(results())
                               : std::string();
  auto [lines, is_torn] = experiments::data::parse_json_lines(results(), text);
  if (is_torn) {
    experiments::data::fail_line(results(), std::ssize(lines) + 1,
                                 "the line is incomplete: start again with --force, or in another "
                                 "folder with --out");
  }
  check_results(before, text);
  return std::move(lines);
}

void StudyFolder::check_settings(const nlohmann::ordered_json& before) {
  if (!before.is_object() || !before.contains("study") || !before.contains("settings") ||
      !before["settings"].is_object() || !before.contains("seconds") ||
      !before["seconds"].is_number()) {
    throw experiments::Failure("--resume: " + (folder_ / "study.json").string() +
                               " does not describe a study: choose another folder with --out, or "
                               "start again with --force");
  }
  if (before["study"] != about_["study"]) {
    throw experiments::Failure("--resume: " + folder_.string() + " holds the study " +
                               before["study"].dump() + ", not " + about_["study"].dump());
  }
  for (const auto& [name, wanted] : about_["settings"].items()) {
    // Settings that were added later are empty in older folders.
    const auto had = before["settings"].value(name, nlohmann::ordered_json(""));
    if (had == wanted) continue;
    throw experiments::Failure("--resume: " + name + " is " + had.dump() + " in " +
                               folder_.string() + ", not " + wanted.dump());
  }
  seconds_before_ = before["seconds"].get<double>();
}

void StudyFolder::check_results(const nlohmann::ordered_json& before, const std::string& text) {
  digest_ = experiments::xxh64_hex(text);
  is_resumed_ = true;
  const auto known = before.value("results_xxh64", nlohmann::ordered_json::array({digest_}));
  if (std::find(known.begin(), known.end(), digest_) != known.end()) return;
  throw experiments::Failure("--resume: " + (folder_ / "results.jsonl").string() +
                             " is damaged: its checksum is not in study.json; start again with "
                             "--force, or in another folder with --out");
}

void StudyFolder::write_about(bool complete, std::vector<std::string> digests) {
  about_["complete"] = complete;
  about_["results_xxh64"] = std::move(digests);
  experiments::write_atomically(folder_ / "study.json", about_.dump(2) + "\n");
}

void StudyFolder::save(const std::map<std::string, std::string>& files, bool complete) {
  const experiments::KeepAlive saving;
  const Clock::time_point now = Clock::now();
  if (!saved_ && !is_resumed_) {  // with --force, the files may be another study's
    std::filesystem::remove(folder_ / "study.json");
    std::filesystem::remove(folder_ / "results.jsonl");
  }
  about_["seconds"] = seconds_before_ + std::chrono::duration<double>(now - start_).count();
  const std::string digest = experiments::xxh64_hex(files.at("results.jsonl"));
  const bool is_first = !std::filesystem::exists(folder_ / "study.json");
  if (!is_first) write_about(false, {digest_, digest});
  for (const auto& [name, content] : files) {
    experiments::write_atomically(folder_ / name, content);
  }
  digest_ = digest;
  if (is_first || complete) write_about(complete, {digest_});
  saved_ = now;
}

std::string StudyFolder::late_message() const {
  return "stopped; the completed measurements are in " + (folder_ / "results.jsonl").string() +
         "; continue with --resume";
}

void StudyFolder::finish(int64_t done, int64_t total) const {
  if (const int signal = experiments::interrupt_signal()) {
    throw experiments::Stopped(signal,
                               "stopped; " + std::to_string(done) + " of " + std::to_string(total) +
                                   " measurements are complete; they are in " +
                                   (folder_ / "results.jsonl").string() + " and " +
                                   (folder_ / "summary.csv").string() + "; continue with --resume");
  }
  std::printf("%s\n%s\n", (folder_ / "results.jsonl").c_str(), (folder_ / "summary.csv").c_str());
  std::fflush(stdout);
  if (experiments::run_python_module("aimle.program.report.synth", {folder_.string()})) {
    std::printf("%s\n", (folder_ / "report.html").c_str());
  } else {
    experiments::warn("no figures were drawn; the numbers are complete without them");
  }
}

}  // namespace aimle::cli
