// Instances of GridPath for the conformance test.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "aimle/map/grid_path.h"
#include "tests/map/conformance.h"
#include "tests/map/grid_path_oracle.h"

namespace aimle::conformance {

template <>
struct Instances<GridPath> {
  static GridPath draw_small(Rng& rng) {
    GridPath solver{.height = uniform(rng, 1, 3), .width = uniform(rng, 1, 3)};
    if (one_in(rng, 10)) solver = {.height = 3, .width = 4};
    if (one_in(rng, 10)) solver = {.height = 4, .width = 3};
    return with_options(solver, rng);
  }
  static GridPath draw_any(Rng& rng) {
    const int64_t longest = one_in(rng, 4) ? 25 : 9;
    return with_options({.height = uniform(rng, 1, longest), .width = uniform(rng, 1, longest)},
                        rng);
  }
  static std::vector<GridPath> smallest() {
    return {
        {.height = 1, .width = 1}, {.height = 1, .width = 2, .source = {0, 1}},
        {.height = 2, .width = 1}, {.height = 1, .width = 9, .source = {0, 4}, .target = {0, 2}},
        {.height = 9, .width = 1}, {.height = 2, .width = 2, .neighbourhood = 4}};
  }
  static GridPath largest() { return {.height = 512, .width = 512}; }
  static std::string text(const GridPath& solver) {
    return "GridPath height=" + std::to_string(solver.height) +
           " width=" + std::to_string(solver.width) +
           " neighbourhood=" + std::to_string(solver.neighbourhood) +
           " source=" + std::to_string(solver.source_cell()) +
           " target=" + std::to_string(solver.target_cell()) +
           (solver.negative == GridPath::Negative::kClip ? " clip" : " error");
  }

  /// Every simple path, by depth-first search.
  static std::vector<Structure> enumerate(const GridPath& solver, std::optional<int64_t>) {
    std::vector<Structure> all;
    Structure z(static_cast<size_t>(solver.size()));
    extend(solver, solver.source_cell(), z, all);
    return all;
  }

  template <class T>
  static double value(const GridPath&, const Instance<T>& row, const Structure& z) {
    double sum = 0;
    for (size_t j = 0; j < z.size(); ++j) {
      if (z[j] != 0) sum += std::max(0.0, static_cast<double>(row.scores[j]));
    }
    return sum;
  }

  template <class T>
  static Answer oracle(const GridPath& solver, const Instance<T>& row) {
    const auto answer = aimle::oracle::grid_path(solver, row.scores, row.mask);
    if (answer.status != Status::kOk) return {.status = answer.status};
    return {.status = Status::kOk, .z = Structure(answer.z.begin(), answer.z.end())};
  }

 private:
  static GridPath with_options(GridPath solver, Rng& rng) {
    if (one_in(rng, 3)) solver.neighbourhood = 4;
    if (one_in(rng, 10)) solver.negative = GridPath::Negative::kError;
    if (one_in(rng, 2)) {
      const auto cell = [&] {
        const int64_t row = uniform(rng, -solver.height, solver.height - 1);
        return Cell{row, uniform(rng, -solver.width, solver.width - 1)};
      };
      solver.source = cell();
      solver.target = cell();
    }
    return solver;
  }

  static void extend(const GridPath& solver, int64_t cell, Structure& z,
                     std::vector<Structure>& all) {
    z[static_cast<size_t>(cell)] = 1;
    if (cell == solver.target_cell()) {
      all.push_back(z);
    } else {
      for (const int64_t next : aimle::oracle::neighbours(solver, cell)) {
        if (z[static_cast<size_t>(next)] == 0) extend(solver, next, z, all);
      }
    }
    z[static_cast<size_t>(cell)] = 0;
  }
};

}  // namespace aimle::conformance
