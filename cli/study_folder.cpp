#include "cli/study_folder.h"

#include <cstdio>
#include <fstream>

#include "experiments/run/atomic_file.h"
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
    std::vector<nlohmann::json> lines;
    std::ifstream results(folder_ / "results.jsonl");
    for (std::string line; std::getline(results, line);) {
      lines.push_back(nlohmann::json::parse(line));
    }
    return lines;
  } catch (const nlohmann::json::exception& error) {
    throw experiments::Failure("--resume: " + folder_.string() +
                               " does not hold a study: " + error.what());
  }
}

void StudyFolder::save(const std::map<std::string, std::string>& files, bool complete) {
  const Clock::time_point now = Clock::now();
  for (const auto& [name, content] : files) {
    experiments::write_atomically(folder_ / name, content);
  }
  about_["complete"] = complete;
  about_["seconds"] = seconds_before_ + std::chrono::duration<double>(now - start_).count();
  experiments::write_atomically(folder_ / "study.json", about_.dump(2) + "\n");
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
