// The source of the threshold kernels for lattices, included once per instruction set. Private to
// threshold_loops.h.
//
// lattice_swaps.h has the method. Here a lane is a lattice, and the operations of a lane are those
// of lattice_swaps.h, in an order that gives the same bits. Cells are visited row by row instead of
// by anti-diagonals. In the second pass indices descend, so that of equals the last one wins.
// Scores of paths that do not exist are -inf, which makes conditions at the borders unnecessary.
#pragma once

#include "aimle/estimate/threshold_kernels.h"
#include "aimle/estimate/threshold_lanes.h"

namespace aimle {
namespace {

/// Exchanges rows and columns of kCount vectors with kCount numbers each.
template <int kDistance, class Vector, int kCount>
[[gnu::always_inline]] inline void transpose(Vector (&rows)[kCount]) {
  for (int i = 0; i < kCount; ++i) {
    if ((i & kDistance) != 0) continue;
    const Vector a = rows[i], b = rows[i + kDistance];
    [&]<int... c>(std::integer_sequence<int, c...>) {
      rows[i] =
          __builtin_shufflevector(a, b, ((c & kDistance) == 0 ? c : kCount + c - kDistance)...);
      rows[i + kDistance] =
          __builtin_shufflevector(a, b, ((c & kDistance) == 0 ? c + kDistance : kCount + c)...);
    }
    (std::make_integer_sequence<int, kCount>{});
  }
  if constexpr (kDistance > 1) transpose<kDistance / 2>(rows);
}

/// out[j, lane] = rows[lane][j] for j < n.
template <class T>
void interleave(const T* const* rows, int64_t n, T* __restrict out) {
  using Vector [[gnu::vector_size(sizeof(T) * kWideLanes)]] = T;
  int64_t j = 0;
  for (; j + kWideLanes <= n; j += kWideLanes) {
    Vector block[kWideLanes];
    for (int i = 0; i < kWideLanes; ++i) __builtin_memcpy(&block[i], rows[i] + j, sizeof(Vector));
    transpose<kWideLanes / 2>(block);
    __builtin_memcpy(out + j * kWideLanes, block, sizeof block);
  }
  for (; j < n; ++j) {
    for (int i = 0; i < kWideLanes; ++i) out[j * kWideLanes + i] = rows[i][j];
  }
}

/// Sums of scores and of d along parts of paths, one path per lane.
struct PathSums {
  using Reals = Lanes<kWideLanes>::Reals;
  Reals score, gain;

  [[gnu::always_inline]] PathSums(Reals a, Reals b) : score(a), gain(b) {}
  // Member by member: the default copy of GCC goes through memory.
  [[gnu::always_inline]] PathSums(const PathSums& other) : score(other.score), gain(other.gain) {}
  [[gnu::always_inline]] PathSums& operator=(const PathSums& other) {
    score = other.score;
    gain = other.gain;
    return *this;
  }

  /// Becomes `other` in the lanes where that is better.
  [[gnu::always_inline]] void improve(const PathSums& other) {
    const auto better = other.score > score;
    gain = better ? other.gain : gain;
    score = better ? other.score : score;
  }
  /// The same where it is as good.
  [[gnu::always_inline]] void improve_or_tie(const PathSums& other) {
    const auto better = other.score >= score;
    gain = better ? other.gain : gain;
    score = better ? other.score : score;
  }
};

[[gnu::always_inline]] inline PathSums operator+(const PathSums& a, const PathSums& b) {
  return {a.score + b.score, a.gain + b.gain};
}

/// Collects results by entry, in descending order, and writes them by lattice.
class LatticeResults {
 public:
  using Reals = Lanes<kWideLanes>::Reals;

  LatticeResults(double* out, int64_t stride, int64_t entries)
      : out_(out), stride_(stride), entries_(entries) {}

