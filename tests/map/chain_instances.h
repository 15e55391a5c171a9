// Instances of Chain for the conformance test.
#pragma once

#include <optional>

#include "aimle/map/chain.h"
#include "tests/map/conformance.h"

namespace aimle::conformance {

template <>
struct Instances<Chain> {
  static Chain draw_small(Rng& rng) {
    const int64_t labels = uniform(rng, 1, 4);
    return {.length = uniform(rng, 1, labels == 1 ? 6 : 4), .labels = labels};
  }
  static Chain draw_any(Rng& rng) {
    if (one_in(rng, 4)) return {.length = uniform(rng, 1, 60), .labels = uniform(rng, 1, 3)};
    if (one_in(rng, 3)) return {.length = uniform(rng, 2, 3), .labels = uniform(rng, 10, 45)};
    return {.length = uniform(rng, 1, 8), .labels = uniform(rng, 1, 12)};
  }
  static std::vector<Chain> smallest() {
    return {{.length = 1, .labels = 1}, {.length = 1, .labels = 3}, {.length = 2, .labels = 1},
            {.length = 2, .labels = 2}, {.length = 9, .labels = 1}, {.length = 2, .labels = 9}};
  }
  static Chain largest() { return {.length = 1000, .labels = 30}; }
  static std::string text(const Chain& solver) {
    return "Chain length=" + std::to_string(solver.length) +
           " labels=" + std::to_string(solver.labels);
  }

  static std::vector<Structure> enumerate(const Chain& solver, std::optional<int64_t>) {
    return sequences(solver, solver.length);
  }
  /// A mask may shorten the chain.
  static std::vector<Structure> enumerate_row(const Chain& solver, const bool* mask) {
    return sequences(solver, length_of(solver, mask));
  }

  template <class T>
  static double value(const Chain&, const Instance<T>& row, const Structure& z) {
    return inner_product(row.scores, z);
  }

  /// The best sequence to every label, written out.
  template <class T>
  static Answer oracle(const Chain& solver, const Instance<T>& row) {
    struct Sequence {
      T sum;
      std::vector<int64_t> labels;
    };
    const int64_t n = solver.labels, length = length_of(solver, row.mask);
    bool nan = false;
    for (int64_t e = 0; e < solver.size(); ++e) {
      nan |= (row.mask == nullptr || row.mask[e]) && std::isnan(row.scores[e]);
    }
    if (nan) return {.status = Status::kNaN};
    std::vector<std::optional<Sequence>> to(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) to[static_cast<size_t>(i)] = Sequence{T(0), {i}};
    for (int64_t t = 0; t + 1 < length; ++t) {
      std::vector<std::optional<Sequence>> next(static_cast<size_t>(n));
      for (int64_t j = 0; j < n; ++j) {
        std::optional<Sequence>& best = next[static_cast<size_t>(j)];
        for (int64_t i = 0; i < n; ++i) {
          const int64_t e = (t * n + i) * n + j;
          const std::optional<Sequence>& from = to[static_cast<size_t>(i)];
          if (!from || (row.mask != nullptr && !row.mask[e])) continue;
          if (row.scores[e] == -std::numeric_limits<T>::infinity()) continue;
          const T sum = from->sum + row.scores[e];
          if (sum == -std::numeric_limits<T>::infinity() || (best && !(sum > best->sum))) continue;
          best = Sequence{sum, from->labels};
          best->labels.push_back(j);
        }
      }
      to = std::move(next);
    }
    const Sequence* best = nullptr;
    for (const auto& sequence : to) {
      if (sequence && (best == nullptr || sequence->sum > best->sum)) best = &*sequence;
    }
    if (best == nullptr) return {.status = Status::kDisconnected};
    return {.status = Status::kOk, .z = edges(solver, best->labels)};
  }

  static int64_t length_of(const Chain& solver, const bool* mask) {
    int64_t length = 1;
    for (int64_t e = 0; e < solver.size(); ++e) {
      if (mask == nullptr || mask[e]) length = e / (solver.labels * solver.labels) + 2;
    }
    return mask == nullptr ? solver.length : length;
  }

  static Structure edges(const Chain& solver, const std::vector<int64_t>& labels) {
    Structure z(static_cast<size_t>(solver.size()));
    for (size_t t = 0; t + 1 < labels.size(); ++t) {
      const int64_t step = static_cast<int64_t>(t) * solver.labels;
      z[static_cast<size_t>((step + labels[t]) * solver.labels + labels[t + 1])] = 1;
    }
    return z;
  }

 private:
  /// Of the first positions; those of one position are one structure without edges.
  static std::vector<Structure> sequences(const Chain& solver, int64_t length) {
    std::vector<Structure> all;
    std::vector<int64_t> labels(static_cast<size_t>(length));
    while (true) {
      all.push_back(edges(solver, labels));
      if (length == 1) return all;
      size_t t = 0;
      while (t < labels.size() && ++labels[t] == solver.labels) labels[t++] = 0;
      if (t == labels.size()) return all;
    }
  }
};

}  // namespace aimle::conformance
