// A literal implementation of grid_path.h by Bellman-Ford: slow, and independent of the solver.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <span>
#include <vector>

#include "aimle/map/grid_path.h"

namespace aimle::oracle {

template <class T>
struct GridPathAnswer {
  Status status = Status::kOk;
  T distance = std::numeric_limits<T>::infinity();  // of the target
  std::vector<T> z;
};

/// Raster indices of the neighbours of a cell, ascending.
inline std::vector<int64_t> neighbours(const GridPath& solver, int64_t cell) {
  const int64_t row = cell / solver.width;
  const int64_t column = cell % solver.width;
  std::vector<int64_t> found;
  for (int64_t r = std::max<int64_t>(row - 1, 0); r <= std::min(row + 1, solver.height - 1); ++r) {
    for (int64_t c = std::max<int64_t>(column - 1, 0); c <= std::min(column + 1, solver.width - 1);
         ++c) {
      const int64_t rows = std::abs(r - row);
      const int64_t columns = std::abs(c - column);
      const bool near = solver.neighbourhood == 8 ? std::max(rows, columns) == 1  //
                                                  : rows + columns == 1;
      if (near) found.push_back(r * solver.width + c);
    }
  }
  return found;
}

/// The neighbours of every cell in one array.
class NeighbourLists {
 public:
  explicit NeighbourLists(const GridPath& solver) {
    for (int64_t v = 0; v < solver.size(); ++v) {
      for (const int64_t u : neighbours(solver, v)) cells_.push_back(u);
      ends_.push_back(cells_.size());
    }
  }
  std::span<const int64_t> of(int64_t v) const {
    const size_t begin = v == 0 ? 0 : ends_[v - 1];
    return std::span(cells_).subspan(begin, ends_[v] - begin);
  }

 private:
  std::vector<int64_t> cells_;
  std::vector<size_t> ends_;
};

template <class T>
GridPathAnswer<T> grid_path(const GridPath& solver, const T* scores, const bool* mask) {
  constexpr T kInf = std::numeric_limits<T>::infinity();
  const int64_t n = solver.size();
  const int64_t source = solver.source_cell();
  const int64_t target = solver.target_cell();
  const auto failed = [&](Status status) {
    return GridPathAnswer<T>{.status = status,
                             .z = std::vector<T>(n, std::numeric_limits<T>::quiet_NaN())};
  };

  std::vector<T> c(n);
  bool negative = false;
  for (int64_t j = 0; j < n; ++j) {
    const bool wall = mask != nullptr && !mask[j];
    if (!wall && scores[j] != scores[j]) return failed(Status::kNaN);
    negative |= !wall && scores[j] < 0;
    c[j] = wall ? kInf : std::max(scores[j], T{0});
  }
  if (negative && solver.negative == GridPath::Negative::kError) {
    return failed(Status::kNegativeCost);
  }

  const NeighbourLists near(solver);
  // Calls relax(u, v) for every step u -> v, forwards and backwards over the grid in turn, until
  // a whole pass changes nothing.
  const auto settle = [&](const auto& relax) {
    bool changed = true;
    for (bool forwards = true; changed; forwards = !forwards) {
      changed = false;
      for (int64_t i = 0; i < n; ++i) {
        const int64_t v = forwards ? i : n - 1 - i;
        if (v == source) continue;
        for (const int64_t u : near.of(v)) changed |= relax(u, v);
      }
    }
  };

  std::vector<T> d(n, kInf);
  d[source] = c[source];
  settle([&](int64_t u, int64_t v) {
    const bool better = d[u] + c[v] < d[v];
    if (better) d[v] = d[u] + c[v];
    return better;
  });
  if (d[target] == kInf) return failed(Status::kDisconnected);

  const auto tight = [&](int64_t u, int64_t v) { return d[u] + c[v] == d[v] && d[v] < kInf; };
  std::vector<int64_t> cells(n, int64_t{1} << 40);
  cells[source] = 1;
  settle([&](int64_t u, int64_t v) {
    const bool fewer = cells[u] + 1 < cells[v] && tight(u, v);
    if (fewer) cells[v] = cells[u] + 1;
    return fewer;
  });

  GridPathAnswer<T> answer{.distance = d[target], .z = std::vector<T>(n, T{0})};
  answer.z[target] = 1;
  for (int64_t v = target; v != source;) {
    const auto list = near.of(v);
    v = *std::find_if(list.begin(), list.end(),
                      [&](int64_t u) { return tight(u, v) && cells[u] + 1 == cells[v]; });
    answer.z[v] = 1;
  }
  return answer;
}

}  // namespace aimle::oracle
