// The distribution over lattice paths by a group of threads (exact/lattice_distribution.h has the
// equations), a wave of cells at a time (lattice_path.h).
//
// The CPU has a text of its own (exact/lattice_groups.h) for eight rows in vector registers. This
// one, by one thread, takes several times as long, except for samples.
#pragma once

#include <cstdint>

#include "aimle/cuda/group.h"
#include "aimle/cuda/lattice_path.h"
#include "aimle/exact/lattice_distribution.h"
#include "aimle/exact/uniform.h"

namespace aimle::cuda {

/// Memory of one row. What is needed later comes later.
struct LatticeTables {
  enum class Wanted { kShares, kMarginals };

  aimle::detail::Scaled* sum;  // [cells], over the paths up to a cell
  double* share;               // [cells, 3]
  double* mu;                  // [cells]
  double* up_to;               // [cells], in place of half the sums
  double* beyond;              // [cells], in place of the other half

  static int64_t doubles(int64_t cells, Wanted wanted) {
    return cells * (wanted == Wanted::kShares ? 5 : 6);
  }
  AIMLE_DEVICE static LatticeTables at(double* memory, int64_t cells) {
    static_assert(sizeof(aimle::detail::Scaled) == 2 * sizeof(double));
    return {reinterpret_cast<aimle::detail::Scaled*>(memory), memory + 2 * cells,
            memory + 5 * cells, memory, memory + cells};
  }
};

struct LatticeRow {
  Status status = Status::kOk;
  detail::LatticePart part;
};

namespace detail {

/// Rounding may lift a probability above one.
AIMLE_DEVICE double at_most_one(double p) { return p < 1 ? p : 1.0; }

/// What can be said of a cell once its shares are known.
template <bool kPerMove>
struct LatticeChain {
  LatticePart part;
  LatticeTables tables;

  AIMLE_DEVICE int32_t cell_of(int32_t t, int32_t u) const { return t * part.pitch + u; }

  /// Calls body(m, the cell after move m, its share) for the possible moves from (t, u).
  template <class Body>
  AIMLE_DEVICE void each_way_on(int32_t t, int32_t u, const Body& body) const {
    for (int m = 0; m < 3; ++m) {
      const int32_t down = t + (m != 2), across = u + (m != 1);
      if (down >= part.height || across >= part.width) continue;
      const int32_t after = cell_of(down, across);
      const double w = tables.share[3 * after + m];
      if (w > 0) body(m, after, w);
    }
  }

  AIMLE_DEVICE double mu_of(int32_t t, int32_t u) const {
    double mu = cell_of(t, u) == part.last_cell() ? 1.0 : 0.0;
    each_way_on(t, u, [&](int, int32_t after, double w) { mu += tables.mu[after] * w; });
    return mu;
  }

