// Thresholds of the entries of a lattice on the host (lattice_swaps.h has the method).
#include <bit>
#include <vector>

#include "aimle/estimate/lattice_swaps.h"
#include "aimle/estimate/passes.h"
#include "aimle/map/lattice_path.h"
#include "aimle/map/one_thread.h"
#include "aimle/map/swap_finder.h"

namespace aimle {
namespace {

template <LatticeScores kScores, class T>
class LatticeThresholds final : public SwapFinder<T> {
 public:
  using Solver = Lattice<kScores>;
  using Swaps = detail::LatticeSwaps<Solver::kPerMove, T>;

  explicit LatticeThresholds(const Solver& solver)
      : solver_(solver),
        memory_(static_cast<size_t>(Swaps::numbers(solver.height, solver.width))) {}

  bool find(const SwapRow<T>& row, double* threshold, double* difference) override {
    const auto extent =
        detail::lattice_extent(solver_.height, solver_.width, Solver::kPerCell, row.mask);
    if (!has_solution(row, extent)) return false;
    Swaps swaps{.height = static_cast<int32_t>(extent.height),
                .width = static_cast<int32_t>(extent.width),
                .pitch = static_cast<int32_t>(solver_.width),
                .moves = static_cast<uint32_t>(solver_.moves),
                .x = row.x,
                .mask = row.mask,
                .d = row.d};
    swaps.use(memory_.data(), solver_.height, solver_.width);
    const auto chosen = [bits = row.bits](int32_t j) { return (bits[j / 8] >> j % 8 & 1) != 0; };
    detail::OneThread alone;
    swaps.find(alone, chosen);
    int32_t j = 0;
    for (int32_t t = 0; t < solver_.height; ++t) {
      for (int32_t u = 0; u < solver_.width; ++u) {
        for (int m = 0; m < Solver::kPerCell; ++m, ++j) {
          const detail::LatticeThreshold own = swaps.of(t, u, m, chosen(j));
          threshold[j] = own.threshold;
          difference[j] = own.difference;
        }
      }
    }
    return true;
  }

 private:
  /// A path has an entry, except that of moves over a single cell.
  bool has_solution(const SwapRow<T>& row, const detail::LatticeExtent& extent) const {
    for (int64_t i = 0; i < bytes_per_row(solver_.size()); ++i) {
      if (row.bits[i] != 0) return true;
    }
    if (!Solver::kPerMove || extent.height != 1 || extent.width != 1) return false;
    for (int64_t m = 0; m < Solver::kPerCell; ++m) {
      if ((row.mask == nullptr || row.mask[m]) && row.x[m] != row.x[m]) return false;
    }
    return true;
  }

  Solver solver_;
  std::vector<double> memory_;
};

}  // namespace

template <LatticeScores kScores>
template <class T>
std::unique_ptr<SwapFinder<T>> Lattice<kScores>::swap_finder() const {
  return std::make_unique<LatticeThresholds<kScores, T>>(*this);
}
template std::unique_ptr<SwapFinder<float>> LatticePath::swap_finder() const;
template std::unique_ptr<SwapFinder<double>> LatticePath::swap_finder() const;
template std::unique_ptr<SwapFinder<float>> LatticeMoves::swap_finder() const;
template std::unique_ptr<SwapFinder<double>> LatticeMoves::swap_finder() const;

}  // namespace aimle
