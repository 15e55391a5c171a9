#include "experiments/engine/campaign_text.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "aimle/base/numbers.h"
#include "aimle/base/shown_value.h"
#include "experiments/process/failure.h"

namespace aimle::experiments {
namespace {

constexpr int64_t kMostSeeds = 10'000;

/// "a,,b," -> "a", "", "b", "": one more field than commas.
std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

int64_t parse_seed(const std::string& text, const std::string& whole) {
  const auto value = parse_number<int64_t>(text);
  if (!value || *value < 0) {
    throw Failure("expected numbers and ranges such as 0-9 or 1,4,6-8 but got '" +
                  shown_value(whole) + "'");
  }
  return *value;
}

}  // namespace

std::vector<int64_t> parse_seeds(const std::string& text) {
  std::vector<int64_t> seeds;
  std::unordered_set<int64_t> seen;
  for (const std::string& part : split_at_commas(text)) {
    const size_t dash = part.find('-');
    const int64_t first = parse_seed(part.substr(0, dash), text);
    const int64_t last =
        dash == std::string::npos ? first : parse_seed(part.substr(dash + 1), text);
    if (last < first) parse_seed("", text);
    // The difference of two seeds always fits; the seed after the last one may not.
    for (int64_t i = 0; i <= last - first && i <= kMostSeeds; ++i) {
      if (seen.insert(first + i).second) seeds.push_back(first + i);
    }
    if (std::ssize(seeds) > kMostSeeds) {
      throw Failure("expected up to " + std::to_string(kMostSeeds) + " seeds but '" +
                    shown_value(text) + "' has more");
    }
  }
  return seeds;
}

GridAxis parse_grid_axis(const std::string& text, const Settings& settings) {
  const size_t equals = text.find('=');
  GridAxis axis;
  if (equals != std::string::npos) {
    axis.option = text.substr(0, equals);
    std::replace(axis.option.begin(), axis.option.end(), '-', '_');
    axis.values = split_at_commas(text.substr(equals + 1));
  }
  if (axis.option.empty() || equals + 1 == text.size()) {
    throw Failure("expected OPTION=VALUE,VALUE,... but got '" + shown_value(text) + "'");
  }
  if (settings.option(axis.option).of_data || axis.option == "seed") {
    throw Failure(axis.option + " cannot vary between the runs of one command");
  }
  Settings tried = settings;
  std::vector<Json> values;
  for (const std::string& value : axis.values) {
    tried.set(axis.option, value, Origin::kUser);
    values.push_back(tried.get<Json>(axis.option));
    if (std::find(values.begin(), values.end() - 1, values.back()) != values.end() - 1) {
      throw Failure("expected different values of " + axis.option + " but '" + shown_value(value) +
                    "' is given twice");
    }
  }
  return axis;
}

}  // namespace aimle::experiments
