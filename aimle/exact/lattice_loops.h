// The loops of the distribution over lattice paths (lattice_distribution.h) for eight rows in
// parallel, which all instruction sets share.
//
// For inclusion in one source file per instruction set: everything except the structs has internal
// linkage, so that no file uses code of another. All of them give the same bits.
#pragma once

#include <cstdint>

#include "aimle/noise/exp.h"

namespace aimle {

inline constexpr int kLatticeLanes = 8;
/// The exponents of two of zeros, below those of all numbers.
inline constexpr double kLatticeZero = -1e18;

/// Eight rows; every array has one lane for each of them, and is aligned to 64 bytes.
struct LatticeLanes {
  int64_t height;
  int64_t width;
  unsigned moves;  // bit m: move m is allowed
  bool per_move;
  double* scores;    // [entries]; those that are no walls within kLargestScore
  double* mantissa;  // [2 (width + 1)]: the sums up to the cells of two rows, a zero before each
  double* exponent;  // [2 (width + 1)]
  double* factor;    // [entries of a row of cells]: exp(score) = factor 2^power
  double* power;     // [entries of a row of cells]
  double* share;     // [cells, 3]
  double* mu;        // [cells]
  double* v;         // [entries], zero where masked
  double* up_to;     // [cells]
  double* beyond;    // [cells]
};

/// The loops of one instruction set.
struct LatticeLoops {
  /// The shares of row t, and its sums, from those of the row before.
  void (*forward_row)(const LatticeLanes& lanes, int64_t t);
  /// mu, which initially is 1 in the last cell of every lane and 0 elsewhere.
  void (*marginals)(const LatticeLanes& lanes);
  /// up_to and beyond.
  void (*covariance)(const LatticeLanes& lanes);
};

namespace avx2 {
LatticeLoops lattice_loops();
}  // namespace avx2

namespace {

typedef double FourNumbers __attribute__((vector_size(32)));
typedef uint64_t FourWords __attribute__((vector_size(32)));
typedef int64_t FourTruths __attribute__((vector_size(32)));

constexpr double kRoundToWhole = 0x1.8p+52;

[[gnu::always_inline]] inline FourNumbers& four(double* at) {
  return *reinterpret_cast<FourNumbers*>(at);
}

/// 2^d of whole numbers d <= 0, or 0 below 2^-1022.
[[gnu::always_inline]] inline FourNumbers powers_of_two(FourNumbers d) {
  d = d < -1023.0 ? FourNumbers{} - 1023.0 : d;
  return (FourNumbers)((FourWords)(d + (kRoundToWhole + 1023.0)) << 52);
}

/// exp(score) for a row of cells, as factors and powers of two; zero for walls.
inline void exponentiate(const double* scores, int64_t count, double* factor, double* power) {
  constexpr double kPerLog2 = 0x1.71547652b82fep+0;
  constexpr double kHigh = 0x1.62e42feep-1, kLow = 0x1.a39ef35793c76p-33;  // of log 2
  for (int64_t i = 0; i < count; ++i) {
    const bool wall = scores[i] < -1e300;
    const double x = wall ? 0.0 : scores[i];
    const double k = (x * kPerLog2 + kRoundToWhole) - kRoundToWhole;
    const double e = exp_portable((x - k * kHigh) - k * kLow);
    factor[i] = wall ? 0.0 : e;
    power[i] = wall ? kLatticeZero : k;
  }
}

struct FourScaled {
  FourNumbers mantissa;
  FourNumbers exponent;
};

/// Of values >= 0: a mantissa in [1, 2), or zero.
[[gnu::always_inline]] inline FourScaled scale_four(FourNumbers value, FourNumbers exponent) {
  const FourWords bits = (FourWords)value;
  const FourNumbers biased = (FourNumbers)((bits >> 52) | 0x4330000000000000) - 0x1p52;
  const FourNumbers mantissa = (FourNumbers)((bits & 0x000fffffffffffff) | 0x3ff0000000000000);
  const FourTruths zero = value == 0.0;
  return {zero ? FourNumbers{} : mantissa,
          zero ? FourNumbers{} + kLatticeZero : exponent + (biased - 1023.0)};
}

[[gnu::always_inline]] inline FourNumbers larger_of(FourNumbers a, FourNumbers b) {
  return a > b ? a : b;
}

/// One cell of four lanes: writes its probabilities, and returns its sums. `way` are the sums
/// before it, `factor` and `power` those of its scores.
template <bool kPerMove, unsigned kMoves>
[[gnu::always_inline]] inline FourScaled enter_cell(FourScaled (&way)[3], bool first,
                                                    double* factor, double* power, double* share) {
  for (int m = 0; m < 3; ++m) {
    if ((kMoves >> m & 1) == 0) {
      way[m] = {FourNumbers{}, FourNumbers{} + kLatticeZero};
    } else if (kPerMove) {
      way[m].mantissa *= four(factor + m * kLatticeLanes);
      way[m].exponent += four(power + m * kLatticeLanes);
    }
  }
  FourNumbers exponent = larger_of(larger_of(way[0].exponent, way[1].exponent), way[2].exponent);
  FourNumbers part[3];
  for (int m = 0; m < 3; ++m) {
    part[m] = way[m].mantissa * powers_of_two(way[m].exponent - exponent);
  }
  const FourNumbers sum = (part[0] + part[1]) + part[2];
  FourNumbers total = sum;
  if (first) {
    total = FourNumbers{} + 1.0;
    exponent = FourNumbers{};
  }
  if (!kPerMove) {
    total *= four(factor);
    exponent += four(power);
  }
  const FourTruths none = (total == 0.0) | (sum == 0.0);
  const FourNumbers scale = none ? FourNumbers{} : 1.0 / (none ? FourNumbers{} + 1.0 : sum);
  for (int m = 0; m < 3; ++m) four(share + m * kLatticeLanes) = part[m] * scale;
  return scale_four(total, exponent);
}

template <bool kPerMove, unsigned kMoves>
inline void fill_row(const LatticeLanes& lanes, int64_t t) {
  constexpr int64_t kPerCell = kPerMove ? 3 : 1;
  const int64_t entries = lanes.width * kPerCell * kLatticeLanes;
  exponentiate(lanes.scores + t * entries, entries, lanes.factor, lanes.power);
  const int64_t pitch = (lanes.width + 1) * kLatticeLanes;
  const int64_t above = t % 2 == 0 ? pitch : 0, here = t % 2 == 0 ? 0 : pitch;
  double* share = lanes.share + t * lanes.width * 3 * kLatticeLanes;
  for (int64_t u = 0; u < lanes.width; ++u) {
    for (int lane = 0; lane < kLatticeLanes; lane += 4) {
      const int64_t left = u * kLatticeLanes + lane, at = left + kLatticeLanes;
      FourScaled way[3] = {
          {four(lanes.mantissa + above + left), four(lanes.exponent + above + left)},
          {four(lanes.mantissa + above + at), four(lanes.exponent + above + at)},
          {four(lanes.mantissa + here + left), four(lanes.exponent + here + left)}};
      const int64_t entry = u * kPerCell * kLatticeLanes + lane;
      const FourScaled sum =
          enter_cell<kPerMove, kMoves>(way, t == 0 && u == 0, lanes.factor + entry,
                                       lanes.power + entry, share + u * 3 * kLatticeLanes + lane);
      four(lanes.mantissa + here + at) = sum.mantissa;
      four(lanes.exponent + here + at) = sum.exponent;
    }
  }
}

template <bool kPerMove>
inline void fill_row_by_moves(const LatticeLanes& lanes, int64_t t) {
  switch (lanes.moves) {
    case 0b011:
      return fill_row<kPerMove, 0b011>(lanes, t);
    case 0b110:
      return fill_row<kPerMove, 0b110>(lanes, t);
    default:
      return fill_row<kPerMove, 0b111>(lanes, t);
  }
}

inline void forward_row(const LatticeLanes& lanes, int64_t t) {
  lanes.per_move ? fill_row_by_moves<true>(lanes, t) : fill_row_by_moves<false>(lanes, t);
}

/// Calls body(cell, lane) for all cells from the last to the first, four lanes at a time.
template <class Body>
[[gnu::always_inline]] inline void each_backward(const LatticeLanes& lanes, const Body& body) {
  for (int64_t t = lanes.height - 1; t >= 0; --t) {
    for (int64_t u = lanes.width - 1; u >= 0; --u) {
      for (int lane = 0; lane < kLatticeLanes; lane += 4) body(t, u, lane);
    }
  }
}

/// Calls body(m, the cell after move m, its shares) for the moves on from (t, u).
template <class Body>
[[gnu::always_inline]] inline void each_move_on(const LatticeLanes& lanes, int64_t t, int64_t u,
                                                int lane, const Body& body) {
  for (int m = 0; m < 3; ++m) {
    const int64_t down = t + (m != 2), across = u + (m != 1);
    if (down == lanes.height || across == lanes.width) continue;
    const int64_t after = down * lanes.width + across;
    body(m, after, four(lanes.share + (3 * after + m) * kLatticeLanes + lane));
  }
}

inline void fill_marginals(const LatticeLanes& lanes) {
  each_backward(lanes, [&](int64_t t, int64_t u, int lane) {
    FourNumbers& mu = four(lanes.mu + (t * lanes.width + u) * kLatticeLanes + lane);
    FourNumbers sum = mu;
    each_move_on(lanes, t, u, lane, [&](int, int64_t after, FourNumbers share) {
      sum += four(lanes.mu + after * kLatticeLanes + lane) * share;
    });
    mu = sum;
  });
}

inline void fill_covariance(const LatticeLanes& lanes) {
  const auto v_of = [&](int64_t cell, int m, int lane) {
    return four(lanes.v + (lanes.per_move ? 3 * cell + m : cell) * kLatticeLanes + lane);
  };
  for (int64_t t = 0; t < lanes.height; ++t) {
    for (int64_t u = 0; u < lanes.width; ++u) {
      const int64_t cell = t * lanes.width + u;
      for (int lane = 0; lane < kLatticeLanes; lane += 4) {
        FourNumbers sum = cell == 0 && !lanes.per_move ? v_of(0, 0, lane) : FourNumbers{};
        for (int m = 0; m < 3; ++m) {
          if ((t == 0 && m != 2) || (u == 0 && m != 1)) continue;
          const int64_t before = cell - (m != 2 ? lanes.width : 0) - (m != 1 ? 1 : 0);
          sum += four(lanes.share + (3 * cell + m) * kLatticeLanes + lane) *
                 (four(lanes.up_to + before * kLatticeLanes + lane) + v_of(cell, m, lane));
        }
        four(lanes.up_to + cell * kLatticeLanes + lane) = sum;
      }
    }
  }
  each_backward(lanes, [&](int64_t t, int64_t u, int lane) {
    FourNumbers sum{};
    each_move_on(lanes, t, u, lane, [&](int m, int64_t after, FourNumbers share) {
      const int64_t at = after * kLatticeLanes + lane;
      sum += share * (four(lanes.beyond + at) + four(lanes.mu + at) * v_of(after, m, lane));
    });
    four(lanes.beyond + (t * lanes.width + u) * kLatticeLanes + lane) = sum;
  });
}

constexpr LatticeLoops kLatticeLoops{forward_row, fill_marginals, fill_covariance};

}  // namespace
}  // namespace aimle
