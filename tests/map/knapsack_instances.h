// Instances of Knapsack for the conformance test.
#pragma once

#include <map>
#include <utility>

#include "aimle/map/knapsack.h"
#include "tests/map/conformance.h"

namespace aimle::conformance {

template <>
struct Instances<Knapsack> {
  static Knapsack draw_small(Rng& rng) { return {.n = uniform(rng, 1, 9)}; }
  static Knapsack draw_any(Rng& rng) {
    return {.n = one_in(rng, 4) ? uniform(rng, 20, 60) : uniform(rng, 1, 20)};
  }
  static std::vector<Knapsack> smallest() { return {{.n = 0}, {.n = 1}, {.n = 2}}; }
  static Knapsack largest() { return {.n = 500}; }
  static std::string text(const Knapsack& solver) {
    return "Knapsack n=" + std::to_string(solver.n);
  }
  /// Weights of several scales, those of zero and those that do not fit among them; capacities from
  /// nothing to more than everything.
  static std::vector<int64_t> draw_data(const Knapsack& solver, Rng& rng) {
    const int64_t scale = one_in(rng, 3) ? 7 : 1, largest = uniform(rng, 1, 12);
    std::vector<int64_t> data;
    int64_t total = 0;
    for (int64_t j = 0; j < solver.n; ++j) {
      data.push_back(scale * uniform(rng, 0, largest));
      total += data.back();
    }
    data.push_back(one_in(rng, 8) ? total + 1 : uniform(rng, 0, std::max<int64_t>(total / 2, 1)));
    if (one_in(rng, 40)) data[static_cast<size_t>(uniform(rng, 0, solver.n))] = -1;
    return data;
  }

  static std::vector<Structure> enumerate(const Knapsack& solver, const int64_t* data) {
    std::vector<Structure> all;
    for (uint32_t items = 0; items < 1u << solver.n; ++items) {
      Structure z;
      int64_t weight = 0;
      for (int64_t j = 0; j < solver.n; ++j) {
        z.push_back(items >> j & 1);
        weight += z.back() * data[j];
      }
      if (weight <= data[solver.n]) all.push_back(std::move(z));
    }
    return all;
  }

  /// Masked and worthless items count for nothing.
  template <class T>
  static double value(const Knapsack&, const Instance<T>& row, const Structure& z) {
    return inner_product(row.scores, z);
  }

  /// The recursion of knapsack.h as it stands, by memory of (j, c) alone.
  template <class T>
  class Recursion {
   public:
    Recursion(const Knapsack& solver, const Instance<T>& row) : solver_(solver), row_(row) {}

    T best(int64_t j, int64_t c) {
      if (j < 0) return T(0);
      const auto known = best_.find({j, c});
      if (known != best_.end()) return known->second;
      const T without = best(j - 1, c);
      return best_[{j, c}] = takes(j, c) ? with(j, c) : without;
    }
    bool takes(int64_t j, int64_t c) {
      if (row_.mask != nullptr && !row_.mask[j]) return false;
      if (row_.data[j] > c || row_.scores[j] == -std::numeric_limits<T>::infinity()) return false;
      return with(j, c) > best(j - 1, c);
    }

   private:
    T with(int64_t j, int64_t c) { return best(j - 1, c - row_.data[j]) + row_.scores[j]; }

    const Knapsack& solver_;
    const Instance<T>& row_;
    std::map<std::pair<int64_t, int64_t>, T> best_;
  };

  template <class T>
  static Answer oracle(const Knapsack& solver, const Instance<T>& row) {
    for (int64_t j = 0; j < solver.n; ++j) {
      const bool allowed = row.mask == nullptr || row.mask[j];
      if (allowed && std::isnan(row.scores[j])) return {.status = Status::kNaN};
    }
    for (int64_t j = 0; j <= solver.n; ++j) {
      if (row.data[j] < 0) return {.status = Status::kBadData};
    }
    Recursion<T> recursion(solver, row);
    Answer answer{.status = Status::kOk, .z = Structure(static_cast<size_t>(solver.n))};
    int64_t left = row.data[solver.n];
    for (int64_t j = solver.n; j-- > 0;) {
      if (!recursion.takes(j, left)) continue;
      answer.z[static_cast<size_t>(j)] = 1;
      left -= row.data[j];
    }
    return answer;
  }
};

}  // namespace aimle::conformance
