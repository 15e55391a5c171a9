// Instances of TopK for the conformance test.
#pragma once

#include <algorithm>
#include <bit>

#include "aimle/map/topk.h"
#include "tests/map/conformance.h"

namespace aimle::conformance {

template <>
struct Instances<TopK> {
  static TopK draw_small(Rng& rng) {
    const int64_t n = uniform(rng, 1, 9);
    return {.n = n, .k = uniform(rng, 0, n)};
  }
  static TopK draw_any(Rng& rng) {
    const int64_t n = one_in(rng, 4) ? uniform(rng, 100, 600) : uniform(rng, 1, 70);
    return {.n = n, .k = one_in(rng, 2) ? uniform(rng, 0, n) : std::min(n, uniform(rng, 0, 12))};
  }
  static std::vector<TopK> smallest() {
    return {{.n = 1, .k = 0}, {.n = 1, .k = 1}, {.n = 2, .k = 1},  {.n = 7, .k = 0},
            {.n = 7, .k = 7}, {.n = 8, .k = 8}, {.n = 20, .k = 0}, {.n = 20, .k = 20}};
  }
  static TopK largest() { return {.n = 1'000'000, .k = 1000}; }
  static std::string text(const TopK& solver) {
    return "TopK n=" + std::to_string(solver.n) + " k=" + std::to_string(solver.k);
  }
  static int64_t draw_k(const TopK& solver, Rng& rng) {
    if (one_in(rng, 20)) return one_in(rng, 2) ? -1 : solver.n + 1;
    return uniform(rng, 0, solver.n);
  }

  static std::vector<Structure> enumerate(const TopK& solver, std::optional<int64_t> row_k) {
    std::vector<Structure> all;
    for (uint32_t bits = 0; bits < 1u << solver.n; ++bits) {
      if (std::popcount(bits) != row_k.value_or(solver.k)) continue;
      Structure& z = all.emplace_back();
      for (int64_t j = 0; j < solver.n; ++j) z.push_back(bits >> j & 1);
    }
    return all;
  }

  template <class T>
  static double value(const TopK&, const Instance<T>& row, const Structure& z) {
    return inner_product(row.scores, z);
  }

  /// A stable sort of the choosable entries.
  template <class T>
  static Answer oracle(const TopK& solver, const Instance<T>& row) {
    const int64_t k = row.k.value_or(solver.k);
    if (k < 0 || k > solver.n) return {.status = Status::kBadK};
    std::vector<int64_t> order;
    for (int64_t j = 0; j < solver.n; ++j) {
      if (row.mask != nullptr && !row.mask[j]) continue;
      if (std::isnan(row.scores[j])) return {.status = Status::kNaN};
      if (row.scores[j] > -std::numeric_limits<T>::infinity()) order.push_back(j);
    }
    if (static_cast<int64_t>(order.size()) < k) return {.status = Status::kTooFewEntries};
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return row.scores[a] > row.scores[b]; });
    Answer answer{.status = Status::kOk, .z = Structure(static_cast<size_t>(solver.n))};
    for (int64_t i = 0; i < k; ++i)
      answer.z[static_cast<size_t>(order[static_cast<size_t>(i)])] = 1;
    return answer;
  }
};

}  // namespace aimle::conformance
