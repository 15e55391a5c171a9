// Instances of Assignment for the conformance test.
#pragma once

#include <algorithm>

#include "aimle/map/assignment.h"
#include "tests/map/conformance.h"

namespace aimle::conformance {

/// A weight and, for ties, the columns of the rows, four to a word: compared word by word.
class RankedWeight {
 public:
  RankedWeight() = default;
  /// Row `row` has a column that `better` columns are behind, counted from 1.
  RankedWeight(int64_t weight, int64_t rows, int64_t row, int64_t better)
      : words_(static_cast<size_t>(1 + (rows + 3) / 4)) {
    words_[0] = weight;
    words_[static_cast<size_t>(1 + row / 4)] = better << (45 - 15 * (row % 4));
  }

  RankedWeight& operator+=(const RankedWeight& other) { return combine(other, 1); }
  RankedWeight& operator-=(const RankedWeight& other) { return combine(other, -1); }
  friend RankedWeight operator-(RankedWeight a, const RankedWeight& b) { return a -= b; }
  bool operator<(const RankedWeight& other) const {
    const size_t longest = std::max(words_.size(), other.words_.size());
    for (size_t i = 0; i < longest; ++i) {
      if (word(i) != other.word(i)) return word(i) < other.word(i);
    }
    return false;
  }

 private:
  int64_t word(size_t i) const { return i < words_.size() ? words_[i] : 0; }
  RankedWeight& combine(const RankedWeight& other, int64_t sign) {
    words_.resize(std::max(words_.size(), other.words_.size()));
    for (size_t i = 0; i < other.words_.size(); ++i) words_[i] += sign * other.words_[i];
    return *this;
  }

  std::vector<int64_t> words_;  // none: zero
};

template <>
struct Instances<Assignment> {
  static Assignment draw_small(Rng& rng) {
    const int64_t ones = uniform(rng, 1, 4), more = one_in(rng, 2) ? 0 : uniform(rng, 1, 2);
    return one_in(rng, 2) ? Assignment{.rows = ones, .columns = ones + more}
                          : Assignment{.rows = ones + more, .columns = ones};
  }
  static Assignment draw_any(Rng& rng) {
    if (one_in(rng, 2)) {
      const int64_t side = one_in(rng, 8) ? uniform(rng, 12, 20) : uniform(rng, 1, 9);
      return {.rows = side, .columns = side};
    }
    const int64_t most = one_in(rng, 8) ? 40 : 11;
    return {.rows = uniform(rng, 1, 6), .columns = uniform(rng, 1, most)};
  }
  static std::vector<Assignment> smallest() {
    return {{.rows = 1, .columns = 1}, {.rows = 1, .columns = 5}, {.rows = 5, .columns = 1},
            {.rows = 2, .columns = 2}, {.rows = 2, .columns = 3}, {.rows = 3, .columns = 2}};
  }
  static Assignment largest() { return {.rows = 60, .columns = 64}; }
  static std::string text(const Assignment& solver) {
    return "Assignment " + std::to_string(solver.rows) + " x " + std::to_string(solver.columns);
  }

  static std::vector<Structure> enumerate(const Assignment& solver, std::optional<int64_t>) {
    // The longer side in all orders, what is left over in one of them.
    const bool wide = solver.rows <= solver.columns;
    std::vector<int64_t> order(static_cast<size_t>(std::max(solver.rows, solver.columns)));
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    std::vector<Structure> all;
    do {
      if (!std::is_sorted(order.begin() + solver.ones(), order.end())) continue;
      Structure z(static_cast<size_t>(solver.size()));
      for (int64_t i = 0; i < solver.ones(); ++i) {
        const int64_t other = order[static_cast<size_t>(i)];
        z[static_cast<size_t>(wide ? i * solver.columns + other : other * solver.columns + i)] = 1;
      }
      all.push_back(z);
    } while (std::next_permutation(order.begin(), order.end()));
    return all;
  }

