#include "experiments/engine/run_folder.h"

#include <torch/headeronly/version.h>

#include <ctime>

#include "experiments/data/input_file.h"
#include "experiments/data/json_text.h"
#include "experiments/engine/config_text.h"
#include "experiments/engine/png.h"
#include "experiments/engine/processes.h"
#include "experiments/process/atomic_file.h"
#include "experiments/process/bytes_in_json.h"
#include "experiments/process/failure.h"
#include "experiments/process/output_folder.h"

namespace aimle::experiments {
namespace {

namespace fs = std::filesystem;

std::string now() {
  const std::time_t time = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace

void prepare_run_folder(const RunFolder& folder, bool force) {
  prepare_output_folder(folder.path, IfNotEmpty::kKeepFiles);
  if (!force && !is_unused(folder.path)) {
    throw Failure(
        folder.path.string() +
        " is not empty: choose another folder with --out, --resume to continue the run in "
        "it, or --force to start again");
  }
  // The config is last: if the process is killed in between, the remaining files belong to it.
  fs::remove_all(folder.pictures());
  for (const fs::path& file :
       {folder.progress(), folder.events(), folder.previous_checkpoint(), folder.checkpoint(),
        folder.best(), folder.metrics(), folder.exhibits(), folder.config()}) {
    fs::remove(file);
  }
}

void write_config(const RunFolder& folder, const Experiment& experiment, const Settings& settings,
                  int64_t threads, const std::string& command) {
  Json config;
  config["experiment"] = experiment.name;
  config["seed"] = settings.get<int64_t>("seed");
  config["settings"] = settings.to_json();
  config["select"] = experiment.select;
  config["maximised"] = experiment.maximised;
  config["versions"] = {{"aimle", AIMLE_VERSION}, {"torch", TORCH_VERSION}};
  config["commit"] = AIMLE_COMMIT;
  config["threads"] = threads;
  if (processes().several()) config["processes"] = processes().size;
  config["command"] = to_json_text(command);
  config["created"] = now();
  write_atomically(folder.config(), config.dump(2) + "\n");
}

std::optional<Json> find_config(const fs::path& path) {
  return parse_config(path, data::read_input_file_or_stdin(path));
}

Json read_config(const fs::path& path) {
  std::optional<Json> config = find_config(path);
  if (!config) throw Failure(path.string() + " is not the config.json of a run");
  return *std::move(config);
}

std::vector<Json> parse_metrics(const fs::path& file, const std::string& lines) {
  auto [metrics, is_torn] = data::parse_json_lines<Json>(file, lines);
  if (is_torn) {
    data::fail_line(file, std::ssize(metrics) + 1,
                    "the line is incomplete: start the run again with --force");
  }
  return std::move(metrics);
}

std::string spell_metrics(const std::vector<Json>& metrics) {
  std::string text;
  for (const Json& line : metrics) text += line.dump() + "\n";
  return text;
}

std::vector<Json> read_metrics(const RunFolder& folder) {
  if (!fs::exists(folder.metrics())) return {};
  return parse_metrics(folder.metrics(), data::read_input_file(folder.metrics()));
}

void write_metrics(const RunFolder& folder, const std::vector<Json>& metrics) {
  write_atomically(folder.metrics(), spell_metrics(metrics));
}

void show_metrics(const RunFolder& folder, const std::vector<Json>& metrics) {
  write_for_readers(folder.metrics(), spell_metrics(metrics));
}

void write_picture(const RunFolder& folder, const Picture& picture) {
  std::error_code error;
  const fs::path file = folder.picture(picture.name);
  fs::create_directories(file.parent_path(), error);
  if (error)
    throw Failure("cannot create the folder " + file.parent_path().string() + ": " +
                  error.message());
  write_atomically(file, encode_png(picture.pixels));
}

void write_exhibits(const RunFolder& folder, const Json& exhibits) {
  write_atomically(folder.exhibits(), exhibits.dump() + "\n");
}

}  // namespace aimle::experiments
