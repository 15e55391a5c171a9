// Difficult grids for the tests of GridPath.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "aimle/map/grid_path.h"

namespace aimle::oracle {

/// Costs that make trouble: `kind` 0 uniform, 1 terrain of five costs, 2 small integers with zeros
/// of both signs, 3 subnormals, 4 many walls, 5 any sign and -inf, 6 a rare NaN, 7 magnitudes so
/// far apart that sums absorb and overflow, 8 all equal.
template <class T>
std::vector<T> troubling_costs(std::mt19937_64& random, int64_t size, int kind) {
  constexpr T kInf = std::numeric_limits<T>::infinity();
  constexpr T kTerrain[] = {T(0.8), T(1.2), T(5.3), T(7.7), T(9.2)};
  constexpr int kHalfRange = std::numeric_limits<T>::max_exponent / 2;
  std::uniform_real_distribution<T> uniform(0, 1);
  std::uniform_int_distribution<int> small(0, 4), percent(0, 99);
  std::uniform_int_distribution<int> exponent(-kHalfRange, 2 * kHalfRange - 1);
  std::vector<T> costs(static_cast<size_t>(size));
  const T common = uniform(random);
  for (T& cost : costs) {
    cost = uniform(random);
    if (kind == 1) cost = kTerrain[small(random)];
    if (kind == 2) cost = percent(random) < 50 ? T(-0.0) : T(small(random) / 2);
    if (kind == 3) cost = std::numeric_limits<T>::denorm_min() * T(small(random));
    if (kind == 4 && percent(random) < 35) cost = kInf;
    if (kind == 5) cost = percent(random) < 2 ? -kInf : cost - T(0.5);
    if (kind == 6 && percent(random) < 1) cost = std::numeric_limits<T>::quiet_NaN();
    if (kind == 7) cost = std::ldexp(cost, percent(random) < 50 ? 0 : exponent(random));
    if (kind == 8) cost = common;
  }
  return costs;
}

constexpr int kKindsOfCosts = 9;

/// Any shape, now and then a long one, with any ends and settings.
inline GridPath any_settings(std::mt19937_64& random) {
  const auto one_in = [&](uint64_t n) { return random() % n == 0; };
  const uint64_t longest = one_in(20) ? 20 : 6;
  GridPath solver{.height = static_cast<int64_t>(1 + random() % longest),
                  .width = static_cast<int64_t>(1 + random() % longest),
                  .neighbourhood = one_in(3) ? 4 : 8,
                  .negative = one_in(4) ? GridPath::Negative::kError : GridPath::Negative::kClip};
  if (one_in(30)) solver.height *= 15;
  if (one_in(30)) solver.width *= 15;
  if (one_in(2)) {
    std::uniform_int_distribution<int64_t> row(-solver.height, solver.height - 1);
    std::uniform_int_distribution<int64_t> column(-solver.width, solver.width - 1);
    solver.source = {row(random), column(random)};
    solver.target = {row(random), column(random)};
  }
  return solver;
}

/// Corridors of uniform costs between walls, with exactly one way between any two cells: a
/// depth-first search that breaks down walls.
template <class T>
std::vector<T> maze(std::mt19937_64& random, int64_t height, int64_t width) {
  std::uniform_real_distribution<T> uniform(0, 1);
  std::vector<T> costs(static_cast<size_t>(height * width), std::numeric_limits<T>::infinity());
  std::vector<int64_t> trail = {0};
  costs[0] = uniform(random);
  while (!trail.empty()) {
    const int64_t r = trail.back() / width;
    const int64_t c = trail.back() % width;
    std::vector<std::pair<int64_t, int64_t>> ways;  // room, wall before it
    for (const auto& [dr, dc] : {std::pair{-1, 0}, {0, -1}, {0, 1}, {1, 0}}) {
      const int64_t to_r = r + 2 * dr;
      const int64_t to_c = c + 2 * dc;
      if (to_r < 0 || to_r >= height || to_c < 0 || to_c >= width) continue;
      if (std::isfinite(costs[to_r * width + to_c])) continue;
      ways.emplace_back(to_r * width + to_c, (r + dr) * width + c + dc);
    }
    if (ways.empty()) {
      trail.pop_back();
      continue;
    }
    const auto [room, wall] = ways[random() % ways.size()];
    costs[room] = uniform(random);
    costs[wall] = uniform(random);
    trail.push_back(room);
  }
  return costs;
}

}  // namespace aimle::oracle
