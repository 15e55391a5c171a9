// Thresholds of the entries of a lattice by a group of threads (cuda/group.h), on the device, or by
// one thread on the host.
//
// Two passes over the anti-diagonals find, for every cell, the best path to it and the best path
// from it, with their sums of d. An entry that is out is compared with the solution. An entry that
// is in is compared with the best path that avoids it, for which one anti-diagonal k = t + u is
// sufficient:
//
//   cells  a path that avoids the cell has another cell of its anti-diagonal k, or crosses it by a
//          diagonal move from k - 1 to k + 1
//   moves  every path makes one move from the anti-diagonals up to k, where the move starts, to
//          those beyond
//
// The part before such a cell or move is before the avoided entry, and the part after it is after
// the entry, so both can be the best ones. Of equals the first cell or move by index wins, cells
// before moves. Everything is in float64; a score of +inf in the solution leaves its row without
// thresholds.
#pragma once

#include <cstdint>

#include "aimle/base/combine.h"
#include "aimle/base/host_device.h"
#include "aimle/map/lattice_path.h"

namespace aimle::detail {

struct LatticeThreshold {
  double threshold;  // not finite where there is none
  double difference;
};

template <bool kPerMove, class T>
struct LatticeSwaps {
  int32_t height;  // of the part up to the last corner
  int32_t width;
  int32_t pitch;   // the width of the whole
  uint32_t moves;  // bit m: move m is allowed
  const T* x;
  const bool* mask;  // or null
  const T* d;
  double* score;       // [cells] of the best path to a cell, its own score included
  double* gain;        // [cells] the sum of d over it
  double* rest;        // [cells] of the best path from a cell on, its own score not included
  double* rest_gain;   // [cells]
  double* other;       // [height + width] of the best path that avoids the solution's entry
  double* other_gain;  // [height + width]
  double solution = 0.0;
  double solution_gain = 0.0;

  static int64_t numbers(int64_t tall, int64_t wide) { return 4 * tall * wide + 2 * (tall + wide); }
  /// Takes its memory from `memory`, which has space for numbers(tall, wide).
  AIMLE_EITHER void use(double* memory, int64_t tall, int64_t wide) {
    const int64_t cells = tall * wide;
    score = memory;
    gain = score + cells;
    rest = gain + cells;
    rest_gain = rest + cells;
    other = rest_gain + cells;
    other_gain = other + tall + wide;
  }

  /// `chosen(entry)` defines the solution. Ends with a sync.
  template <class Group, class Chosen>
  AIMLE_EITHER void find(Group& group, const Chosen& chosen) {
    solution = solution_gain = 0.0;
    for (int32_t k = 0; k < waves(); ++k) {
      double own = 0.0, own_gain = 0.0;  // of the one entry that is in, if there is one
      each_of_wave(group, k, [&](int32_t t, int32_t u) {
        enter(t, u);
        for (int32_t j = kPer * cell(t, u), end = j + kPer; j < end; ++j) {
          if (!chosen(j)) continue;
          own = static_cast<double>(x[j]);
          own_gain = static_cast<double>(d[j]);
        }
      });
      solution += group.reduce(own, Plus{});
      solution_gain += group.reduce(own_gain, Plus{});
      group.sync();
    }
    for (int32_t k = waves() - 1; k >= 0; --k) {
      each_of_wave(group, k, [&](int32_t t, int32_t u) { leave(t, u); });
      group.sync();
    }
    for (int32_t k = 0; k < waves(); ++k) avoid(group, k, chosen);
    group.sync();
  }

  /// Entry j, whether it is in or out.
  AIMLE_EITHER LatticeThreshold of(int32_t j, bool is_in) const {
    const int32_t own = j / kPer, t = own / pitch;
    return of(t, own - t * pitch, j - own * kPer, is_in);
  }
  /// That of move m into (t, u); of cells m is 0.
  AIMLE_EITHER LatticeThreshold of(int32_t t, int32_t u, int m, bool is_in) const {
    if (t >= height || u >= width) return {kNever, 0.0};
    if (kPerMove && !leads(t, u, m)) return {kNever, 0.0};
    const int32_t own = cell(t, u);
    if (is_in) {
      const int32_t k = kPerMove ? tail(t, u, m) : t + u;
      return {other[k] - (solution - static_cast<double>(x[entry(own, m)])),
              solution_gain - other_gain[k]};
    }
    if constexpr (kPerMove) {
      const int32_t from = before(own, m);
      return {solution - (score[from] + rest[own]), gain_of_move(own, m) - solution_gain};
    } else {
      int move;
      const double to = best_before(t, u, move);
      return {solution - (to + rest[own]), (gain[own] + rest_gain[own]) - solution_gain};
    }
  }

 private:
  static constexpr int32_t kPer = kPerMove ? 3 : 1;
  static constexpr double kNever = -__builtin_huge_val();

  AIMLE_EITHER int32_t waves() const { return height + width - 1; }
  AIMLE_EITHER int32_t cell(int32_t t, int32_t u) const { return t * pitch + u; }
  AIMLE_EITHER int32_t before(int32_t own, int m) const {
    return own - (m != 2 ? pitch : 0) - (m != 1 ? 1 : 0);
  }
  /// The anti-diagonal from which move m leads to (t, u).
  AIMLE_EITHER int32_t tail(int32_t t, int32_t u, int m) const { return t + u - (m == 0 ? 2 : 1); }
  /// Whether move m may lead to (t, u).
  AIMLE_EITHER bool leads(int32_t t, int32_t u, int m) const {
    return (moves >> m & 1) != 0 && (t > 0 || m == 2) && (u > 0 || m == 1);
  }
  AIMLE_EITHER double score_at(int32_t j) const {
    return mask == nullptr || mask[j] ? static_cast<double>(x[j]) : kNever;
  }
  AIMLE_EITHER int32_t entry(int32_t own, int m) const { return kPerMove ? 3 * own + m : own; }

