// The distribution over the lattice paths of one row by a group of threads, on both devices;
// lattice_distribution.h has the equations.
//
// The threads process a wave of cells together (map/lattice_part.h). The host uses this text for
// samples and for large lattices; lattice_groups.h evaluates eight small ones in vector registers.
#pragma once

#include <cstdint>

#include "aimle/exact/lattice_distribution.h"
#include "aimle/exact/masked_scores.h"
#include "aimle/exact/scaled.h"
#include "aimle/exact/uniform.h"
#include "aimle/map/lattice_part.h"

namespace aimle::exact_row {

using aimle::detail::LatticePart;
using aimle::detail::LatticeShape;
using aimle::detail::Scaled;

/// Memory of one row. What is needed later comes later.
struct LatticeTables {
  enum class Wanted { kShares, kMarginals };

  Scaled* sum;     // [cells], over the paths up to a cell
  double* share;   // [cells, 3]
  double* mu;      // [cells]
  double* up_to;   // [cells], in place of half the sums
  double* beyond;  // [cells], in place of the other half

  static int64_t doubles(int64_t cells, Wanted wanted) {
    return cells * (wanted == Wanted::kShares ? 5 : 6);
  }
  AIMLE_EITHER static LatticeTables at(double* memory, int64_t cells) {
    static_assert(sizeof(Scaled) == 2 * sizeof(double));
    return {reinterpret_cast<Scaled*>(memory), memory + 2 * cells, memory + 5 * cells, memory,
            memory + cells};
  }
};

struct LatticeRow {
  Status status = Status::kOk;
  LatticePart part;
};

/// Rounding may lift a probability above one.
AIMLE_EITHER double at_most_one(double p) { return p < 1 ? p : 1.0; }

/// What can be said of a cell once its shares are known.
template <bool kPerMove>
struct LatticeChain {
  LatticePart part;
  LatticeTables tables;

  AIMLE_EITHER int32_t cell_of(int32_t t, int32_t u) const { return t * part.pitch + u; }

  /// Calls body(m, the cell after move m, its share) for the possible moves from (t, u).
  template <class Body>
  AIMLE_EITHER void each_way_on(int32_t t, int32_t u, const Body& body) const {
    for (int m = 0; m < 3; ++m) {
      const int32_t down = t + (m != 2), across = u + (m != 1);
      if (down >= part.height || across >= part.width) continue;
      const int32_t after = cell_of(down, across);
      const double w = tables.share[3 * after + m];
      if (w > 0) body(m, after, w);
    }
  }

  AIMLE_EITHER double mu_of(int32_t t, int32_t u) const {
    double mu = cell_of(t, u) == part.last_cell() ? 1.0 : 0.0;
    each_way_on(t, u, [&](int, int32_t after, double w) { mu += tables.mu[after] * w; });
    return mu;
  }

  template <class T>
  AIMLE_EITHER double up_to(int32_t cell, const T* v) const {
    double sum = cell == 0 && !kPerMove ? static_cast<double>(v[0]) : 0.0;
    for (int m = 0; m < 3; ++m) {
      const double w = tables.share[3 * cell + m];
      if (w == 0) continue;
      const auto score = static_cast<double>(v[kPerMove ? 3 * cell + m : cell]);
      sum += w * (tables.up_to[part.before(cell, m)] + score);
    }
    return sum;
  }

