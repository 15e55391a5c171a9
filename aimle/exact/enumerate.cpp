#include "aimle/exact/enumerate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "aimle/base/check.h"
#include "aimle/map/argmax.h"
#include "aimle/map/assignment.h"
#include "aimle/map/grid_path.h"
#include "aimle/map/knapsack.h"
#include "aimle/map/lattice_path.h"
#include "aimle/map/spanning_tree.h"
#include "aimle/map/topk.h"

namespace aimle {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// n over k, or more than kMaxStructures.
int64_t binomial(int64_t n, int64_t k) {
  k = std::min(k, n - k);
  int64_t result = 1;
  for (int64_t i = 1; i <= k && result <= kMaxStructures; ++i) result = result * (n - k + i) / i;
  return result;
}

bool is_tree(uint32_t edges, const std::vector<std::pair<int, int>>& ends, int vertices) {
  uint32_t reached = 1;
  for (int round = 0; round < vertices; ++round) {
    for (uint32_t left = edges; left != 0; left &= left - 1) {
      const auto [i, j] = ends[static_cast<size_t>(std::countr_zero(left))];
      if ((reached >> i & 1) != (reached >> j & 1)) reached |= 1u << i | 1u << j;
    }
  }
  return std::popcount(reached) == vertices;
}

/// The next larger number with the same number of ones.
uint32_t next_of_same_count(uint32_t bits) {
  const uint32_t lowest = bits & -bits;
  const uint32_t carried = bits + lowest;
  return carried | (((bits ^ carried) >> 2) / lowest);
}

/// Every simple path from `cell` on, as a set of cells.
class Walker {
 public:
  explicit Walker(const GridPath& grid) : grid_(grid), ways_(static_cast<size_t>(grid.size())) {
    const auto height = static_cast<int>(grid.height), width = static_cast<int>(grid.width);
    for (int a = 0; a < height * width; ++a) {
      for (int b = 0; b < height * width; ++b) {
        const int rows = std::abs(a / width - b / width);
        const int columns = std::abs(a % width - b % width);
        const bool near =
            grid.neighbourhood == 8 ? std::max(rows, columns) == 1 : rows + columns == 1;
        if (near) ways_[static_cast<size_t>(a)] |= 1u << b;
      }
    }
  }

  std::vector<uint32_t> sets() {
    walk(static_cast<int>(grid_.source_cell()), 1u << grid_.source_cell());
    std::sort(found_.begin(), found_.end());
    found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
    return std::move(found_);
  }

 private:
  void walk(int cell, uint32_t visited) {
    if (cell == grid_.target_cell()) return found_.push_back(visited);
    for (uint32_t left = ways_[static_cast<size_t>(cell)] & ~visited; left != 0; left &= left - 1) {
      const int next = std::countr_zero(left);
      walk(next, visited | 1u << next);
    }
  }

  const GridPath& grid_;
  std::vector<uint32_t> ways_;
  std::vector<uint32_t> found_;
};

/// Every path through a lattice, ordered by the moves from the first step on.
template <LatticeScores kScores>
class LatticeWalker {
 public:
  explicit LatticeWalker(const Lattice<kScores>& lattice)
      : lattice_(lattice), z_(static_cast<size_t>(lattice.size())) {}

  std::vector<uint8_t> paths() {
    walk(0, 0);
    return std::move(found_);
  }

 private:
  void walk(int64_t t, int64_t u) {
    if constexpr (kScores == LatticeScores::kCells) mark(t * lattice_.width + u, 1);
    if (t == lattice_.height - 1 && u == lattice_.width - 1) {
      found_.insert(found_.end(), z_.begin(), z_.end());
    }
    for (int64_t move = 0; move < 3; ++move) {
      const int64_t down = t + (move != 2), across = u + (move != 1);
      if ((static_cast<int64_t>(lattice_.moves) >> move & 1) == 0) continue;
      if (down == lattice_.height || across == lattice_.width) continue;
      const int64_t entry = 3 * (down * lattice_.width + across) + move;
      if constexpr (kScores == LatticeScores::kMoves) mark(entry, 1);
      walk(down, across);
      if constexpr (kScores == LatticeScores::kMoves) mark(entry, 0);
    }
    if constexpr (kScores == LatticeScores::kCells) mark(t * lattice_.width + u, 0);
  }

