// Thresholds of the entries of lattices on the host (lattice_swaps.h has the method): several
// lattices side by side (threshold_lattice_loops.h), or one at a time.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include "aimle/base/aligned.h"
#include "aimle/estimate/lattice_swaps.h"
#include "aimle/estimate/passes.h"
#include "aimle/estimate/threshold_kernels.h"
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

  explicit LatticeThresholds(const Solver& solver) : solver_(solver) {}

  int64_t rows_at_once() const override {
    return solver_.cells() <= kMaxCellsAtOnce ? kernels_.lattice_lanes : 1;
  }

  bool find(const SwapRow<T>& row, double* threshold, double* difference) override {
    const detail::LatticeExtent extent = extent_of(row);
    if (!has_solution(row, extent)) return false;
    Swaps swaps{.height = static_cast<int32_t>(extent.height),
                .width = static_cast<int32_t>(extent.width),
                .pitch = static_cast<int32_t>(solver_.width),
                .moves = static_cast<uint32_t>(solver_.moves),
                .x = row.x,
                .mask = row.mask,
                .d = row.d};
    memory_.resize(static_cast<size_t>(Swaps::numbers(solver_.height, solver_.width)));
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

  void find_rows(const SwapRow<T>* rows, int64_t count, int64_t stride, double* threshold,
                 double* difference, bool* found) override {
    if (rows_at_once() == 1) {
      return SwapFinder<T>::find_rows(rows, count, stride, threshold, difference, found);
    }
    reserve();
    // Lanes without a row repeat the last one.
    const auto row_of = [&](int64_t lane) -> const SwapRow<T>& {
      return rows[std::min(lane, count - 1)];
    };
    for (int64_t i = 0; i < kernels_.lattice_lanes; ++i) {
      const SwapRow<T>& row = row_of(i);
      x_of_[static_cast<size_t>(i)] = row.mask == nullptr ? row.x : masked_scores(i, row);
      d_of_[static_cast<size_t>(i)] = row.d;
    }
    kernels_.interleave(x_of_.data(), solver_.size(), x_.data());
    kernels_.interleave(d_of_.data(), solver_.size(), d_.data());
    for (int64_t i = 0; i < kernels_.lattice_lanes; ++i) {
      read_solution(i, row_of(i));
      if (i < count) found[i] = has_solution(rows[i], extent_of(rows[i]));
    }
    // Rows of the batch are followed by others, so lanes without a row have rows of their own.
    const bool all = count == kernels_.lattice_lanes;
    if (!all) spare_.resize(static_cast<size_t>(2 * kernels_.lattice_lanes * stride));
    const LatticeGroup<T> group{
        .height = solver_.height,
        .width = solver_.width,
        .moves = static_cast<uint32_t>(solver_.moves),
        .x = x_.data(),
        .d = d_.data(),
        .chosen = chosen_.data(),
        .corner = corner_.data(),
        .solution = solution_.data(),
        .solution_gain = solution_gain_.data(),
        .memory = memory_.data(),
        .threshold = all ? threshold : spare_.data(),
        .difference = all ? difference : spare_.data() + kernels_.lattice_lanes * stride,
        .stride = stride,
        .other = other_.data(),
        .other_gain = other_gain_.data()};
    if (Solver::kPerMove) {
      kernels_.find_lattices_of_moves(group);
    } else {
      kernels_.find_lattices_of_cells(group);
    }
    if (!all) {
      std::copy_n(group.threshold, count * stride, threshold);
      std::copy_n(group.difference, count * stride, difference);
    }
    for (int64_t i = 0; i < count; ++i) {
      set_chosen(i, rows[i].x, threshold + i * stride, difference + i * stride);
    }
    for (const std::vector<int64_t>& path : path_) {
      for (const int64_t j : path) chosen_[static_cast<size_t>(j)] = 0;
    }
    std::fill(corner_.begin(), corner_.end(), uint8_t{0});
  }

 private:
  /// Beyond it, several lattices would need more than 128 MiB.
  static constexpr int64_t kMaxCellsAtOnce = int64_t{1} << 19;

  detail::LatticeExtent extent_of(const SwapRow<T>& row) const {
    if (row.mask == nullptr) return {.height = solver_.height, .width = solver_.width};
    return detail::lattice_extent(solver_.height, solver_.width, Solver::kPerCell, row.mask);
  }

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

  void reserve() {
    const auto lanes = static_cast<size_t>(kernels_.lattice_lanes);
    const auto entries = static_cast<size_t>(solver_.size());
    if (path_.size() == lanes) return;
    memory_.resize(static_cast<size_t>(kernels_.lattice_numbers(solver_.height, solver_.width)));
    x_.resize(entries * lanes);
    d_.resize(entries * lanes);
    chosen_.resize(entries);
    corner_.resize(static_cast<size_t>(solver_.cells()));
    const auto waves = static_cast<size_t>(solver_.height + solver_.width);
    other_.resize(waves * lanes);
    other_gain_.resize(waves * lanes);
    solution_.resize(lanes);
    solution_gain_.resize(lanes);
    x_of_.resize(lanes);
    d_of_.resize(lanes);
    path_.resize(lanes);
  }

  /// The path of a row, its sums and its last corner, for lane i.
  void read_solution(int64_t i, const SwapRow<T>& row) {
    const auto lane = static_cast<size_t>(i);
    const auto bit = static_cast<uint8_t>(1u << i);
    const detail::LatticeExtent extent = extent_of(row);
    if (extent.height > 0) {
      const int64_t corner = (extent.height - 1) * solver_.width + extent.width - 1;
      corner_[static_cast<size_t>(corner)] |= bit;
    }
    std::vector<int64_t>& path = path_[lane];
    path.clear();
    solution_[lane] = solution_gain_[lane] = 0.0;
    const int64_t bytes = bytes_per_row(solver_.size());
    for (int64_t first = 0; first < bytes; first += 8) {
      uint64_t rest = 0;
      std::memcpy(&rest, row.bits + first,
                  static_cast<size_t>(std::min<int64_t>(8, bytes - first)));
      for (; rest != 0; rest &= rest - 1) {
        const int64_t j = 8 * first + std::countr_zero(rest);
        path.push_back(j);
        chosen_[static_cast<size_t>(j)] |= bit;
        solution_[lane] += static_cast<double>(row.x[j]);
        solution_gain_[lane] += static_cast<double>(row.d[j]);
      }
    }
  }

  const T* masked_scores(int64_t i, const SwapRow<T>& row) {
    const int64_t entries = solver_.size();
    masked_.resize(static_cast<size_t>(kernels_.lattice_lanes * entries));
    T* out = masked_.data() + i * entries;
    for (int64_t j = 0; j < entries; ++j) {
      out[j] = row.mask[j] ? row.x[j] : -std::numeric_limits<T>::infinity();
    }
    return out;
  }

  /// Compares the entries of the solution of lattice i with the best paths that avoid them.
  void set_chosen(int64_t i, const T* x, double* threshold, double* difference) const {
    const auto lane = static_cast<size_t>(i);
    for (const int64_t j : path_[lane]) {
      const int64_t cell = j / Solver::kPerCell, t = cell / solver_.width;
      int64_t wave = t + (cell - t * solver_.width);
      if (Solver::kPerMove) wave -= j % Solver::kPerCell == 0 ? 2 : 1;  // where the move starts
      const auto at = static_cast<size_t>(wave * kernels_.lattice_lanes + i);
      threshold[j] = other_[at] - (solution_[lane] - static_cast<double>(x[j]));
      difference[j] = solution_gain_[lane] - other_gain_[at];
    }
  }

  Solver solver_;
  const ThresholdKernels<T>& kernels_ = threshold_kernels<T>();
  AlignedVector<double> memory_;

  // Several lattices; see LatticeGroup.
  AlignedVector<T> x_, d_;
  std::vector<const T*> x_of_, d_of_;  // by lane
  std::vector<T> masked_;
  std::vector<uint8_t> chosen_, corner_;
  AlignedVector<double> solution_, solution_gain_, other_, other_gain_;
  AlignedVector<double> spare_;             // results, if there are fewer rows than lanes
  std::vector<std::vector<int64_t>> path_;  // by lane
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
