// Distributions over lattice paths, eight rows at a time. Not part of the public API.
#pragma once

#include <cmath>
#include <vector>

#include "aimle/base/aligned.h"
#include "aimle/exact/lattice_distribution.h"
#include "aimle/exact/lattice_loops.h"
#include "aimle/exact/masked_scores.h"

namespace aimle::detail {

/// Larger lattices are evaluated one by one, because their tables would not fit into the caches.
inline constexpr int64_t kMostCellsSideBySide = 1 << 14;
/// Rows with larger scores are evaluated separately.
inline constexpr double kLargestScore = 1e9;

/// Uninitialised numbers, aligned to a cache line.
template <class T>
struct UnsetAllocator : LineAllocator<T> {
  template <class U>
  struct rebind {
    using other = UnsetAllocator<U>;
  };
  template <class U>
  void construct(U* place) {
    ::new (static_cast<void*>(place)) U;
  }
};
using UnsetNumbers = std::vector<double, UnsetAllocator<double>>;

/// The loops of the instruction set in use.
LatticeLoops lattice_loops();

/// Up to eight rows in parallel. Whether a row is in a group, and with which others, does not
/// change its numbers.
template <LatticeScores kScores>
class LatticeGroup {
 public:
  using Solver = Lattice<kScores>;
  static constexpr int64_t kPerCell = Solver::kPerCell;

  explicit LatticeGroup(const Solver& solver) : solver_(solver), loops_(lattice_loops()) {
    const int64_t row = solver.width * kPerCell, border = 2 * (solver.width + 1);
    const int64_t cells = solver.cells();
    tables_.resize(
        static_cast<size_t>((solver.size() + 2 * border + 2 * row + 4 * cells) * kLatticeLanes));
    double* free = tables_.data();
    const auto take = [&](int64_t entries) {
      double* const taken = free;
      free += entries * kLatticeLanes;
      return taken;
    };
    lanes_ = {.height = solver.height,
              .width = solver.width,
              .moves = static_cast<unsigned>(solver.moves),
              .per_move = Solver::kPerMove,
              .scores = take(solver.size()),
              .mantissa = take(border),
              .exponent = take(border),
              .factor = take(row),
              .power = take(row),
              .share = take(3 * cells),
              .mu = take(cells),
              .v = nullptr,
              .up_to = nullptr,
              .beyond = nullptr};
  }

  /// Evaluates `rows`, at most eight, and calls alone(i) for those with larger scores.
  template <class T, class Alone>
  void evaluate(const DistributionRows<T>& rows, const Alone& alone) {
    const int64_t n = solver_.size();
    read(rows);
    forward();
    if (rows.marginals || rows.covariance) fill_marginals();
    if (rows.covariance) fill_covariance(rows);
    for (int lane = 0; lane < rows.count; ++lane) write_status(rows, lane);
    if (rows.marginals) {
      by_blocks(rows.count, [&](int lane, int64_t begin, int64_t end) {
        if (lane_[lane].ok()) write_marginals(lane, begin, end, rows.marginals + lane * n);
      });
    }
    if (rows.covariance) {
      by_blocks(rows.count, [&](int lane, int64_t begin, int64_t end) {
        if (lane_[lane].ok()) write_covariance(lane, begin, end, rows.covariance + lane * n);
      });
    }
    for (int lane = 0; lane < rows.count; ++lane) {
      if (lane_[lane].large && !lane_[lane].bad) alone(lane);
    }
  }

 private:
  struct Lane {
    LatticeExtent extent;
    bool bad = false;    // NaN or +inf
    bool large = false;  // beyond kLargestScore
    Scaled sum;

    /// Evaluated here, and valid.
    bool ok() const { return !bad && !large && !sum.is_zero(); }
    int64_t last_cell(int64_t width) const {
      return (extent.height - 1) * width + extent.width - 1;
    }
  };

  /// Lanes without a row are all walls, and so are those of rows that are invalid or evaluated
  /// separately.
  template <class T>
  void read(const DistributionRows<T>& rows) {
    const int64_t n = solver_.size();
    std::fill_n(lanes_.scores, n * kLatticeLanes, -HUGE_VAL);
    for (int lane = 0; lane < kLatticeLanes; ++lane) lane_[lane] = {};
    for (int lane = 0; lane < rows.count; ++lane) {
      const bool* mask = rows.mask ? rows.mask + lane * n : nullptr;
      lane_[lane].extent = lattice_extent(solver_.height, solver_.width, kPerCell, mask);
    }
    by_blocks(rows.count, [&](int lane, int64_t begin, int64_t end) {
      const T* scores = rows.scores + lane * n;
      const bool* mask = rows.mask ? rows.mask + lane * n : nullptr;
      double* const out = lanes_.scores + lane;
      bool bad = false, large = false;
      for (int64_t j = begin; j < end; ++j) {
        const double x = MaskedScores<T>{scores, mask}(j);
        bad |= !(x < HUGE_VAL);
        large |= std::abs(x) > kLargestScore && x != -HUGE_VAL;
        out[j * kLatticeLanes] = x;
      }
      lane_[lane].bad |= bad;
      lane_[lane].large |= large;
    });
    for (int lane = 0; lane < rows.count; ++lane) {
      if (!lane_[lane].bad && !lane_[lane].large) continue;
      for (int64_t j = 0; j < n; ++j) lanes_.scores[j * kLatticeLanes + lane] = -HUGE_VAL;
    }
  }