  void mark(int64_t entry, uint8_t value) { z_[static_cast<size_t>(entry)] = value; }

  const Lattice<kScores>& lattice_;
  std::vector<uint8_t> z_, found_;
};

double sign(const Solver& solver) { return solver.sense() == Sense::kMax ? 1.0 : -1.0; }

}  // namespace

std::vector<uint8_t> Argmax::structures() const {
  validate();
  return TopK{.n = n, .k = 1}.structures();
}

double TopK::structure_count() const {
  double count = 1.0;
  for (int64_t i = 1; i <= std::min(k, n - k); ++i) {
    count = count * static_cast<double>(n - i + 1) / static_cast<double>(i);
  }
  return count;
}

double SpanningTree::structure_count() const {
  if (vertices > kMaxEnumeratedVertices) return kInf;
  return std::pow(static_cast<double>(vertices),
                  static_cast<double>(std::max<int64_t>(vertices - 2, 0)));
}

double GridPath::structure_count() const {
  constexpr double kMostPaths = 3441;  // of 4 x 4 cells
  return std::max(height, width) <= kMaxEnumeratedSide ? kMostPaths : kInf;
}

std::vector<uint8_t> TopK::structures() const {
  validate();
  const int64_t count = binomial(n, k);
  check_structure_count(static_cast<double>(count), "for n=", n, ", k=", k);
  std::vector<uint8_t> all;
  all.reserve(static_cast<size_t>(count * n));
  std::vector<uint8_t> z(static_cast<size_t>(n));
  std::fill_n(z.begin(), k, uint8_t{1});
  do {
    all.insert(all.end(), z.begin(), z.end());
  } while (std::prev_permutation(z.begin(), z.end()));
  return all;
}

std::vector<uint8_t> SpanningTree::structures() const {
  validate();
  AIMLE_CHECK(vertices <= kMaxEnumeratedVertices, "[aimle::enumerate] expected at most ",
              kMaxEnumeratedVertices, " vertices but got vertices=", vertices);
  const int64_t n = vertices;
  const bool directed = layout == SpanningTree::Layout::kDirected;
  std::vector<std::pair<int, int>> ends;
  for (int i = 0; i < n; ++i) {
    for (int j = i + 1; j < n; ++j) ends.emplace_back(i, j);
  }
  std::vector<uint8_t> all;
  if (n == 1) return all;
  const uint32_t end = 1u << edges();
  for (uint32_t edges = (1u << (n - 1)) - 1; edges < end; edges = next_of_same_count(edges)) {
    if (!is_tree(edges, ends, static_cast<int>(n))) continue;
    const size_t at = all.size();
    all.resize(at + static_cast<size_t>(size()));
    for (uint32_t left = edges; left != 0; left &= left - 1) {
      const auto edge = static_cast<size_t>(std::countr_zero(left));
      const auto [i, j] = ends[edge];
      if (directed) {
        all[at + static_cast<size_t>(SpanningTree::arc(i, j, n))] = 1;
        all[at + static_cast<size_t>(SpanningTree::arc(j, i, n))] = 1;
      } else {
        all[at + edge] = 1;
      }
    }
  }
  return all;
}

std::vector<uint8_t> GridPath::structures() const {
  validate();
  AIMLE_CHECK(height <= kMaxEnumeratedSide && width <= kMaxEnumeratedSide,
              "[aimle::enumerate] expected a grid of at most ", kMaxEnumeratedSide, " x ",
              kMaxEnumeratedSide, " cells but got height=", height, ", width=", width);
  std::vector<uint8_t> all;
  for (const uint32_t cells : Walker(*this).sets()) {
    for (int64_t j = 0; j < size(); ++j) all.push_back(cells >> j & 1);
  }
  return all;
}

double Knapsack::structure_count() const { return std::pow(2.0, static_cast<double>(n)); }

