// Instances of LatticePath and LatticeMoves for the conformance test.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "aimle/map/lattice_path.h"
#include "tests/map/conformance.h"

namespace aimle::conformance {

template <LatticeScores kScores>
struct Instances<Lattice<kScores>> {
  using S = Lattice<kScores>;
  using Moves = typename S::Moves;

  static S draw_small(Rng& rng) {
    return with_moves({.height = uniform(rng, 1, 4), .width = uniform(rng, 1, 4)}, rng);
  }
  static S draw_any(Rng& rng) {
    const int64_t longest = one_in(rng, 4) ? 20 : 7;
    return with_moves({.height = uniform(rng, 1, longest), .width = uniform(rng, 1, longest)}, rng);
  }
  static std::vector<S> smallest() {
    return {{.height = 1, .width = 1},
            {.height = 1, .width = 2},
            {.height = 2, .width = 1},
            {.height = 1, .width = 9, .moves = Moves::kStraight},
            {.height = 9, .width = 1, .moves = Moves::kDiagonal},
            {.height = 2, .width = 3, .moves = Moves::kDiagonal}};
  }
  static S largest() { return {.height = 500, .width = 300}; }
  static std::string text(const S& solver) {
    return std::string(S::kName) + " height=" + std::to_string(solver.height) +
           " width=" + std::to_string(solver.width) +
           " moves=" + std::to_string(static_cast<int>(solver.moves));
  }

  static std::vector<Structure> enumerate(const S& solver, std::optional<int64_t>) {
    return enumerate_row(solver, nullptr);
  }
  /// Every path to the corner of what is unmasked, from its end to its beginning.
  static std::vector<Structure> enumerate_row(const S& solver, const bool* mask) {
    std::vector<Structure> all;
    Structure z(static_cast<size_t>(solver.size()));
    const auto [t, u] = last_corner(solver, mask);
    if (t >= 0) extend(solver, mask, t, u, z, all);
    return all;
  }

  template <class T>
  static double value(const S&, const Instance<T>& row, const Structure& z) {
    return inner_product(row.scores, z);
  }

  /// The definition, by recursion from the end, with walls as nothing rather than as infinities.
  template <class T>
  static Answer oracle(const S& solver, const Instance<T>& row) {
    for (int64_t j = 0; j < solver.size(); ++j) {
      if (allowed(row.mask, j) && std::isnan(row.scores[j])) return {.status = Status::kNaN};
    }
    auto [t, u] = last_corner(solver, row.mask);
    if (t < 0) return {.status = Status::kDisconnected};
    Recursion<T> recursion{solver, row, {}};
    if (!recursion.best(t, u)) return {.status = Status::kDisconnected};
    Answer answer{.status = Status::kOk, .z = Structure(static_cast<size_t>(solver.size()))};
    while (true) {
      const int64_t cell = t * solver.width + u, move = recursion.best(t, u)->second;
      if (!S::kPerMove) answer.z[static_cast<size_t>(cell)] = 1;
      if (t == 0 && u == 0) return answer;
      if (S::kPerMove) answer.z[static_cast<size_t>(3 * cell + move)] = 1;
      std::tie(t, u) = before(t, u, move);
    }
  }

 private:
  using Place = std::pair<int64_t, int64_t>;

  static S with_moves(S solver, Rng& rng) {
    if (one_in(rng, 2)) solver.moves = one_in(rng, 2) ? Moves::kStraight : Moves::kDiagonal;
    return solver;
  }
  static bool allowed(const bool* mask, int64_t j) { return mask == nullptr || mask[j]; }
  static bool takes(const S& solver, int64_t move) {
    return (static_cast<int>(solver.moves) >> move & 1) != 0;
  }
  static Place before(int64_t t, int64_t u, int64_t move) {
    if (move == 0) return {t - 1, u - 1};
    return move == 1 ? Place{t - 1, u} : Place{t, u - 1};
  }

  /// Negative where everything is masked.
  static Place last_corner(const S& solver, const bool* mask) {
    Place corner{-1, -1};
    for (int64_t j = 0; j < solver.size(); ++j) {
      if (!allowed(mask, j)) continue;
      const int64_t cell = j / S::kPerCell;
      corner.first = std::max(corner.first, cell / solver.width);
      corner.second = std::max(corner.second, cell % solver.width);
    }
    return corner;
  }

  static void extend(const S& solver, const bool* mask, int64_t t, int64_t u, Structure& z,
                     std::vector<Structure>& all) {
    if (t < 0 || u < 0) return;
    const int64_t cell = t * solver.width + u;
    if (!S::kPerMove) {
      if (!allowed(mask, cell)) return;
      z[static_cast<size_t>(cell)] = 1;
    }
    if (t == 0 && u == 0) all.push_back(z);
    for (int64_t move = 0; move < 3; ++move) {
      const int64_t entry = 3 * cell + move;
      if (!takes(solver, move) || (S::kPerMove && !allowed(mask, entry))) continue;
      if (S::kPerMove) z[static_cast<size_t>(entry)] = 1;
      const auto [from_t, from_u] = before(t, u, move);
      extend(solver, mask, from_t, from_u, z, all);
      if (S::kPerMove) z[static_cast<size_t>(entry)] = 0;
    }
    if (!S::kPerMove) z[static_cast<size_t>(cell)] = 0;
  }

  template <class T>
  struct Recursion {
    using Best = std::optional<std::pair<T, int64_t>>;  // the sum, and the move it came by

    const S& solver;
    const Instance<T>& row;
    std::map<Place, Best> known;

    /// Row by row rather than deep down for lattices that are large.
    Best best(int64_t t, int64_t u) {
      if (known.contains({t, u})) return known[{t, u}];
      for (int64_t i = 0; i <= t; ++i) {
        for (int64_t j = 0; j <= u; ++j) {
          if (!known.contains({i, j})) known[{i, j}] = enter(i, j);
        }
      }
      return known[{t, u}];
    }

    Best enter(int64_t t, int64_t u) {
      const int64_t cell = t * solver.width + u;
      if (t == 0 && u == 0) return S::kPerMove ? Best{{T{0}, 0}} : plus(T{0}, 0, cell);
      Best found;
      for (int64_t move = 2; move >= 0; --move) {
        const auto from = before(t, u, move);
        if (!takes(solver, move) || from.first < 0 || from.second < 0 || !known[from]) continue;
        const T sum = known[from]->first;
        const Best way = S::kPerMove ? plus(sum, move, 3 * cell + move) : Best{{sum, move}};
        if (way && (!found || way->first >= found->first)) found = way;
      }
      if (!S::kPerMove && found) found = plus(found->first, found->second, cell);
      return found;
    }

    Best plus(T sum, int64_t move, int64_t entry) const {
      constexpr T kInf = std::numeric_limits<T>::infinity();
      if (!allowed(row.mask, entry) || row.scores[entry] == -kInf) return {};
      const T total = sum + row.scores[entry];
      if (total == -kInf) return {};
      return {{total, move}};
    }
  };
};

}  // namespace aimle::conformance
