// Instances of Bernoulli for the conformance test.
#pragma once

#include "aimle/map/bernoulli.h"
#include "tests/map/conformance.h"

namespace aimle::conformance {

template <>
struct Instances<Bernoulli> {
  static Bernoulli draw_small(Rng& rng) { return {.n = uniform(rng, 0, 8)}; }
  static Bernoulli draw_any(Rng& rng) {
    return {.n = one_in(rng, 4) ? uniform(rng, 100, 600) : uniform(rng, 0, 70)};
  }
  static std::vector<Bernoulli> smallest() { return {{.n = 0}, {.n = 1}, {.n = 2}}; }
  static Bernoulli largest() { return {.n = 1'000'000}; }
  static std::string text(const Bernoulli& solver) {
    return "Bernoulli n=" + std::to_string(solver.n);
  }

  static std::vector<Structure> enumerate(const Bernoulli& solver, std::optional<int64_t>) {
    std::vector<Structure> all;
    for (uint32_t bits = 0; bits < 1u << solver.n; ++bits) {
      Structure& z = all.emplace_back();
      for (int64_t j = 0; j < solver.n; ++j) z.push_back(bits >> j & 1);
    }
    return all;
  }

  template <class T>
  static double value(const Bernoulli&, const Instance<T>& row, const Structure& z) {
    return inner_product(row.scores, z);
  }

  /// An entry is on if the row with it alone is worth more than nothing.
  template <class T>
  static Answer oracle(const Bernoulli& solver, const Instance<T>& row) {
    Answer answer{.status = Status::kOk};
    for (int64_t j = 0; j < solver.n; ++j) {
      const bool allowed = row.mask == nullptr || row.mask[j];
      if (allowed && std::isnan(row.scores[j])) return {.status = Status::kNaN};
      answer.z.push_back(allowed && !std::signbit(row.scores[j]) && row.scores[j] != 0);
    }
    return answer;
  }
};

}  // namespace aimle::conformance
