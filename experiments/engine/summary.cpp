#include "experiments/engine/summary.h"

#include <cmath>

#include "aimle/base/join.h"
#include "experiments/process/atomic_file.h"
#include "experiments/process/failure.h"
#include "experiments/process/short_number.h"
#include "experiments/process/statistics.h"

namespace aimle::experiments {
namespace {

/// Mean, standard deviation, and of several values the standard error of the mean.
Json statistics_of(const std::vector<double>& values) {
  Moments moments;
  for (const double value : values) moments.add(value);
  if (values.size() == 1) return {{"mean", moments.mean()}, {"sd", 0.0}};
  return {{"mean", moments.mean()},
          {"sd", std::sqrt(moments.variance())},
          {"se", moments.standard_error()}};
}

/// Statistics of the selected epochs of one cell's runs.
Json describe(const std::vector<const Json*>& epochs) {
  Json result;
  for (const auto& [name, value] : epochs.front()->items()) {
    std::vector<double> values;
    for (const Json* epoch : epochs) {
      if (epoch->contains(name) && epoch->at(name).is_number()) {
        values.push_back(epoch->at(name).get<double>());
      }
    }
    if (!values.empty()) result[name] = statistics_of(values);
  }
  return result;
}

std::string cell_of(const Run& run, const std::vector<GridAxis>& grid) {
  return join(grid, ",", [&](const GridAxis& axis) {
    const Json value = run.settings.get<Json>(axis.option);
    return axis.option + "=" + (value.is_string() ? value.get<std::string>() : value.dump());
  });
}

/// The metrics shown to the user: the selecting metric, and those of the test set.
std::string line(const Json& cell, const std::string& select) {
  const auto name = cell["settings"].get<std::string>();
  std::string text = name.empty() ? "all seeds:" : name + ":";
  for (const auto& [metric, value] : cell["metrics"].items()) {
    if (metric != select && !metric.starts_with("test_")) continue;
    text += "  " + metric + " " + short_number(value["mean"].get<double>(), 5);
    if (value.contains("se")) text += " ± " + short_number(value["se"].get<double>(), 5);
  }
  return text;
}

}  // namespace

void write_summary(const Campaign& campaign, const std::vector<Run>& runs,
                   const std::vector<std::vector<Json>>& metrics) {
  std::vector<std::string> cells;
  std::vector<std::vector<const Json*>> chosen;
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::string cell = cell_of(runs[i], campaign.grid);
    if (cells.empty() || cells.back() != cell) {
      cells.push_back(cell);
      chosen.emplace_back();
    }
    chosen.back().push_back(&best_epoch(runs[i], metrics[i]));
  }

  const std::string& select = runs.front().select;
  const double sign = direction(*campaign.experiment, select);
  Json summary = {{"experiment", campaign.experiment->name}, {"select", select}};
  Json listed = Json::array();
  size_t winner = 0;
  if (const size_t seeds = chosen.front().size(); seeds > 1) {
    say("mean ± standard error over " + std::to_string(seeds) + " seeds:");
  }
  for (size_t i = 0; i < cells.size(); ++i) {
    const Json described = describe(chosen[i]);
    if (!described.contains(select) && cells.size() > 1) {
      throw Failure("--select: no metric " + select + " in " + campaign.out.string() +
                    "; a validation split may be missing");
    }
    listed.push_back({{"settings", cells[i]}, {"runs", chosen[i].size()}, {"metrics", described}});
    say(line(listed.back(), select));
    const auto mean = [&](size_t k) {
      return sign * listed[k]["metrics"][select]["mean"].get<double>();
    };
    if (cells.size() > 1 && mean(i) < mean(winner)) winner = i;
  }
  summary["cells"] = listed;
  if (cells.size() > 1) {
    summary["winner"] = listed[winner];
    say("selected by " + select + ": " + line(listed[winner], select));
  }
  write_atomically(campaign.out / "summary.json", summary.dump(2) + "\n");
}

}  // namespace aimle::experiments
