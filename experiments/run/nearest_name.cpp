#include "experiments/run/nearest_name.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace aimle::experiments {
namespace {

size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1,
                             cost[i - 1][j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string nearest_name(std::string_view given, std::span<const std::string> known) {
  std::string best;
  size_t fewest = std::numeric_limits<size_t>::max();
  for (const std::string& name : known) {
    const size_t distance = edits(given, name);
    if (distance < fewest) {
      fewest = distance;
      best = name;
    }
  }
  return fewest <= std::max<size_t>(2, given.size() / 3) ? best : std::string();
}

std::string unknown_name(std::string_view kind, std::string_view given,
                         std::span<const std::string> known) {
  std::string text = "unknown " + std::string(kind) + " '" + std::string(given) + "'";
  if (const std::string near = nearest_name(given, known); !near.empty()) {
    text += ": did you mean '" + near + "'?";
  }
  if (known.empty()) return text;
  text += text.back() == '?' ? " Known are " : ": known are ";
  for (size_t i = 0; i < known.size(); ++i) text += (i == 0 ? "" : ", ") + known[i];
  return text;
}

}  // namespace aimle::experiments
