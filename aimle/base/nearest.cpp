#include "aimle/base/nearest.h"

#include <algorithm>
#include <cctype>

namespace aimle {
namespace {

std::string folded(std::string_view name) {
  std::string result(name);
  for (char& c : result) {
    c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  // Row i of the table holds the distances of a[0, i) to every b[0, j).
  std::vector<int> before_last, last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substituted = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substituted});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = last;
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  const std::string given = folded(name);
  const std::string* best = nullptr;
  int least = 0;
  for (const std::string& candidate : known) {
    const int distance = edit_distance(given, folded(candidate));
    const auto allowed = static_cast<int>(std::max(given.size(), candidate.size()) / 2);
    if (distance <= allowed && (best == nullptr || distance < least)) {
      best = &candidate;
      least = distance;
    }
  }
  return best == nullptr ? std::string() : *best;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  const std::string near = nearest_name(name, known);
  return near.empty() ? std::string() : "; did you mean '" + near + "'?";
}

}  // namespace aimle
