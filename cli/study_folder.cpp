#include "cli/study_folder.h"

#include <cstdio>

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
      start_(Clock::now()),
      saved_(start_) {}

void StudyFolder::save(const std::map<std::string, std::string>& files, bool complete) {
  saved_ = Clock::now();
  for (const auto& [name, content] : files) {
    experiments::write_atomically(folder_ / name, content);
  }
  about_["complete"] = complete;
  about_["seconds"] = std::chrono::duration<double>(saved_ - start_).count();
  experiments::write_atomically(folder_ / "study.json", about_.dump(2) + "\n");
}

void StudyFolder::finish(int64_t done, int64_t total) const {
  if (const int signal = experiments::interrupt_signal()) {
    throw experiments::Stopped(
        signal, "stopped; the " + std::to_string(done) + " of " + std::to_string(total) +
                    " measurements that were done are in " + (folder_ / "results.jsonl").string() +
                    " and " + (folder_ / "summary.csv").string());
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
