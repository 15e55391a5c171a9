#include "cli/study_folder.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>

#include "experiments/run/atomic_file.h"
#include "experiments/run/digest.h"
#include "experiments/run/failure.h"
#include "experiments/run/interrupt.h"
#include "experiments/run/progress.h"
#include "experiments/run/python.h"

namespace aimle::cli {

StudyFolder::StudyFolder(std::filesystem::path folder, const std::string& study,
                         nlohmann::ordered_json settings)
    : folder_(std::move(folder)),
      about_({{"study", study}, {"version", AIMLE_VERSION}, {"settings", std::move(settings)}}),
      start_(Clock::now()) {}

std::vector<nlohmann::json> StudyFolder::resume() {
  const std::filesystem::path file = folder_ / "study.json";
  if (!std::filesystem::exists(file)) return {};
  try {
    const auto before = nlohmann::ordered_json::parse(std::ifstream(file));
    if (before.at("study") != about_["study"]) {
      throw experiments::Failure("--resume: " + folder_.string() + " holds the study " +
                                 before.at("study").dump() + ", not " + about_["study"].dump());
    }
    for (const auto& [name, wanted] : about_["settings"].items()) {
      // Settings that came later are empty in earlier folders.
      const auto had = before.at("settings").value(name, nlohmann::ordered_json(""));
      if (had == wanted) continue;
      throw experiments::Failure("--resume: " + name + " is " + had.dump() + " in " +
                                 folder_.string() + ", not " + wanted.dump());
    }
    seconds_before_ = before.at("seconds").get<double>();
    std::ifstream file_of_results(folder_ / "results.jsonl", std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file_of_results)), {});
    check_results(before, text);
    std::vector<nlohmann::json> lines;
    std::istringstream results(text);
    for (std::string line; std::getline(results, line);) {
      lines.push_back(nlohmann::json::parse(line));
    }
    return lines;
  } catch (const nlohmann::json::exception& error) {
    throw experiments::Failure("--resume: " + folder_.string() +
                               " does not hold a study: " + error.what());
  }
}

void StudyFolder::check_results(const nlohmann::ordered_json& before, const std::string& text) {
  digest_ = experiments::xxh64_hex(text);
  is_resumed_ = true;
  const auto known = before.value("results_xxh64", nlohmann::ordered_json::array({digest_}));
  if (std::find(known.begin(), known.end(), digest_) != known.end()) return;
  throw experiments::Failure("--resume: " + (folder_ / "results.jsonl").string() +
                             " is damaged: its checksum is not in study.json; begin anew with "
                             "--force, or in another folder with --out");
}

void StudyFolder::write_about(bool complete, std::vector<std::string> digests) {
  about_["complete"] = complete;
  about_["results_xxh64"] = std::move(digests);
  experiments::write_atomically(folder_ / "study.json", about_.dump(2) + "\n");
}

void StudyFolder::save(const std::map<std::string, std::string>& files, bool complete) {
  const Clock::time_point now = Clock::now();
  if (!saved_ && !is_resumed_) {  // with --force, of another study
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

void StudyFolder::finish(int64_t done, int64_t total) const {
  if (const int signal = experiments::interrupt_signal()) {
    throw experiments::Stopped(
        signal, "stopped; the " + std::to_string(done) + " of " + std::to_string(total) +
                    " measurements that were done are in " + (folder_ / "results.jsonl").string() +
                    " and " + (folder_ / "summary.csv").string() + "; continue with --resume");
  }
  std::printf("%s\n%s\n", (folder_ / "results.jsonl").c_str(), (folder_ / "summary.csv").c_str());
  std::fflush(stdout);
  if (experiments::run_python_module("aimle.report.synth", {folder_.string()})) {
    std::printf("%s\n", (folder_ / "report.html").c_str());
  } else {
    experiments::say("no figures; the numbers are complete without them");
  }
}

}  // namespace aimle::cli