  [[gnu::always_inline]] void set(int64_t j, Reals value) {
    const auto place = static_cast<uint64_t>(j) % kWideLanes;
    block_[place] = value;
    if (place != 0) return;
    Reals rows[kWideLanes];
    __builtin_memcpy(rows, block_, sizeof rows);
    transpose<kWideLanes / 2>(rows);
    if (j + kWideLanes <= entries_) {
      for (int i = 0; i < kWideLanes; ++i) {
        __builtin_memcpy(out_ + i * stride_ + j, &rows[i], sizeof(Reals));
      }
    } else {
      for (int i = 0; i < kWideLanes; ++i) {
        for (int64_t e = j; e < entries_; ++e) out_[i * stride_ + e] = rows[i][e - j];
      }
    }
  }

 private:
  double* out_;
  int64_t stride_;
  int64_t entries_;
  Reals block_[kWideLanes] = {};
};

template <class T, bool kPerMove, uint32_t kMoves>
class LatticePasses {
 public:
  explicit LatticePasses(const LatticeGroup<T>& group)
      : group_(group),
        pitch_(group.width + 1),
        best_(reinterpret_cast<PathSums*>(group.memory)),
        below_(best_ + (group.height + 1) * pitch_),
        avoiding_(below_ + kKinds * pitch_),
        crossing_(avoiding_ + group.height + group.width) {}

  void run() {
    find_prefixes();
    find_suffixes();
  }

 private:
  using L = Lanes<kWideLanes>;
  using Reals = typename L::Reals;
  static constexpr double kNever = -__builtin_huge_val();
  static constexpr int kPer = kPerMove ? 3 : 1;
  static constexpr int kKinds = kPerMove ? 2 : 1;  // of moves down, by their scores
  static constexpr bool allows(int m) { return (kMoves >> m & 1) != 0; }

  [[gnu::always_inline]] static PathSums none() { return {L::reals(kNever), L::reals(0.0)}; }
  /// The entry's own.
  [[gnu::always_inline]] static PathSums own(const LatticeGroup<T>& group, int64_t j) {
    return {L::load(group.x + j * kWideLanes, typename L::Whole{}),
            L::load(group.d + j * kWideLanes, typename L::Whole{})};
  }
  /// By a move to entry j from a cell with the sums `from`; the score of a cell comes later.
  [[gnu::always_inline]] static PathSums by_move(const LatticeGroup<T>& group, const PathSums& from,
                                                 int64_t j) {
    return kPerMove ? from + own(group, j) : from;
  }
  /// The best paths to the cells of row t, from column -1 on; t may be -1.
  PathSums* row(int64_t t) const { return best_ + (t + 1) * pitch_ + 1; }

  [[gnu::always_inline]] static PathSums start(bool first) {
    return {L::reals(first ? 0.0 : kNever), L::reals(0.0)};
  }

  void find_prefixes() const {
    const LatticeGroup<T> group = group_;  // a copy, whose members stay in registers
    for (int64_t u = -1; u < group.width; ++u) row(-1)[u] = none();
    for (int64_t t = 0; t < group.height; ++t) {
      const PathSums* above = row(t - 1);
      PathSums* best_to = row(t);
      PathSums left = none(), diagonal = above[-1];
      best_to[-1] = left;
      for (int64_t u = 0; u < group.width; ++u) {
        const int64_t j = kPer * (t * group.width + u);
        const PathSums up = above[u];
        PathSums best = start(j == 0);
        if (allows(0)) best.improve(by_move(group, diagonal, j));
        if (allows(1)) best.improve(by_move(group, up, j + (kPerMove ? 1 : 0)));
        if (allows(2)) best.improve(by_move(group, left, j + (kPerMove ? 2 : 0)));
        if (!kPerMove) {
          best = best + own(group, j);
          best.score = best.score > kNever ? best.score : L::reals(kNever);  // NaN becomes -inf
        }
        best_to[u] = left = best;
        diagonal = up;
      }
    }
  }

