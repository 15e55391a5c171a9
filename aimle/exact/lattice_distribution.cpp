#include "aimle/exact/lattice_distribution.h"

#include <cmath>
#include <vector>

#include "aimle/base/isa.h"
#include "aimle/exact/define_distribution.h"
#include "aimle/exact/lattice_groups.h"
#include "aimle/exact/uniform.h"

namespace aimle {
namespace {

using detail::LatticeExtent;
using detail::Scaled;

constexpr double kInf = std::numeric_limits<double>::infinity();

/// One row: the shares of the moves into every cell, and the results of walks over them. Cells are
/// numbered as in the row; walks stay within the extent.
template <LatticeScores kScores>
class LatticeChain {
 public:
  using Solver = Lattice<kScores>;
  static constexpr bool kPerMove = Solver::kPerMove;
  static constexpr int64_t kPerCell = Solver::kPerCell;

  explicit LatticeChain(const Solver& solver)
      : solver_(solver), width_(solver.width), share_(static_cast<size_t>(3 * solver.cells())) {}

  /// Fills the shares.
  template <class T>
  Status read(const T* scores, const bool* mask) {
    extent_ = detail::lattice_extent(solver_.height, width_, kPerCell, mask);
    if (extent_.height == 0) return Status::kDisconnected;
    above_.assign(static_cast<size_t>(width_) + 1, Scaled{});
    here_.assign(static_cast<size_t>(width_) + 1, Scaled{});
    bool bad = false;
    const auto score = [&](int64_t j) {
      if (mask != nullptr && !mask[j]) return -kInf;
      const auto x = static_cast<double>(scores[j]);
      bad |= std::isnan(x) || x == kInf;
      return x;
    };
    for (int64_t t = 0; t < extent_.height; ++t) {
      for (int64_t u = 0; u < extent_.width; ++u) {
        here_[static_cast<size_t>(u) + 1] = enter(t, u, score);
      }
      if (bad) return Status::kNaN;
      std::swap(above_, here_);
    }
    partition_ = above_[static_cast<size_t>(extent_.width)];
    return partition_.is_zero() ? Status::kDisconnected : Status::kOk;
  }

  double log_partition() const { return detail::log(partition_); }

  /// mu of every cell.
  void walk_marginals() {
    mu_.assign(static_cast<size_t>(solver_.cells()), 0.0);
    mu_[at(last_cell())] = 1;
    backward([&](int64_t cell) {
      for (int m = 0; m < 3; ++m) {
        if (share(cell, m) > 0) mu_[at(before(cell, m))] += mu_[at(cell)] * share(cell, m);
      }
    });
  }

  template <class T>
  void write_marginals(T* out) const {
    std::fill_n(out, solver_.size(), T{0});
    each([&](int64_t cell) {
      if constexpr (kPerMove) {
        for (int m = 0; m < 3; ++m) {
          out[3 * cell + m] = static_cast<T>(std::min(mu_[at(cell)] * share(cell, m), 1.0));
        }
      } else {
        out[cell] = static_cast<T>(std::min(mu_[at(cell)], 1.0));
      }
    });
  }

  /// After walk_marginals.
  template <class T>
  void write_covariance(const T* v, T* out) {
    std::fill_n(out, solver_.size(), T{0});
    const double mean = walk_covariance(v);
    each([&](int64_t cell) {
      const double mu = mu_[at(cell)], beyond = beyond_[at(cell)];
      if constexpr (kPerMove) {
        for (int m = 0; m < 3; ++m) {
          const double w = share(cell, m);
          if (w == 0) continue;
          const double up_to = up_to_[at(before(cell, m))] + static_cast<double>(v[3 * cell + m]);
          out[3 * cell + m] = static_cast<T>(w * (mu * (up_to - mean) + beyond));
        }
      } else if (mu > 0) {
        out[cell] = static_cast<T>(mu * (up_to_[at(cell)] - mean) + beyond);
      }
    });
  }

  template <class T>
  void write_sample(Key key, int64_t b, int64_t s, T* z) const {
    std::fill_n(z, solver_.size(), T{0});
    int64_t cell = last_cell();
    while (cell != 0) {
      const int m = detail::move_of(uniform(key, b, s, cell), &share_[at(3 * cell)]);
      z[kPerMove ? 3 * cell + m : cell] = 1;
      cell = before(cell, m);
    }
    if constexpr (!kPerMove) z[0] = 1;
  }

 private:
  static size_t at(int64_t index) { return static_cast<size_t>(index); }
  double share(int64_t cell, int m) const { return share_[at(3 * cell + m)]; }
  int64_t before(int64_t cell, int m) const {
    return cell - (m != 2 ? width_ : 0) - (m != 1 ? 1 : 0);
  }
  int64_t last_cell() const { return (extent_.height - 1) * width_ + extent_.width - 1; }

