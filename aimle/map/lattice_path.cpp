#include "aimle/map/lattice_path.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "aimle/base/aligned.h"
#include "aimle/base/check.h"
#include "aimle/base/isa.h"
#include "aimle/map/declaration.h"
#include "aimle/map/each_row.h"
#include "aimle/map/lattice_path_avx2.h"

namespace aimle {
namespace detail {

LatticeExtent lattice_extent(int64_t height, int64_t width, int64_t per_cell, const bool* mask) {
  if (mask == nullptr) return {height, width};
  const int64_t pitch = width * per_cell;
  LatticeExtent extent;
  for (int64_t t = 0; t < height; ++t) {
    const bool* row = mask + t * pitch;
    int64_t end = pitch;
    while (end > extent.width * per_cell && !row[end - 1]) --end;
    const bool wider = end > extent.width * per_cell;
    if (wider) extent.width = (end + per_cell - 1) / per_cell;
    if (wider || std::find(row, row + end, true) != row + end) extent.height = t + 1;
  }
  return extent;
}

}  // namespace detail

namespace {

using detail::LatticeExtent;

template <class T>
constexpr T kWall = -std::numeric_limits<T>::infinity();

/// a + x, or a wall if one of them is: NaN (inf - inf) compares as a wall.
template <class T>
T add(T a, T x) {
  const T sum = a + x;
  return sum > kWall<T> ? sum : kWall<T>;
}

/// The best sum that reaches a cell, and its move.
template <class T>
struct Reached {
  T sum = kWall<T>;
  uint8_t move = 0;
};

/// One lattice after the other: sums of two rows of cells, and the move into every cell.
template <LatticeScores kScores, class T>
class LatticeSolver {
 public:
  using Solver = Lattice<kScores>;
  static constexpr int64_t kPerCell = Solver::kPerCell;

  explicit LatticeSolver(const Solver& solver)
      : solver_(solver),
        above_(static_cast<size_t>(solver.width + 1)),
        here_(above_.size()),
        move_(static_cast<size_t>(solver.cells())) {}

  Status solve(const T* scores, const bool* mask, T* z) {
    const LatticeExtent extent =
        detail::lattice_extent(solver_.height, solver_.width, kPerCell, mask);
    if (extent.height == 0) return Status::kDisconnected;
    T last{};
    switch (solver_.moves) {
      case Solver::Moves::kAll:
        last = fill<Solver::Moves::kAll>(extent, scores, mask);
        break;
      case Solver::Moves::kStraight:
        last = fill<Solver::Moves::kStraight>(extent, scores, mask);
        break;
      case Solver::Moves::kDiagonal:
        last = fill<Solver::Moves::kDiagonal>(extent, scores, mask);
        break;
    }
    if (nan_) return Status::kNaN;
    if (last == kWall<T>) return Status::kDisconnected;
    std::fill_n(z, solver_.size(), T{0});
    walk_back(extent, z);
    return Status::kOk;
  }

 private:
  /// Fills `move_`, and returns the sum at the last corner.
  template <typename Solver::Moves kMoves>
  T fill(const LatticeExtent& extent, const T* scores, const bool* mask) {
    nan_ = false;
    std::fill(above_.begin(), above_.end(), kWall<T>);
    for (int64_t t = 0; t < extent.height; ++t) {
      const int64_t first = t * solver_.width;
      const T* x = scores + first * kPerCell;
      const bool* allowed = mask ? mask + first * kPerCell : nullptr;
      here_[0] = kWall<T>;
      for (int64_t u = 0; u < extent.width; ++u) {
        const bool start = t == 0 && u == 0;
        const auto reached =
            enter<kMoves>(u, x + u * kPerCell, allowed ? allowed + u * kPerCell : nullptr, start);
        here_[static_cast<size_t>(u) + 1] = reached.sum;
        move_[static_cast<size_t>(first + u)] = reached.move;
      }
      std::swap(above_, here_);
    }
    return above_[static_cast<size_t>(extent.width)];
  }

  T read(const T* x, const bool* allowed, int64_t m) {
    if (allowed != nullptr && !allowed[m]) return kWall<T>;
    nan_ |= x[m] != x[m];
    return x[m];
  }

  template <typename Solver::Moves kMoves>
  Reached<T> enter(int64_t u, const T* x, const bool* allowed, bool start) {
    constexpr auto kBits = static_cast<unsigned>(kMoves);
    const T before[3] = {above_[static_cast<size_t>(u)], above_[static_cast<size_t>(u) + 1],
                         here_[static_cast<size_t>(u)]};
    Reached<T> best;
    if constexpr (Solver::kPerMove) {
      for (uint8_t m = 0; m < 3; ++m) {
        const T score = read(x, allowed, m);
        if ((kBits >> m & 1) == 0) continue;
        const T sum = add(before[m], score);
        if (sum > best.sum) best = {sum, m};
      }
      if (start) best.sum = 0;
    } else {
      for (uint8_t m = 0; m < 3; ++m) {
        if ((kBits >> m & 1) != 0 && before[m] > best.sum) best = {before[m], m};
      }
      const T score = read(x, allowed, 0);
      best.sum = start ? add(T{0}, score) : add(best.sum, score);
    }
    return best;
  }