std::vector<uint8_t> Knapsack::structures() const {
  validate();
  constexpr int64_t kMostItems = 19;
  AIMLE_CHECK(n <= kMostItems, "[aimle::enumerate] expected at most ", kMostItems,
              " items but got n=", n);
  AIMLE_CHECK(std::ssize(known_data) == n + 1, "[aimle::enumerate] expected the weights of the ", n,
              " items and the capacity as data");
  std::vector<uint8_t> all;
  for (uint32_t items = 0; items < 1u << n; ++items) {
    int64_t left = known_data[static_cast<size_t>(n)];
    for (int64_t j = 0; j < n && left >= 0; ++j) {
      if ((items >> j & 1) != 0) left -= known_data[static_cast<size_t>(j)];
    }
    for (int64_t j = 0; j < n && left >= 0; ++j) all.push_back(items >> j & 1);
  }
  return all;
}

template <LatticeScores kScores>
double Lattice<kScores>::structure_count() const {
  const auto columns = static_cast<size_t>(width) + 1;
  std::vector<double> above(columns), here(columns);
  above[0] = 1;  // before the first cell
  for (int64_t t = 0; t < height; ++t) {
    here[0] = 0;
    for (size_t u = 1; u < columns; ++u) {
      const bool diagonal = moves != Moves::kStraight || (t == 0 && u == 1);
      here[u] =
          (diagonal ? above[u - 1] : 0) + above[u] + (moves != Moves::kDiagonal ? here[u - 1] : 0);
    }
    std::swap(above, here);
  }
  return above.back();
}

template <LatticeScores kScores>
std::vector<uint8_t> Lattice<kScores>::structures() const {
  validate();
  const double count = structure_count();
  AIMLE_CHECK(count > 0, "[aimle::enumerate] expected a lattice with a path, of at least as many ",
              "rows as columns for moves=diagonal, but got height=", height, ", width=", width);
  check_structure_count(count, "for height=", height, ", width=", width);
  return LatticeWalker(*this).paths();
}

template std::vector<uint8_t> LatticePath::structures() const;
template std::vector<uint8_t> LatticeMoves::structures() const;
template double LatticePath::structure_count() const;
template double LatticeMoves::structure_count() const;

void Solver::throw_no_structures(std::string_view name) {
  AIMLE_CHECK(false, "[aimle::enumerate] the structures of ", name, " cannot be listed");
}

Expectation expectation(const Solver& solver, const double* scores, const bool* mask,
                        FunctionRef<double(const uint8_t* z)> f) {
  const std::vector<uint8_t> all = solver.structures();
  const auto size = static_cast<size_t>(solver.size());
  const auto refused = [&](Status status) {
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    return Expectation{
        .status = status, .value = kNaN, .gradient = std::vector<double>(size, kNaN)};
  };
  std::vector<double> x(size);
  for (size_t j = 0; j < size; ++j) {
    x[j] = mask == nullptr || mask[j] ? sign(solver) * scores[j] : -kInf;
    if (std::isnan(x[j]) || x[j] == kInf) return refused(Status::kNaN);
  }
  // A tree of one vertex is one structure without entries.
  std::vector<double> p(size == 0 ? 1 : all.size() / size);
  for (size_t i = 0; i < p.size(); ++i) {
    for (size_t j = 0; j < size; ++j) p[i] += all[i * size + j] != 0 ? x[j] : 0;
  }
  const double largest = *std::max_element(p.begin(), p.end());
  if (largest == -kInf) {
    const bool entries = solver.swaps() == Swaps::kEntry || solver.is<Assignment>();
    return refused(entries ? Status::kTooFewEntries : Status::kDisconnected);
  }
  for (double& weight : p) weight = std::exp(weight - largest);
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  std::vector<double> values(p.size());
  Expectation result{.gradient = std::vector<double>(size)};
  for (size_t i = 0; i < p.size(); ++i) {
    p[i] /= total;
    if (p[i] == 0) continue;
    values[i] = f(all.data() + i * size);
    result.value += p[i] * values[i];
  }
  for (size_t i = 0; i < p.size(); ++i) {
    const double weight = sign(solver) * p[i] * (values[i] - result.value);
    for (size_t j = 0; j < size; ++j) {
      if (all[i * size + j] != 0) result.gradient[j] += weight;
    }
  }
  return result;
}

}  // namespace aimle
