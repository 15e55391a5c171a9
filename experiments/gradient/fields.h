// How the results of a study are written: numbers in JSON and CSV, NaN as null or empty.
#pragma once

#include <cmath>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "experiments/process/short_number.h"

namespace aimle::experiments {

inline constexpr const char* kSummaryColumns =
    "estimator,n,k,samples,lambda,cosine_mean,cosine_se,zeros_mean,alpha_mean,seeds\n";

inline nlohmann::ordered_json json_number(double value) {
  if (std::isfinite(value)) return value;
  return nullptr;
}

inline double read_number(const nlohmann::json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

inline std::string csv_number(double value) {
  return std::isfinite(value) ? short_number(value) : "";
}

inline std::string csv_line(std::initializer_list<std::string> fields) {
  std::string line;
  for (const std::string& field : fields) line += (&field == fields.begin() ? "" : ",") + field;
  return line + "\n";
}

}  // namespace aimle::experiments
