#include "experiments/engine/listing.h"

#include <algorithm>

#include "aimle/base/join.h"
#include "experiments/engine/run_folder.h"
#include "experiments/process/failure.h"
#include "experiments/process/progress.h"
#include "experiments/process/short_number.h"
#include "experiments/process/terminal.h"

namespace aimle::experiments {
namespace {

namespace fs = std::filesystem;

std::string number(const Json& line, const std::string& name) {
  if (!line.contains(name) || !line[name].is_number()) return "-";
  return short_number(line[name].get<double>(), 5);
}

void add_run(const fs::path& folder, Listing& found) {
  if (!fs::is_regular_file(folder / "config.json")) return;
  try {
    std::optional<Json> config = find_config(folder / "config.json");
    if (!config) return;
    found.runs.push_back(
        {.folder = folder, .config = *std::move(config), .metrics = read_metrics({folder})});
  } catch (const Failure&) {
    found.unreadable.push_back(folder);
  }
}

/// The best epoch by the run's own metric, or the last one if that is never a number.
const Json& best_line(const RunRecord& run, std::string& metric) {
  metric = run.config.value("select", "val_loss");
  if (!run.metrics.front().contains(metric)) metric = "train_loss";
  const auto maximised = run.config.value("maximised", std::vector<std::string>());
  const bool more = std::find(maximised.begin(), maximised.end(), metric) != maximised.end();
  const Json* best = nullptr;
  for (const Json& line : run.metrics) {
    if (!line.contains(metric) || !line[metric].is_number()) continue;
    const auto value = [&](const Json& of) { return of[metric].get<double>(); };
    if (!best || (more ? value(line) > value(*best) : value(line) < value(*best))) best = &line;
  }
  return best ? *best : run.metrics.back();
}

/// Some runs also measure the untrained model, as epoch 0.
int64_t epochs_done(const RunRecord& run) {
  return run.metrics.empty() ? 0 : run.metrics.back().value("epoch", int64_t{0});
}

std::vector<std::string> cells(const RunRecord& run) {
  const Json& settings = run.config["settings"];
  const auto text = [&](const char* name) {
    const Json value = settings.value(name, Json("-"));
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  std::vector<std::string> row = {run.folder.string(), run.config["experiment"].get<std::string>(),
                                  text("method"), text("seed"),
                                  std::to_string(epochs_done(run)) + "/" + text("epochs")};
  if (run.metrics.empty()) {
    row.insert(row.end(), {"-", "-", "-", "-"});
    return row;
  }
  std::string metric;
  const Json& best = best_line(run, metric);
  double seconds = 0;
  for (const Json& line : run.metrics) seconds += line.value("seconds", 0.0);
  row.push_back(metric + " " + number(best, metric));
  row.push_back(number(best, "test_loss"));
  row.push_back(number(run.metrics.back(), "alpha"));
  row.push_back(spell_seconds(seconds));
  return row;
}

}  // namespace

std::string Listing::complaint() const {
  if (unreadable.empty()) return "";
  std::string text =
      unreadable.size() == 1 ? "1 folder has" : std::to_string(unreadable.size()) + " folders have";
  text += " a config.json or metrics.jsonl that could not be read: ";
  return text + join(unreadable, ", ", [](const fs::path& folder) { return folder.string(); });
}

Listing find_runs(const fs::path& folder) {
  if (!fs::is_directory(folder)) throw Failure("there is no folder " + folder.string());
  Listing found;
  add_run(folder, found);
  const auto options = fs::directory_options::skip_permission_denied;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, options)) {
    if (entry.is_directory()) add_run(entry.path(), found);
  }
  std::sort(found.runs.begin(), found.runs.end(),
            [](const RunRecord& a, const RunRecord& b) { return a.folder < b.folder; });
  std::sort(found.unreadable.begin(), found.unreadable.end());
  return found;
}

std::string to_table(const std::vector<RunRecord>& runs) {
  std::vector<std::vector<std::string>> rows = {
      {"run", "experiment", "method", "seed", "epochs", "best", "test_loss", "alpha", "time"}};
  for (const RunRecord& run : runs) rows.push_back(cells(run));
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text += std::string(widths[i] - columns_of(row[i]) + 2, ' ');
    }
    text += "\n";
  }
  return text;
}

}  // namespace aimle::experiments
