#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "aimle/base/check.h"
#include "aimle/exact/enumerate.h"
#include "aimle/map/arborescence.h"

namespace aimle {
namespace {

/// Whether heads lead from every vertex to a root, which is its own head, and, if requested, there
/// is exactly one root.
bool is_arborescence(const std::vector<int>& head, bool single_root) {
  int roots = 0;
  for (int v = 0; v < static_cast<int>(head.size()); ++v) {
    roots += head[static_cast<size_t>(v)] == v;
    int above = v;
    for (size_t step = 0; step < head.size(); ++step) above = head[static_cast<size_t>(above)];
    if (head[static_cast<size_t>(above)] != above) return false;
  }
  return !single_root || roots == 1;
}

}  // namespace

double Arborescence::structure_count() const {
  if (vertices > kMaxEnumeratedVertices) return std::numeric_limits<double>::infinity();
  const auto n = static_cast<double>(vertices);
  return std::pow(single_root ? n : n + 1, n - 1);
}

std::vector<uint8_t> Arborescence::structures() const {
  validate();
  AIMLE_CHECK(vertices <= kMaxEnumeratedVertices, "[aimle::enumerate] expected at most ",
              kMaxEnumeratedVertices, " vertices but got vertices=", vertices);
  const auto n = static_cast<int>(vertices);
  std::vector<std::vector<int>> found;  // the entries of each
  std::vector<int> head(static_cast<size_t>(n));
  for (size_t digit = 0; digit < head.size();) {
    if (is_arborescence(head, single_root)) {
      std::vector<int> entries;
      for (int v = 0; v < n; ++v) entries.push_back(head[static_cast<size_t>(v)] * n + v);
      std::sort(entries.begin(), entries.end());
      found.push_back(std::move(entries));
    }
    for (digit = 0; digit < head.size() && ++head[digit] == n; ++digit) head[digit] = 0;
  }
  std::sort(found.begin(), found.end());
  std::vector<uint8_t> all(found.size() * static_cast<size_t>(size()));
  for (size_t i = 0; i < found.size(); ++i) {
    for (const int entry : found[i])
      all[i * static_cast<size_t>(size()) + static_cast<size_t>(entry)] = 1;
  }
  return all;
}

}  // namespace aimle