  /// Calls body(lane, begin, end) for parts of the entries that stay in the cache from one lane to
  /// the next.
  template <class Body>
  void by_blocks(int64_t count, const Body& body) const {
    constexpr int64_t kBlock = 128;
    for (int64_t begin = 0; begin < solver_.size(); begin += kBlock) {
      const int64_t end = std::min(begin + kBlock, solver_.size());
      for (int lane = 0; lane < count; ++lane) body(lane, begin, end);
    }
  }

  void forward() {
    const int64_t pitch = (solver_.width + 1) * kLatticeLanes;
    std::fill_n(lanes_.mantissa, 2 * pitch, 0.0);
    std::fill_n(lanes_.exponent, 2 * pitch, kLatticeZero);
    for (int64_t t = 0; t < solver_.height; ++t) {
      loops_.forward_row(lanes_, t);
      for (int lane = 0; lane < kLatticeLanes; ++lane) {
        const LatticeExtent& extent = lane_[lane].extent;
        if (extent.height != t + 1) continue;
        const int64_t at = (t % 2) * pitch + extent.width * kLatticeLanes + lane;
        lane_[lane].sum = {lanes_.mantissa[at], lanes_.exponent[at]};
      }
    }
  }

  void fill_marginals() {
    std::fill_n(lanes_.mu, solver_.cells() * kLatticeLanes, 0.0);
    for (int lane = 0; lane < kLatticeLanes; ++lane) {
      if (!lane_[lane].ok()) continue;
      lanes_.mu[lane_[lane].last_cell(solver_.width) * kLatticeLanes + lane] = 1;
    }
    loops_.marginals(lanes_);
  }

  template <class T>
  void fill_covariance(const DistributionRows<T>& rows) {
    const int64_t n = solver_.size(), cells = solver_.cells();
    more_.resize(static_cast<size_t>((n + 2 * cells) * kLatticeLanes));
    lanes_.v = more_.data();
    lanes_.up_to = lanes_.v + n * kLatticeLanes;
    lanes_.beyond = lanes_.up_to + cells * kLatticeLanes;
    std::fill_n(lanes_.v, n * kLatticeLanes, 0.0);
    for (int64_t lane = 0; lane < rows.count; ++lane) {
      for (int64_t j = 0; j < n; ++j) {
        if (rows.mask && !rows.mask[lane * n + j]) continue;
        lanes_.v[j * kLatticeLanes + lane] = static_cast<double>(rows.v[lane * n + j]);
      }
    }
    loops_.covariance(lanes_);
  }

  template <class T>
  void write_status(const DistributionRows<T>& rows, int lane) const {
    const Lane& read = lane_[lane];
    if (!read.ok()) {
      const Status status = read.bad ? Status::kNaN : Status::kDisconnected;
      return refuse(rows, solver_.size(), lane, status);
    }
    rows.status[lane] = Status::kOk;
    if (rows.log_partition) rows.log_partition[lane] = static_cast<T>(log(read.sum));
  }

  template <class T>
  void write_marginals(int lane, int64_t begin, int64_t end, T* out) const {
    for (int64_t j = begin; j < end; ++j) {
      const double share = Solver::kPerMove ? lanes_.share[j * kLatticeLanes + lane] : 1.0;
      const double mu = lanes_.mu[j / kPerCell * kLatticeLanes + lane] * share;
      out[j] = static_cast<T>(std::min(mu, 1.0));
    }
  }

  template <class T>
  void write_covariance(int lane, int64_t begin, int64_t end, T* out) const {
    const int64_t width = solver_.width;
    const auto of = [lane](const double* array, int64_t i) {
      return array[i * kLatticeLanes + lane];
    };
    const double mean = of(lanes_.up_to, lane_[lane].last_cell(width));
    for (int64_t j = begin; j < end; ++j) {
      const int64_t cell = j / kPerCell, m = j % kPerCell;
      const double mu = of(lanes_.mu, cell), share = Solver::kPerMove ? of(lanes_.share, j) : 1.0;
      double covariance = 0;
      if (mu > 0 && share > 0) {
        const int64_t before = cell - (m != 2 ? width : 0) - (m != 1 ? 1 : 0);
        const double up_to =
            Solver::kPerMove ? of(lanes_.up_to, before) + of(lanes_.v, j) : of(lanes_.up_to, cell);
        covariance = share * (mu * (up_to - mean) + of(lanes_.beyond, cell));
      }
      out[j] = static_cast<T>(covariance);
    }
  }

  const Solver& solver_;
  LatticeLoops loops_;
  UnsetNumbers tables_, more_;
  LatticeLanes lanes_{};
  Lane lane_[kLatticeLanes];
};

}  // namespace aimle::detail
