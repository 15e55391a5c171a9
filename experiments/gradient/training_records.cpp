#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "experiments/gradient/fields.h"
#include "experiments/gradient/training.h"
#include "experiments/process/statistics.h"

namespace aimle::experiments {
namespace {

struct Group {
  const TrainingRow* first = nullptr;
  Moments gap;  // at the end
  Moments average_gap;
  Moments cosine;
  Moments zeros;
  Moments alpha;
};

bool same_contestant(const TrainingRow& a, const TrainingRow& b) {
  return a.estimator == b.estimator && a.samples == b.samples && a.lambda == b.lambda;
}

/// Rows of one contestant and learning rate, in the order of the rows.
std::vector<Group> groups_of(const std::vector<TrainingRow>& rows) {
  std::vector<Group> groups;
  for (const TrainingRow& row : rows) {
    const bool continues = !groups.empty() && same_contestant(*groups.back().first, row) &&
                           groups.back().first->learning_rate == row.learning_rate;
    if (!continues) groups.push_back({.first = &row});
    Group& group = groups.back();
    group.gap.add(row.gaps.back());
    group.average_gap.add(row.average_gap);
    group.cosine.add(row.cosine);
    group.zeros.add(row.zeros);
    if (row.alpha) group.alpha.add(*row.alpha);
  }
  return groups;
}

double number(const std::optional<double>& value) {
  return value.value_or(std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

std::string as_jsonl(const TrainingStudy& study, const std::vector<TrainingRow>& rows) {
  std::string text;
  for (const TrainingRow& row : rows) {
    nlohmann::ordered_json gaps = nlohmann::ordered_json::array();
    for (const double gap : row.gaps) gaps.push_back(std::round(gap * 1e6) / 1e6);
    const nlohmann::ordered_json line = {{"estimator", row.estimator},
                                         {"n", study.n},
                                         {"k", study.k},
                                         {"samples", row.samples},
                                         {"lambda", json_number(number(row.lambda))},
                                         {"learning_rate", row.learning_rate},
                                         {"seed", row.seed},
                                         {"gap", json_number(row.gaps.back())},
                                         {"average_gap", json_number(row.average_gap)},
                                         {"cosine", json_number(row.cosine)},
                                         {"zeros", json_number(row.zeros)},
                                         {"alpha", json_number(number(row.alpha))},
                                         {"gaps", gaps}};
    text += line.dump() + "\n";
  }
  return text;
}

TrainingRow read_training_row(const nlohmann::json& line) {
  TrainingRow row{.estimator = line.at("estimator"),
                  .samples = line.at("samples"),
                  .learning_rate = line.at("learning_rate"),
                  .seed = line.at("seed"),
                  .average_gap = read_number(line.at("average_gap")),
                  .cosine = read_number(line.at("cosine")),
                  .zeros = read_number(line.at("zeros"))};
  if (!line.at("lambda").is_null()) row.lambda = line.at("lambda").get<double>();
  if (!line.at("alpha").is_null()) row.alpha = line.at("alpha").get<double>();
  for (const nlohmann::json& gap : line.at("gaps")) row.gaps.push_back(read_number(gap));
  row.gaps.at(row.gaps.size() - 1) = read_number(line.at("gap"));  // the others are rounded
  return row;
}

std::string as_training_table(const TrainingStudy& study, const std::vector<TrainingRow>& rows) {
  std::string text =
      "estimator,n,k,samples,lambda,learning_rate,gap_mean,gap_se,average_gap_mean,average_gap_se,"
      "cosine_mean,zeros_mean,"
      "alpha_mean,seeds\n";
  for (const Group& group : groups_of(rows)) {
    const TrainingRow& row = *group.first;
    text += csv_line({row.estimator, std::to_string(study.n), std::to_string(study.k),
                      std::to_string(row.samples), csv_number(number(row.lambda)),
                      csv_number(row.learning_rate), csv_number(group.gap.mean()),
                      csv_number(group.gap.standard_error()), csv_number(group.average_gap.mean()),
                      csv_number(group.average_gap.standard_error()),
                      csv_number(group.cosine.mean()), csv_number(group.zeros.mean()),
                      csv_number(group.alpha.mean()), std::to_string(group.gap.count())});
  }
  return text;
}

std::string as_summary(const TrainingStudy& study, const std::vector<TrainingRow>& rows) {
  std::string text = kSummaryColumns;
  const std::vector<Group> groups = groups_of(rows);
  for (auto first = groups.begin(); first != groups.end();) {
    const auto last = std::find_if(first, groups.end(), [&](const Group& group) {
      return !same_contestant(*group.first, *first->first);
    });
    const Group& best = *std::min_element(first, last, [](const Group& a, const Group& b) {
      return a.average_gap.mean() < b.average_gap.mean();
    });
    const TrainingRow& row = *best.first;
    text += csv_line({row.estimator, std::to_string(study.n), std::to_string(study.k),
                      std::to_string(row.samples), csv_number(number(row.lambda)),
                      csv_number(best.cosine.mean()), csv_number(best.cosine.standard_error()),
                      csv_number(best.zeros.mean()), csv_number(best.alpha.mean()),
                      std::to_string(best.cosine.count())});
    first = last;
  }
  return text;
}

}  // namespace aimle::experiments
