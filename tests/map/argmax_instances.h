// Instances of Argmax for the conformance test.
#pragma once

#include "aimle/map/argmax.h"
#include "tests/map/conformance.h"

namespace aimle::conformance {

template <>
struct Instances<Argmax> {
  static Argmax draw_small(Rng& rng) { return {.n = uniform(rng, 1, 12)}; }
  static Argmax draw_any(Rng& rng) {
    return {.n = one_in(rng, 4) ? uniform(rng, 100, 600) : uniform(rng, 1, 70)};
  }
  static std::vector<Argmax> smallest() { return {{.n = 1}, {.n = 2}}; }
  static Argmax largest() { return {.n = 1'000'000}; }
  static std::string text(const Argmax& solver) { return "Argmax n=" + std::to_string(solver.n); }

  static std::vector<Structure> enumerate(const Argmax& solver, std::optional<int64_t>) {
    std::vector<Structure> all(static_cast<size_t>(solver.n),
                               Structure(static_cast<size_t>(solver.n)));
    for (size_t j = 0; j < all.size(); ++j) all[j][j] = 1;
    return all;
  }

  template <class T>
  static double value(const Argmax&, const Instance<T>& row, const Structure& z) {
    return inner_product(row.scores, z);
  }

  /// Walks from the right, so that among equals the lowest index is the last to take the crown.
  template <class T>
  static Answer oracle(const Argmax& solver, const Instance<T>& row) {
    int64_t best = -1;
    for (int64_t j = solver.n - 1; j >= 0; --j) {
      if (row.mask != nullptr && !row.mask[j]) continue;
      if (std::isnan(row.scores[j])) return {.status = Status::kNaN};
      if (row.scores[j] == -std::numeric_limits<T>::infinity()) continue;
      if (best < 0 || row.scores[j] >= row.scores[best]) best = j;
    }
    if (best < 0) return {.status = Status::kTooFewEntries};
    Answer answer{.status = Status::kOk, .z = Structure(static_cast<size_t>(solver.n))};
    answer.z[static_cast<size_t>(best)] = 1;
    return answer;
  }
};

}  // namespace aimle::conformance
