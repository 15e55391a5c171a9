#include <algorithm>
#include <nlohmann/json.hpp>

#include "experiments/gradient/fields.h"
#include "experiments/gradient/study.h"
#include "experiments/process/statistics.h"

namespace aimle::experiments {
namespace {

double lambda_of(const Row& row) { return row.lambda.value_or(row.measured.lambda); }

bool same_cell(const Row& a, const Row& b) {
  return a.estimator == b.estimator && a.n == b.n && a.k == b.k && a.samples == b.samples &&
         a.lambda == b.lambda;
}

}  // namespace

std::string as_jsonl(const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : rows) {
    const Measurement& m = row.measured;
    const nlohmann::ordered_json line = {{"estimator", row.estimator},
                                         {"n", row.n},
                                         {"k", row.k},
                                         {"samples", row.samples},
                                         {"lambda", json_number(lambda_of(row))},
                                         {"fixed_lambda", row.lambda.has_value()},
                                         {"seed", row.seed},
                                         {"cosine", json_number(m.cosine)},
                                         {"zeros", json_number(m.zeros)},
                                         {"norm_ratio", json_number(m.norm_ratio)},
                                         {"relative_error", json_number(m.relative_error)},
                                         {"alpha", json_number(m.alpha)}};
    text += line.dump() + "\n";
  }
  return text;
}

Row read_row(const nlohmann::json& line) {
  Row row{.estimator = line.at("estimator"),
          .n = line.at("n"),
          .k = line.at("k"),
          .samples = line.at("samples"),
          .seed = line.at("seed"),
          .measured = {.cosine = read_number(line.at("cosine")),
                       .zeros = read_number(line.at("zeros")),
                       .norm_ratio = read_number(line.at("norm_ratio")),
                       .relative_error = read_number(line.at("relative_error")),
                       .alpha = read_number(line.at("alpha")),
                       .lambda = read_number(line.at("lambda"))}};
  if (line.at("fixed_lambda").get<bool>()) row.lambda = row.measured.lambda;
  return row;
}

std::string as_summary(const std::vector<Row>& rows) {
  std::string text = kSummaryColumns;
  for (auto first = rows.begin(); first != rows.end();) {
    const auto last =
        std::find_if(first, rows.end(), [&](const Row& row) { return !same_cell(*first, row); });
    Moments cosine;
    Moments zeros;
    Moments alpha;
    Moments lambda;
    for (auto row = first; row != last; ++row) {
      cosine.add(row->measured.cosine);
      zeros.add(row->measured.zeros);
      alpha.add(row->measured.alpha);
      lambda.add(lambda_of(*row));
    }
    text += csv_line({first->estimator, std::to_string(first->n), std::to_string(first->k),
                      std::to_string(first->samples), csv_number(lambda.mean()),
                      csv_number(cosine.mean()), csv_number(cosine.standard_error()),
                      csv_number(zeros.mean()), csv_number(alpha.mean()),
                      std::to_string(cosine.count())});
    first = last;
  }
  return text;
}

}  // namespace aimle::experiments
