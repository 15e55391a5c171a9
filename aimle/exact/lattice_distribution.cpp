#include "aimle/exact/lattice_distribution.h"

#include <algorithm>

#include "aimle/base/isa.h"
#include "aimle/exact/define_distribution.h"
#include "aimle/exact/lattice_groups.h"
#include "aimle/exact/lattice_row.h"
#include "aimle/map/one_thread.h"

namespace aimle {
namespace {

/// Reads and evaluates rows one after the other.
template <LatticeScores kScores>
class OneByOne {
 public:
  using Wanted = exact_row::LatticeTables::Wanted;
  static constexpr bool kPerMove = Lattice<kScores>::kPerMove;

  OneByOne(const Lattice<kScores>& solver, Wanted wanted)
      : size_(solver.size()),
        shape_(detail::lattice_shape(solver)),
        memory_(static_cast<size_t>(exact_row::LatticeTables::doubles(solver.cells(), wanted))),
        tables_(exact_row::LatticeTables::at(memory_.data(), solver.cells())) {}

  template <class T>
  void evaluate(const DistributionRows<T>& rows) {
    for_each_valid(rows, [&](int64_t i) {
      if (rows.log_partition) {
        rows.log_partition[i] = static_cast<T>(exact_row::log_partition(row_, tables_));
      }
      if (!rows.marginals && !rows.covariance) return;
      exact_row::fill_marginals<kPerMove>(thread_, row_, tables_);
      if (rows.marginals) {
        exact_row::write_marginals<kPerMove>(thread_, shape_, row_, tables_,
                                             rows.marginals + i * size_);
      }
      if (rows.covariance) {
        exact_row::write_covariance<kPerMove>(thread_, shape_, row_, tables_, rows.v + i * size_,
                                              rows.covariance + i * size_);
      }
    });
  }

  template <class T>
  void sample(const SampleRows<T>& rows) {
    for_each_valid(rows, [&](int64_t i) {
      exact_row::sample_lattice<kPerMove>(thread_, shape_, row_, tables_, rows.key, rows.first + i,
                                          rows.samples, rows.z + i * rows.samples * size_);
    });
  }

 private:
  template <class Rows, class Body>
  void for_each_valid(const Rows& rows, const Body& body) {
    const auto read = [&](const auto* scores, const bool* mask, int64_t) {
      const auto extent =
          detail::lattice_extent(shape_.height, shape_.width, kPerMove ? 3 : 1, mask);
      const detail::LatticePart part{.height = static_cast<int32_t>(extent.height),
                                     .width = static_cast<int32_t>(extent.width),
                                     .pitch = shape_.width};
      row_ = exact_row::read_lattice<kPerMove>(thread_, shape_, part, scores, mask, tables_);
      return row_.status;
    };
    detail::for_each_row(rows, size_, read, body);
  }

  int64_t size_;
  detail::LatticeShape shape_;
  detail::UnsetNumbers memory_;
  exact_row::LatticeTables tables_;
  exact_row::LatticeRow row_;
  detail::OneThread thread_;
};

template <LatticeScores kScores, class T>
void evaluate_all(const Lattice<kScores>& solver, const DistributionRows<T>& rows) {
  using Wanted = exact_row::LatticeTables::Wanted;
  OneByOne<kScores> alone(solver,
                          rows.marginals || rows.covariance ? Wanted::kMarginals : Wanted::kShares);
  if (solver.cells() > detail::kMostCellsSideBySide) return alone.evaluate(rows);
  const int64_t n = solver.size();
  detail::LatticeGroup<kScores> side_by_side(solver);
  for (int64_t i = 0; i < rows.count; i += kLatticeLanes) {
    const auto group = slice(rows, n, i, std::min(i + kLatticeLanes, rows.count));
    side_by_side.evaluate(group,
                          [&](int64_t row) { alone.evaluate(slice(group, n, row, row + 1)); });
  }
}

template <LatticeScores kScores, class T>
void sample_all(const Lattice<kScores>& solver, const SampleRows<T>& rows) {
  OneByOne<kScores>(solver, exact_row::LatticeTables::Wanted::kShares).sample(rows);
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
