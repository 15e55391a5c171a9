#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "experiments/gradient/study.h"
#include "experiments/run/statistics.h"

namespace aimle::experiments {
namespace {

nlohmann::ordered_json number(double value) {
  if (std::isfinite(value)) return value;
  return nullptr;
}

double lambda_of(const Row& row) { return row.lambda.value_or(row.measured.lambda); }

bool same_cell(const Row& a, const Row& b) {
  return a.estimator == b.estimator && a.n == b.n && a.k == b.k && a.samples == b.samples &&
         a.lambda == b.lambda;
}

std::string field(double value) {
  if (!std::isfinite(value)) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
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
                                         {"lambda", number(lambda_of(row))},
                                         {"fixed_lambda", row.lambda.has_value()},
                                         {"seed", row.seed},
                                         {"cosine", number(m.cosine)},
                                         {"zeros", number(m.zeros)},
                                         {"norm_ratio", number(m.norm_ratio)},
                                         {"relative_error", number(m.relative_error)},
                                         {"alpha", number(m.alpha)}};
    text += line.dump() + "\n";
  }
  return text;
}

std::string as_summary(const std::vector<Row>& rows) {
  std::string text =
      "estimator,n,k,samples,lambda,cosine_mean,cosine_se,zeros_mean,alpha_mean,seeds\n";
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
    text += first->estimator + "," + std::to_string(first->n) + "," + std::to_string(first->k) +
            "," + std::to_string(first->samples) + "," + field(lambda.mean()) + "," +
            field(cosine.mean()) + "," + field(cosine.standard_error()) + "," +
            field(zeros.mean()) + "," + field(alpha.mean()) + "," + std::to_string(cosine.count()) +
            "\n";
    first = last;
  }
  return text;
}

}  // namespace aimle::experiments