  /// body(t, u) for this thread's cells of anti-diagonal k; none beyond the lattice.
  template <class Group, class Body>
  AIMLE_EITHER void each_of_wave(const Group& group, int32_t k, const Body& body) const {
    const int32_t first = k < width ? 0 : k - width + 1, end = k < height ? k + 1 : height;
    for (int32_t t = first + group.rank(); t < end; t += group.size()) body(t, k - t);
  }

  /// Cells only: the best way to (t, u), without its own score.
  AIMLE_EITHER double best_before(int32_t t, int32_t u, int& move) const {
    double best = t + u == 0 ? 0.0 : kNever;
    move = -1;
    for (int m = 0; m < 3; ++m) {
      if (!leads(t, u, m)) continue;
      const double sum = score[before(cell(t, u), m)];
      move = sum > best ? m : move;
      best = sum > best ? sum : best;
    }
    return best;
  }

  AIMLE_EITHER void enter(int32_t t, int32_t u) const {
    const int32_t own = cell(t, u);
    if constexpr (kPerMove) {
      double best = own == 0 ? 0.0 : kNever, best_gain = 0.0;
      for (int m = 0; m < 3; ++m) {
        if (!leads(t, u, m)) continue;
        const int32_t from = before(own, m);
        const double sum = score[from] + score_at(3 * own + m);
        const double gained = gain[from] + static_cast<double>(d[3 * own + m]);
        best_gain = sum > best ? gained : best_gain;
        best = sum > best ? sum : best;
      }
      score[own] = best;
      gain[own] = best_gain;
    } else {
      int move;
      const double sum = best_before(t, u, move) + score_at(own);
      score[own] = sum > kNever ? sum : kNever;
      gain[own] = (move < 0 ? 0.0 : gain[before(own, move)]) + static_cast<double>(d[own]);
    }
  }

  AIMLE_EITHER void leave(int32_t t, int32_t u) const {
    double best = t == height - 1 && u == width - 1 ? 0.0 : kNever, best_gain = 0.0;
    for (int m = 0; m < 3; ++m) {
      const int32_t down = t + (m != 2), right = u + (m != 1);
      if ((moves >> m & 1) == 0 || down >= height || right >= width) continue;
      const int32_t to = cell(down, right);
      const double sum = score_at(entry(to, m)) + rest[to];
      const double gained = static_cast<double>(d[entry(to, m)]) + rest_gain[to];
      best_gain = sum > best ? gained : best_gain;
      best = sum > best ? sum : best;
    }
    rest[cell(t, u)] = best;
    rest_gain[cell(t, u)] = best_gain;
  }

  /// The best path by move m into a cell.
  AIMLE_EITHER double score_of_move(int32_t own, int m) const {
    return score[before(own, m)] + (score_at(entry(own, m)) + rest[own]);
  }
  AIMLE_EITHER double gain_of_move(int32_t own, int m) const {
    return gain[before(own, m)] + (static_cast<double>(d[entry(own, m)]) + rest_gain[own]);
  }

  /// The best path that avoids the entry of the solution at anti-diagonal k.
  template <class Group, class Chosen>
  AIMLE_EITHER void avoid(Group& group, int32_t k, const Chosen& chosen) const {
    double best = kNever;
    uint32_t at = 0;  // one more than the number of the way: cells, then moves
    const auto cells = static_cast<uint32_t>(height * pitch);
    const auto offer = [&](uint32_t way, double sum) {
      if (!(sum > best) && !(sum == best && at != 0 && way + 1 < at)) return;
      best = sum;
      at = way + 1;
    };
    const auto offer_move = [&](int32_t t, int32_t u, int m) {
      const int32_t own = cell(t, u);
      if (!leads(t, u, m) || (kPerMove && chosen(3 * own + m))) return;
      offer(cells + static_cast<uint32_t>(3 * own + m), score_of_move(own, m));
    };
    if constexpr (!kPerMove) {
      each_of_wave(group, k, [&](int32_t t, int32_t u) {
        const int32_t own = cell(t, u);
        if (!chosen(own)) offer(static_cast<uint32_t>(own), score[own] + rest[own]);
      });
    }
    each_of_wave(group, k + 1, [&](int32_t t, int32_t u) {
      offer_move(t, u, 0);
      if (kPerMove) offer_move(t, u, 1);
      if (kPerMove) offer_move(t, u, 2);
    });
    if constexpr (kPerMove) {
      each_of_wave(group, k + 2, [&](int32_t t, int32_t u) { offer_move(t, u, 0); });
    }
    const double found = group.reduce(best, Higher{});
    const uint32_t way = ~group.max(best == found && at != 0 ? ~at : 0u);
    if (group.rank() != 0) return;
    other[k] = found;
    other_gain[k] = 0.0;
    if (found == kNever) return;
    const uint32_t number = way - 1;
    if (number < cells) {
      other_gain[k] = gain[number] + rest_gain[number];
    } else {
      const auto move = static_cast<int32_t>(number - cells);
      other_gain[k] = gain_of_move(move / 3, move % 3);
    }
  }
};

}  // namespace aimle::detail