  void walk_back(const LatticeExtent& extent, T* z) const {
    int64_t t = extent.height - 1, u = extent.width - 1;
    while (t > 0 || u > 0) {
      const int64_t cell = t * solver_.width + u;
      const uint8_t move = move_[static_cast<size_t>(cell)];
      z[Solver::kPerMove ? 3 * cell + move : cell] = 1;
      t -= move != 2;
      u -= move != 1;
    }
    if constexpr (!Solver::kPerMove) z[0] = 1;
  }

  const Solver& solver_;
  std::vector<T> above_, here_;  // a wall before the first column
  std::vector<uint8_t> move_;
  bool nan_ = false;
};

template <LatticeScores kScores, class T>
void solve_each(const Lattice<kScores>& solver, const Rows<T>& rows) {
  if (rows.count == 0) return;
  LatticeSolver<kScores, T> one(solver);
  detail::solve_each_row(
      rows, solver.size(),
      [&](const T* scores, const bool* mask, T* z, int64_t) { return one.solve(scores, mask, z); });
}

/// Fewer lattices are solved one by one.
constexpr int64_t kSideBySide = 3;

/// Sixteen lattices at a time, or eight if that leaves fewer lanes idle.
template <LatticeScores kScores>
void solve_groups(const Lattice<kScores>& solver, const Rows<float>& rows) {
  const int64_t most = rows.count <= 8 ? 8 : 16;
  const avx2::LatticeSize size{.height = solver.height,
                               .width = solver.width,
                               .moves = static_cast<unsigned>(solver.moves),
                               .per_move = Lattice<kScores>::kPerMove};
  AlignedVector<float> scores(static_cast<size_t>((3 * solver.width + 8) * most));
  AlignedVector<float> sums(static_cast<size_t>(2 * (solver.width + 1) * most));
  std::vector<avx2::LatticeStep> steps(static_cast<size_t>(solver.cells()));
  const avx2::LatticeScratch scratch{scores.data(), sums.data(), steps.data()};
  for (int64_t row = 0; row < rows.count; row += most) {
    const auto group = slice(rows, solver.size(), row, std::min(row + most, rows.count));
    if (group.count < kSideBySide) {
      solve_each(solver, group);
    } else {
      avx2::solve_side_by_side(size, group.count <= 8 ? 8 : 16, group, scratch);
    }
  }
}

template <LatticeScores kScores>
void solve_float(const Lattice<kScores>& solver, const Rows<float>& rows) {
  if constexpr (kBuiltWithAvx2) {
    if (isa() >= Isa::kAvx2 && rows.count >= kSideBySide) return solve_groups(solver, rows);
  }
  solve_each(solver, rows);
}

}  // namespace

template <LatticeScores kScores>
void Lattice<kScores>::validate() const {
  AIMLE_CHECK(height >= 1 && width >= 1, "[aimle::", kName,
              "] expected height >= 1 and width >= 1 but got height=", height, ", width=", width);
  AIMLE_CHECK(height <= kMaxCells && width <= kMaxCells / height, "[aimle::", kName,
              "] expected at most ", kMaxCells, " cells but got height=", height,
              ", width=", width);
}

template <LatticeScores kScores>
void Lattice<kScores>::declare(Declaration<Lattice>& solver) {
  solver.summary = kPerMove ? "the best monotone path through a lattice of scored moves"
                            : "the best monotone path through a lattice of scored cells";
  solver.ties = "diagonal before down before right, going backwards from the end";
  solver.setting(
      "moves", &Lattice::moves,
      {{"all", Moves::kAll}, {"straight", Moves::kStraight}, {"diagonal", Moves::kDiagonal}},
      "diagonal, down and right; down and right; or diagonal and down");
}

template <LatticeScores kScores>
void Lattice<kScores>::fit(Shape instance) {
  height = instance[0];
  width = instance[1];
  AIMLE_CHECK(height >= 1 && width >= 1, "[aimle::", kName,
              "] expected scores of lattices of at least 1 x 1 cells but got ", height, " x ",
              width);
  if constexpr (kPerMove) {
    AIMLE_CHECK(instance[2] == 3, "[aimle::lattice_moves] expected scores [*batch, height, width, ",
                "3], one for each of the moves diagonal, down and right, but got a last dimension ",
                "of ", instance[2], "; lattice_path takes scores of cells [*batch, height, width]");
  }
}

template struct Lattice<LatticeScores::kCells>;
template struct Lattice<LatticeScores::kMoves>;

void solve_rows(const LatticePath& solver, const Rows<float>& rows) { solve_float(solver, rows); }
void solve_rows(const LatticePath& solver, const Rows<double>& rows) { solve_each(solver, rows); }
void solve_rows(const LatticeMoves& solver, const Rows<float>& rows) { solve_float(solver, rows); }
void solve_rows(const LatticeMoves& solver, const Rows<double>& rows) { solve_each(solver, rows); }

}  // namespace aimle