  /// Writes the shares of cell (t, u), and returns the sum over the paths up to it.
  template <class Score>
  Scaled enter(int64_t t, int64_t u, const Score& score) {
    const auto bits = static_cast<unsigned>(solver_.moves);
    const int64_t cell = t * width_ + u;
    Scaled way[3] = {above_[at(u)], above_[at(u + 1)], here_[at(u)]};
    for (int m = 0; m < 3; ++m) {
      if constexpr (kPerMove) way[m] = detail::times_exp(way[m], score(3 * cell + m));
      if ((bits >> m & 1) == 0) way[m] = {};
    }
    double shares[3];
    Scaled sum = detail::add_up(way, shares);
    if (cell == 0) sum = {1, 0};
    if constexpr (!kPerMove) sum = detail::times_exp(sum, score(cell));
    if (sum.is_zero()) std::fill_n(shares, 3, 0.0);  // no path reaches it
    std::copy_n(shares, 3, &share_[at(3 * cell)]);
    return sum;
  }

  /// Calls body(cell) for the cells within the extent.
  template <class Body>
  void each(const Body& body) const {
    for (int64_t t = 0; t < extent_.height; ++t) {
      for (int64_t u = 0; u < extent_.width; ++u) body(t * width_ + u);
    }
  }
  /// From the last cell to the first.
  template <class Body>
  void backward(const Body& body) const {
    for (int64_t t = extent_.height - 1; t >= 0; --t) {
      for (int64_t u = extent_.width - 1; u >= 0; --u) body(t * width_ + u);
    }
  }

  /// Fills `up_to_` and `beyond_`, and returns E<v, z>. v is only used where a path may be.
  template <class T>
  double walk_covariance(const T* v) {
    up_to_.assign(mu_.size(), 0.0);
    beyond_.assign(mu_.size(), 0.0);
    const auto v_of = [&](int64_t cell, int m) {
      return static_cast<double>(v[kPerMove ? 3 * cell + m : cell]);
    };
    each([&](int64_t cell) {
      if (cell == 0) up_to_[0] = kPerMove ? 0.0 : v_of(0, 0);
      for (int m = 0; m < 3; ++m) {
        if (share(cell, m) == 0) continue;
        up_to_[at(cell)] += share(cell, m) * (up_to_[at(before(cell, m))] + v_of(cell, m));
      }
    });
    backward([&](int64_t cell) {
      for (int m = 0; m < 3; ++m) {
        if (share(cell, m) == 0) continue;
        beyond_[at(before(cell, m))] +=
            share(cell, m) * (beyond_[at(cell)] + mu_[at(cell)] * v_of(cell, m));
      }
    });
    return up_to_[at(last_cell())];
  }

  const Solver& solver_;
  int64_t width_;
  LatticeExtent extent_;
  Scaled partition_;
  std::vector<double> share_;         // [cells, 3]
  std::vector<Scaled> above_, here_;  // zero before the first column
  std::vector<double> mu_, up_to_, beyond_;
};

template <LatticeScores kScores, class T>
void evaluate_one(LatticeChain<kScores>& chain, int64_t n, const DistributionRows<T>& rows,
                  int64_t i) {
  const int64_t begin = i * n;
  const Status status = chain.read(rows.scores + begin, rows.mask ? rows.mask + begin : nullptr);
  if (status != Status::kOk) return detail::refuse(rows, n, i, status);
  rows.status[i] = status;
  if (rows.log_partition) rows.log_partition[i] = static_cast<T>(chain.log_partition());
  if (!rows.marginals && !rows.covariance) return;
  chain.walk_marginals();
  if (rows.marginals) chain.write_marginals(rows.marginals + begin);
  if (rows.covariance) chain.write_covariance(rows.v + begin, rows.covariance + begin);
}

template <LatticeScores kScores, class T>
void evaluate_all(const Lattice<kScores>& solver, const DistributionRows<T>& rows) {
  LatticeChain<kScores> chain(solver);
  const int64_t n = solver.size();
  if (solver.cells() > detail::kMostCellsSideBySide) {
    for (int64_t i = 0; i < rows.count; ++i) evaluate_one(chain, n, rows, i);
    return;
  }
  detail::LatticeGroup<kScores> side_by_side(solver);
  for (int64_t i = 0; i < rows.count; i += kLatticeLanes) {
    const auto group = slice(rows, n, i, std::min(i + kLatticeLanes, rows.count));
    side_by_side.evaluate(group, [&](int64_t row) { evaluate_one(chain, n, group, row); });
  }
}

template <LatticeScores kScores, class T>
void sample_all(const Lattice<kScores>& solver, const SampleRows<T>& rows) {
  LatticeChain<kScores> chain(solver);
  const int64_t n = solver.size();
  detail::for_each_row(
      rows, n, [&](const T* scores, const bool* mask, int64_t) { return chain.read(scores, mask); },
      [&](int64_t i) {
        for (int64_t s = 0; s < rows.samples; ++s) {
          chain.write_sample(rows.key, rows.first + i, s, rows.z + (i * rows.samples + s) * n);
        }
      });
}

}  // namespace

LatticeLoops detail::lattice_loops() {
  if constexpr (kBuiltWithAvx2) {
    if (isa() >= Isa::kAvx2) return avx2::lattice_loops();
  }
  return kLatticeLoops;
}

AIMLE_DEFINE_DISTRIBUTION(LatticePath)
AIMLE_DEFINE_DISTRIBUTION(LatticeMoves)

}  // namespace aimle