  template <class T>
  AIMLE_EITHER double beyond(int32_t t, int32_t u, const T* v) const {
    double sum = 0;
    each_way_on(t, u, [&](int m, int32_t after, double w) {
      const auto score = static_cast<double>(v[kPerMove ? 3 * after + m : after]);
      sum += w * (tables.beyond[after] + tables.mu[after] * score);
    });
    return sum;
  }
};

/// Reads a row of which the mask leaves this part, and fills the sums and shares. Ends with a sync.
template <bool kPerMove, class T, class Group>
AIMLE_EITHER LatticeRow read_lattice(Group& group, const LatticeShape& lattice,
                                     const LatticePart& part, const T* scores, const bool* mask,
                                     const LatticeTables& tables) {
  if (part.height == 0) return {Status::kDisconnected, {}};
  const double inf = __builtin_huge_val();
  bool bad = false;
  const auto score = [&](int32_t j) {
    const double x = MaskedScores<T>{scores, mask}(j);
    bad |= !(x < inf);
    return x;
  };
  part.forward(group, [&](int32_t t, int32_t u) {
    const int32_t cell = t * part.pitch + u;
    Scaled way[3];
    for (int m = 0; m < 3; ++m) {
      const double x = kPerMove ? score(3 * cell + m) : 0.0;  // of all moves: they must be numbers
      if ((lattice.moves >> m & 1) == 0 || (t == 0 && m != 2) || (u == 0 && m != 1)) continue;
      way[m] = tables.sum[part.before(cell, m)];
      if (kPerMove) way[m] = aimle::detail::times_exp(way[m], x);
    }
    double shares[3];
    Scaled sum = aimle::detail::add_up(way, shares);
    if (cell == 0) sum = {1, 0};
    if (!kPerMove) sum = aimle::detail::times_exp(sum, score(cell));
    for (int m = 0; m < 3; ++m) tables.share[3 * cell + m] = sum.is_zero() ? 0.0 : shares[m];
    tables.sum[cell] = sum;
  });
  if (group.any(bad)) return {Status::kNaN, {}};
  const bool none = tables.sum[part.last_cell()].is_zero();
  return {none ? Status::kDisconnected : Status::kOk, part};
}

/// After read_lattice, before write_covariance.
AIMLE_EITHER double log_partition(const LatticeRow& row, const LatticeTables& tables) {
  return aimle::detail::log(tables.sum[row.part.last_cell()]);
}

/// Fills tables.mu, after read_lattice. Ends with a sync.
template <bool kPerMove, class Group>
AIMLE_EITHER void fill_marginals(Group& group, const LatticeRow& row, const LatticeTables& tables) {
  const LatticeChain<kPerMove> chain{row.part, tables};
  row.part.backward(
      group, [&](int32_t t, int32_t u) { tables.mu[chain.cell_of(t, u)] = chain.mu_of(t, u); });
}

/// Calls body(t, u, cell, whether it is within the part) for this thread's cells of the lattice.
template <class Group, class Body>
AIMLE_EITHER void each_cell(const Group& group, const LatticeShape& lattice, const LatticeRow& row,
                            const Body& body) {
  for (int32_t cell = group.rank(); cell < lattice.height * lattice.width; cell += group.size()) {
    const int32_t t = cell / lattice.width, u = cell - t * lattice.width;
    body(cell, t < row.part.height && u < row.part.width);
  }
}

/// Writes the marginals, after fill_marginals.
template <bool kPerMove, class T, class Group>
AIMLE_EITHER void write_marginals(Group& group, const LatticeShape& lattice, const LatticeRow& row,
                                  const LatticeTables& tables, T* out) {
  each_cell(group, lattice, row, [&](int32_t cell, bool within) {
    if constexpr (kPerMove) {
      for (int m = 0; m < 3; ++m) {
        out[3 * cell + m] =
            within ? static_cast<T>(at_most_one(tables.mu[cell] * tables.share[3 * cell + m]))
                   : T(0);
      }
    } else {
      out[cell] = within ? static_cast<T>(at_most_one(tables.mu[cell])) : T(0);
    }
  });
}

/// Writes Cov(z) v, after fill_marginals. Ends with a sync.
template <bool kPerMove, class T, class Group>
AIMLE_EITHER void write_covariance(Group& group, const LatticeShape& lattice, const LatticeRow& row,
                                   const LatticeTables& tables, const T* v, T* out) {
  const LatticeChain<kPerMove> chain{row.part, tables};
  row.part.forward(group, [&](int32_t t, int32_t u) {
    const int32_t cell = chain.cell_of(t, u);
    tables.up_to[cell] = chain.up_to(cell, v);
  });
  row.part.backward(group, [&](int32_t t, int32_t u) {
    tables.beyond[chain.cell_of(t, u)] = chain.beyond(t, u, v);
  });
  const double mean = tables.up_to[row.part.last_cell()];
  each_cell(group, lattice, row, [&](int32_t cell, bool within) {
    const double mu = within ? tables.mu[cell] : 0.0;
    if constexpr (kPerMove) {
      for (int m = 0; m < 3; ++m) {
        const double w = within ? tables.share[3 * cell + m] : 0.0;
        double covariance = 0;
        if (w > 0) {
          const double up_to =
              tables.up_to[row.part.before(cell, m)] + static_cast<double>(v[3 * cell + m]);
          covariance = w * (mu * (up_to - mean) + tables.beyond[cell]);
        }
        out[3 * cell + m] = static_cast<T>(covariance);
      }
    } else {
      out[cell] =
          mu > 0 ? static_cast<T>(mu * (tables.up_to[cell] - mean) + tables.beyond[cell]) : T(0);
    }
  });
  group.sync();
}

/// Samples of one row, z [samples, entries], one sample per thread; instance b of the key.
template <bool kPerMove, class T, class Group>
AIMLE_EITHER void sample_lattice(Group& group, const LatticeShape& lattice, const LatticeRow& row,
                                 const LatticeTables& tables, Key key, int64_t b, int64_t samples,
                                 T* z) {
  const int64_t entries = int64_t{lattice.height} * lattice.width * (kPerMove ? 3 : 1);
  for (int64_t e = group.rank(); e < samples * entries; e += group.size()) z[e] = T(0);
  group.sync();
  for (int64_t s = group.rank(); s < samples; s += group.size()) {
    T* const mine = z + s * entries;
    int32_t cell = row.part.last_cell();
    while (cell != 0) {
      const int m = aimle::detail::move_of(uniform(key, b, s, cell), tables.share + 3 * cell);
      mine[kPerMove ? 3 * cell + m : cell] = T(1);
      cell = row.part.before(cell, m);
    }
    if (!kPerMove) mine[0] = T(1);
  }
  group.sync();
}

}  // namespace aimle::exact_row