  template <class T>
  static double value(const Assignment&, const Instance<T>& row, const Structure& z) {
    return inner_product(row.scores, z);
  }

  /// Weights that are never tied: the tie rule is in their lower words. Potentials, one row at a
  /// time, over a square padded with zeros.
  template <class T>
  static Answer oracle(const Assignment& solver, const Instance<T>& row) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    const int64_t n = solver.rows, m = solver.columns, side = std::max(n, m);
    double largest = 0;
    bool infinite = false;
    const auto allowed = [&](int64_t e) {
      return (row.mask == nullptr || row.mask[e]) && !(static_cast<double>(row.scores[e]) == -kInf);
    };
    for (int64_t e = 0; e < n * m; ++e) {
      if (!allowed(e)) continue;
      const auto x = static_cast<double>(row.scores[e]);
      if (std::isnan(x)) return {.status = Status::kNaN};
      infinite |= x == kInf;
      if (x < kInf) largest = std::max(largest, std::abs(x));
    }
    int exponent = 0;
    std::frexp(largest, &exponent);
    const int log = static_cast<int>(std::ceil(std::log2(static_cast<double>(std::min(n, m)))));
    const int bits = infinite ? 48 - 2 * log : 50 - log;
    const auto weight = [&](int64_t e) {
      const auto x = static_cast<double>(row.scores[e]);
      if (x == kInf) return int64_t{1} << (50 - log);
      return static_cast<int64_t>(std::nearbyint(std::ldexp(x, bits - exponent)));
    };
    // costs[i][j] of row i and column j, both counted from 1
    std::vector<std::vector<std::optional<RankedWeight>>> costs(
        static_cast<size_t>(side + 1),
        std::vector<std::optional<RankedWeight>>(static_cast<size_t>(side + 1), RankedWeight()));
    for (int64_t e = 0; e < n * m; ++e) {
      auto& cost = costs[static_cast<size_t>(e / m + 1)][static_cast<size_t>(e % m + 1)];
      if (allowed(e)) {
        cost = RankedWeight(-weight(e), n, e / m, -(m - e % m));
      } else {
        cost.reset();
      }
    }
    std::vector<RankedWeight> u(static_cast<size_t>(side + 1)), v(u);
    std::vector<size_t> match(u.size(), 0), way(u.size(), 0);
    for (size_t i = 1; i < u.size(); ++i) {
      match[0] = i;
      size_t at = 0;
      std::vector<std::optional<RankedWeight>> slack(u.size());
      std::vector<bool> used(u.size());
      do {
        used[at] = true;
        std::optional<size_t> next;
        for (size_t j = 1; j < u.size(); ++j) {
          if (used[j]) continue;
          const auto& cost = costs[match[at]][j];
          if (cost) {
            const RankedWeight reduced = *cost - u[match[at]] - v[j];
            if (!slack[j] || reduced < *slack[j]) {
              slack[j] = reduced;
              way[j] = at;
            }
          }
          if (slack[j] && (!next || *slack[j] < *slack[*next])) next = j;
        }
        if (!next) return {.status = Status::kTooFewEntries};
        const RankedWeight step = *slack[*next];
        for (size_t j = 0; j < u.size(); ++j) {
          if (used[j]) {
            u[match[j]] += step;
            v[j] -= step;
          } else if (slack[j]) {
            *slack[j] -= step;
          }
        }
        at = *next;
      } while (match[at] != 0);
      while (at != 0) {
        match[at] = match[way[at]];
        at = way[at];
      }
    }
    Answer answer{.status = Status::kOk, .z = Structure(static_cast<size_t>(n * m))};
    for (int64_t j = 1; j <= m; ++j) {
      const auto i = static_cast<int64_t>(match[static_cast<size_t>(j)]);
      if (i <= n) answer.z[static_cast<size_t>((i - 1) * m + j - 1)] = 1;
    }
    return answer;
  }
};

}  // namespace aimle::conformance