  template <class T>
  AIMLE_DEVICE double up_to(int32_t cell, const T* v) const {
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
  AIMLE_DEVICE double beyond(int32_t t, int32_t u, const T* v) const {
    double sum = 0;
    each_way_on(t, u, [&](int m, int32_t after, double w) {
      const auto score = static_cast<double>(v[kPerMove ? 3 * after + m : after]);
      sum += w * (tables.beyond[after] + tables.mu[after] * score);
    });
    return sum;
  }
};

}  // namespace detail

/// Reads a row, and fills the sums and shares. Ends with a sync.
template <bool kPerMove, class T, class Group>
AIMLE_DEVICE LatticeRow read_lattice(Group& group, const LatticeShape& lattice, const T* scores,
                                     const bool* mask, const LatticeTables& tables) {
  const double inf = __builtin_huge_val();
  bool bad = false;
  const int32_t entries = lattice.height * lattice.width * (kPerMove ? 3 : 1);
  for (int32_t j = group.rank(); j < entries; j += group.size()) {
    const auto x = static_cast<double>(scores[j]);
    if (mask == nullptr || mask[j]) bad |= x != x || x == inf;
  }
  if (group.any(bad)) return {Status::kNaN, {}};
  const detail::LatticePart part = detail::part_of < kPerMove ? 3 : 1 > (group, lattice, mask);
  if (part.height == 0) return {Status::kDisconnected, {}};
  const auto score = [&](int32_t j) {
    return mask == nullptr || mask[j] ? static_cast<double>(scores[j]) : -inf;
  };
  part.forward(group, [&](int32_t t, int32_t u) {
    const int32_t cell = t * part.pitch + u;
    aimle::detail::Scaled way[3];
    for (int m = 0; m < 3; ++m) {
      if ((lattice.moves >> m & 1) == 0 || (t == 0 && m != 2) || (u == 0 && m != 1)) continue;
      way[m] = tables.sum[part.before(cell, m)];
      if (kPerMove) way[m] = aimle::detail::times_exp(way[m], score(3 * cell + m));
    }
    double shares[3];
    aimle::detail::Scaled sum = aimle::detail::add_up(way, shares);
    if (cell == 0) sum = {1, 0};
    if (!kPerMove) sum = aimle::detail::times_exp(sum, score(cell));
    for (int m = 0; m < 3; ++m) tables.share[3 * cell + m] = sum.is_zero() ? 0.0 : shares[m];
    tables.sum[cell] = sum;
  });
  const bool none = tables.sum[part.last_cell()].is_zero();
  return {none ? Status::kDisconnected : Status::kOk, part};
}

/// After read_lattice, before write_covariance.
AIMLE_DEVICE double log_partition(const LatticeRow& row, const LatticeTables& tables) {
  return aimle::detail::log(tables.sum[row.part.last_cell()]);
}

/// Fills tables.mu, after read_lattice. Ends with a sync.
template <bool kPerMove, class Group>
AIMLE_DEVICE void fill_marginals(Group& group, const LatticeRow& row, const LatticeTables& tables) {
  const detail::LatticeChain<kPerMove> chain{row.part, tables};
  row.part.backward(
      group, [&](int32_t t, int32_t u) { tables.mu[chain.cell_of(t, u)] = chain.mu_of(t, u); });
}

/// Calls body(t, u, cell, whether it is within the part) for this thread's cells of the lattice.
template <class Group, class Body>
AIMLE_DEVICE void each_cell(const Group& group, const LatticeShape& lattice, const LatticeRow& row,
                            const Body& body) {
  for (int32_t cell = group.rank(); cell < lattice.height * lattice.width; cell += group.size()) {
    const int32_t t = cell / lattice.width, u = cell - t * lattice.width;
    body(cell, t < row.part.height && u < row.part.width);
  }
}

/// Writes the marginals, after fill_marginals.
template <bool kPerMove, class T, class Group>
AIMLE_DEVICE void write_marginals(Group& group, const LatticeShape& lattice, const LatticeRow& row,
                                  const LatticeTables& tables, T* out) {
  each_cell(group, lattice, row, [&](int32_t cell, bool within) {
    if constexpr (kPerMove) {
      for (int m = 0; m < 3; ++m) {
        out[3 * cell + m] =
            within
                ? static_cast<T>(detail::at_most_one(tables.mu[cell] * tables.share[3 * cell + m]))
                : T(0);
      }
    } else {
      out[cell] = within ? static_cast<T>(detail::at_most_one(tables.mu[cell])) : T(0);
    }
  });
}

/// Writes Cov(z) v, after fill_marginals. Ends with a sync.
template <bool kPerMove, class T, class Group>
AIMLE_DEVICE void write_covariance(Group& group, const LatticeShape& lattice, const LatticeRow& row,
                                   const LatticeTables& tables, const T* v, T* out) {
  const detail::LatticeChain<kPerMove> chain{row.part, tables};
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
AIMLE_DEVICE void sample_lattice(Group& group, const LatticeShape& lattice, const LatticeRow& row,
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

}  // namespace aimle::cuda
