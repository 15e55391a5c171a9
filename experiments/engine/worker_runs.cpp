#include "experiments/engine/worker_runs.h"

#include <nlohmann/json.hpp>

#include "aimle/base/shown_value.h"
#include "experiments/process/failure.h"
#include "experiments/process/progress.h"
#include "experiments/process/python.h"
#include "experiments/process/shell_word.h"

namespace aimle::experiments {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char* kModule = "aimle.program.campaign";

bool is_engine(const std::string& text, const std::string& engine) {
  return text == engine || (text.starts_with(engine + ":") && text.size() > engine.size() + 1);
}

Json request_of(const std::string& workers, const fs::path& out, const std::vector<WorkerRun>& runs,
                int64_t at_once) {
  Json listed = Json::array();
  for (const WorkerRun& run : runs) {
    Json arguments = {"train", run.experiment, "--resume", "--quiet", "--threads", "1"};
    if (!run.select.empty()) {
      arguments.push_back("--select");
      arguments.push_back(run.select);
    }
    listed.push_back({{"label", run.label},
                      {"folder", run.folder.lexically_relative(out).string()},
                      {"arguments", arguments},
                      {"needs_gpu", run.device == "cuda"}});
  }
  return {{"workers", workers}, {"at_once", at_once}, {"quiet", is_quiet()}, {"runs", listed}};
}

}  // namespace

void check_workers(const std::string& text) {
  if (is_engine(text, "gpus") || is_engine(text, "ray")) return;
  throw Failure("expected gpus, gpus:0,1, ray or ray:ADDRESS but got '" + shown_value(text) + "'");
}

void check_workers(const std::string& text, const std::string& device) {
  if (is_engine(text, "gpus") && device != "cuda") {
    throw Misuse("--workers " + text + ": the runs train on the CPU; add --device cuda");
  }
}

void do_on_workers(const std::string& workers, const fs::path& out,
                   const std::vector<WorkerRun>& runs, int64_t at_once) {
  if (runs.empty()) return;
  try {
    call_python_module(kModule,
                       {fs::read_symlink("/proc/self/exe").string(), fs::absolute(out).string()},
                       request_of(workers, out, runs, at_once).dump(), WhenStopped::kSaves);
  } catch (const Stopped& stopped) {
    throw Stopped(stopped.signal,
                  "stopped; continue with --resume --out " + shell_word(out.string()));
  }
}

}  // namespace aimle::experiments