  void find_suffixes() const {
    const LatticeGroup<T> group = group_;
    const int64_t waves = group.height + group.width;
    for (int64_t k = 0; k < waves; ++k) avoiding_[k] = crossing_[k] = none();
    for (int64_t i = 0; i < kKinds * pitch_; ++i) below_[i] = none();
    const int64_t entries = kPer * group.height * group.width;
    LatticeResults threshold(group.threshold, group.stride, entries);
    LatticeResults difference(group.difference, group.stride, entries);
    const PathSums solution{L::load(group.solution, typename L::Whole{}),
                            L::load(group.solution_gain, typename L::Whole{})};
    for (int64_t t = group.height - 1; t >= 0; --t) {
      const PathSums* above = row(t - 1);
      const PathSums* best_to = row(t);
      // By anti-diagonal; the one before the first is not used.
      PathSums *avoiding = avoiding_ + t, *crossing = crossing_ + t;
      PathSums right = none(), after = none();  // by a move to the right, by a diagonal one
      for (int64_t u = group.width - 1; u >= 0; --u) {
        const int64_t cell = t * group.width + u, j = kPer * cell;
        PathSums rest = start(false);
        if (group.corner[cell] != 0) {
          rest.score = L::has(group.corner[cell]) ? L::reals(0.0) : rest.score;
        }
        PathSums* down = below_ + kKinds * u;
        if (allows(0)) rest.improve(after);
        if (allows(1)) rest.improve(down[kKinds - 1]);
        if (allows(2)) rest.improve(right);
        after = down[0];  // for the cell to the left
        if constexpr (kPerMove) {
          for (int m = 2; m >= 0; --m) {
            if (!allows(m)) {
              threshold.set(j + m, L::reals(kNever));
              difference.set(j + m, L::reals(0.0));
              continue;
            }
            const PathSums from = m == 2 ? best_to[u - 1] : above[m == 1 ? u : u - 1];
            const PathSums entered = own(group, j + m) + rest, whole = from + entered;
            threshold.set(j + m, solution.score - (from.score + rest.score));
            difference.set(j + m, whole.gain - solution.gain);
            const PathSums offered = unless(group.chosen[j + m], whole);
            if (t + u > 0) avoiding[u - 1].improve_or_tie(offered);
            if (m == 0 && t + u > 1) avoiding[u - 2].improve_or_tie(offered);
            if (m == 2) right = entered;
            if (m < 2) down[m] = entered;
          }
        } else {
          const PathSums to = best_to[u], entered = own(group, j) + rest, whole = to + rest;
          PathSums before = start(j == 0);
          if (allows(0)) {
            before.improve(above[u - 1]);
            if (t + u > 0) crossing[u - 1].improve_or_tie(above[u - 1] + entered);
          }
          if (allows(1)) before.improve(above[u]);
          if (allows(2)) before.improve(best_to[u - 1]);
          threshold.set(j, solution.score - (before.score + rest.score));
          difference.set(j, whole.gain - solution.gain);
          avoiding[u].improve_or_tie(unless(group.chosen[j], whole));
          right = down[0] = entered;
        }
      }
    }
    for (int64_t k = 0; k < waves; ++k) {
      PathSums other = crossing_[k];
      other.improve_or_tie(avoiding_[k]);
      L::store(other.score, group.other + k * kWideLanes);
      L::store(other.gain, group.other_gain + k * kWideLanes);
    }
  }

  /// No path in the lanes where the entry is chosen.
  [[gnu::always_inline]] static PathSums unless(uint8_t chosen, const PathSums& path) {
    return {L::has(chosen) ? L::reals(kNever) : path.score, path.gain};
  }

  const LatticeGroup<T>& group_;
  int64_t pitch_;
  PathSums* best_;      // [height + 1, width + 1]
  PathSums* below_;     // [width + 1, kinds] by a move down, or a diagonal one, to a cell and on
  PathSums* avoiding_;  // [height + width] without the solution's entry at an anti-diagonal
  PathSums* crossing_;  // [height + width] by a diagonal move across it
};

template <class T, bool kPerMove>
void find_lattices(const LatticeGroup<T>& group) {
  if (group.moves == 0b011) return LatticePasses<T, kPerMove, 0b011>(group).run();
  if (group.moves == 0b110) return LatticePasses<T, kPerMove, 0b110>(group).run();
  LatticePasses<T, kPerMove, 0b111>(group).run();
}

}  // namespace
}  // namespace aimle
