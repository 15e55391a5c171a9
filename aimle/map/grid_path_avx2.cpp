#include "aimle/map/grid_path_avx2.h"

#include <immintrin.h>

#include "aimle/map/transpose_avx2.h"

namespace aimle::avx2 {
namespace {

using detail::GridWalk;
using detail::PaddedGrid;

constexpr int kLanes = 8;

inline __m256 infinity() { return _mm256_set1_ps(__builtin_huge_valf()); }

/// The smaller of numbers that are not below +0: as integers they have the same order.
inline __m256 smaller(__m256 a, __m256 b) {
  return _mm256_castsi256_ps(_mm256_min_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b)));
}

/// The sign bit is set where a < b, both not below +0.
inline __m256i less(__m256 a, __m256 b) {
  return _mm256_sub_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b));
}

/// Properties of the unmasked costs, one bit for each grid.
struct Found {
  unsigned nan = 0;
  unsigned negative = 0;
};

/// Reads eight rows of costs into the lanes of a padded grid, eight cells at a time: negative costs
/// become +0, walls infinite.
template <bool kMasked>
class Reader {
 public:
  /// `cost` is the padded grid from the first of the eight lanes on.
  Reader(const PaddedGrid& grid, const float* const* scores, const bool* const* masks, float* cost)
      : grid_(grid), scores_(scores), masks_(masks), out_(cost + grid.pitch + grid.lanes) {}

  Found run() {
    const int64_t n = int64_t{grid_.height} * grid_.width;
    __m256 x[8];
    int64_t j = 0;
    for (; j + 8 <= n; j += 8) {
      for (int i = 0; i < 8; ++i) {
        x[i] = _mm256_loadu_ps(scores_[i] + j);
        if constexpr (kMasked) x[i] = unmasked(x[i], masks_[i] + j, infinity());
      }
      transpose(x);
      for (int i = 0; i < 8; ++i) write_cell(x[i]);
    }
    if (j < n) {
      for (int i = 0; i < 8; ++i) {
        x[i] = load_unmasked<kMasked>(scores_[i] + j, kMasked ? masks_[i] + j : nullptr, n - j,
                                      infinity());
      }
      transpose(x);
      for (int i = 0; j + i < n; ++i) write_cell(x[i]);
    }
    return {.nan = static_cast<unsigned>(_mm256_movemask_ps(nan_)),
            .negative = static_cast<unsigned>(_mm256_movemask_ps(negative_))};
  }

 private:
  void write_cell(__m256 x) {
    const __m256 zero = _mm256_setzero_ps();
    nan_ = _mm256_or_ps(nan_, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    negative_ = _mm256_or_ps(negative_, _mm256_cmp_ps(x, zero, _CMP_LT_OQ));
    _mm256_store_ps(out_, _mm256_max_ps(x, zero));  // +0 also for -0 and NaN
    out_ += grid_.lanes;
    if (++column_ == grid_.width) {
      column_ = 0;
      out_ += grid_.lanes;
    }
  }

  const PaddedGrid& grid_;
  const float* const* scores_;
  const bool* const* masks_;
  float* out_;
  int32_t column_ = 0;
  __m256 nan_ = _mm256_setzero_ps();
  __m256 negative_ = _mm256_setzero_ps();
};

Found read_costs(const PaddedGrid& grid, const Rows<float>& rows, float* cost) {
  const int64_t n = int64_t{grid.height} * grid.width;
  Found all;
  for (int first = 0; first < grid.lanes; first += kLanes) {
    const float* scores[kLanes];
    const bool* masks[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      const int64_t row = first + i < rows.count ? first + i : rows.count - 1;  // idle: repeat last
      scores[i] = rows.scores + row * n;
      masks[i] = rows.mask != nullptr ? rows.mask + row * n : nullptr;
    }
    const Found found = rows.mask != nullptr
                            ? Reader<true>(grid, scores, masks, cost + first).run()
                            : Reader<false>(grid, scores, masks, cost + first).run();
    all.nan |= found.nan << first;
    all.negative |= found.negative << first;
  }
  return all;
}

/// Distances by sweeps down and up over the rows. Rounding is monotone, so relaxing steps in any
/// order until nothing changes gives the same distances as Dijkstra.
///
/// A row is relaxed by `pull`: steps into it from the row above or below and, in the same pass,
/// steps along it in one direction. If that changed anything, steps in the other direction complete
/// the row; the next pull always starts from this row and goes in that direction, and does both in
/// one pass: each is a chain of additions, and two parallel chains hide each other's latency.
template <int kVectors, int kNeighbours>
class Sweeps {
 public:
  Sweeps(const PaddedGrid& grid, const float* cost, float* distance)
      : grid_(grid), cost_(cost), distance_(distance) {}

  /// False if it takes too long: more than about twice the time for grids of random costs.
  /// `fell_above[r]` and `fell_below[r]`, [height] each: row r has to be pulled from there.
  bool run(bool* fell_above, bool* fell_below) {
    for (int32_t i = grid_.pitch; i < grid_.size - grid_.pitch; i += kLanes) {
      _mm256_store_ps(distance_ + i, infinity());
    }
    for (int v = 0; v < kVectors; ++v) {
      _mm256_store_ps(distance_ + grid_.source + v * kLanes,
                      _mm256_load_ps(cost_ + grid_.source + v * kLanes));
    }
    for (int32_t r = 0; r < grid_.height; ++r) fell_above[r] = fell_below[r] = false;
    const int32_t source_row = grid_.source / grid_.pitch - 1;
    close(source_row, kCell);
    close(source_row, -kCell);
    if (source_row + 1 < grid_.height) fell_above[source_row + 1] = true;
    if (source_row > 0) fell_below[source_row - 1] = true;
    const int64_t most_pulls = grid_.height * (int64_t{32} + (grid_.height + grid_.width) / 4);
    for (bool any = true; any;) {
      if (pulls_ > most_pulls) return false;
      any = false;
      for (int32_t r = 1; r < grid_.height; ++r) {
        if (!fell_above[r]) continue;
        fell_above[r] = false;
        if (!pull(r, -grid_.pitch)) continue;
        any = fell_below[r - 1] = true;
        if (r + 1 < grid_.height) fell_above[r + 1] = true;
      }
      for (int32_t r = grid_.height - 2; r >= 0; --r) {
        if (!fell_below[r]) continue;
        fell_below[r] = false;
        if (!pull(r, grid_.pitch)) continue;
        any = fell_above[r + 1] = true;
        if (r > 0) fell_below[r - 1] = true;
      }
    }
    return true;
  }

 private:
  static constexpr int32_t kCell = kVectors * kLanes;

  /// The first entry of a row for a pass with this step.
  int32_t first_of(int32_t r, int32_t step) const {
    const int32_t left = (r + 1) * grid_.pitch + kCell;
    return step > 0 ? left : left + (grid_.width - 1) * kCell;
  }

  void close(int32_t r, int32_t step) {
    int32_t i = first_of(r, step);
    for (int32_t column = 1; column < grid_.width; ++column, i += step) {
      for (int v = 0; v < kVectors; ++v) {
        const __m256 x = _mm256_load_ps(distance_ + i + v * kLanes);
        step_along(i + step + v * kLanes, x);
      }
    }
  }

  /// Relaxes the step into entry i from a neighbour in its row at distance x.
  __m256 step_along(int32_t i, __m256 x) {
    const __m256 d =
        smaller(_mm256_load_ps(distance_ + i), _mm256_add_ps(x, _mm256_load_ps(cost_ + i)));
    _mm256_store_ps(distance_ + i, d);
    return d;
  }

  bool pull(int32_t r, int32_t from) {
    ++pulls_;
    if (open_) step_ = -step_;
    open_ = open_ ? pull<true>(r, from) : pull<false>(r, from);
    return open_;
  }

  /// Pulls row r from the one `from` entries away, which is completed in the same pass if it is
  /// open.
  /// True if a distance decreased that may still matter: one from which the target may be entered
  /// at no more than its distance.
  template <bool kFromOpen>
  bool pull(int32_t r, int32_t from) {
    __m256 x[kVectors], behind[kVectors], beside[kVectors], limit[kVectors];
    __m256i fell[kVectors];
    int32_t i = first_of(r, step_);
    for (int v = 0; v < kVectors; ++v) {
      behind[v] = infinity();
      beside[v] = _mm256_load_ps(distance_ + i + from + v * kLanes);
      x[v] = infinity();
      fell[v] = _mm256_setzero_si256();
      limit[v] = limit_that_matters(v * kLanes);
    }
    for (int32_t column = 0; column < grid_.width; ++column, i += step_) {
      for (int v = 0; v < kVectors; ++v) {
        const int32_t at = i + v * kLanes;
        const int32_t next = at + from + step_;
        const __m256 ahead =
            kFromOpen ? step_along(next, beside[v]) : _mm256_load_ps(distance_ + next);
        __m256 nearest = beside[v];
        if constexpr (kNeighbours == 8) nearest = smaller(nearest, smaller(behind[v], ahead));
        const __m256 c = _mm256_load_ps(cost_ + at);
        const __m256 old = _mm256_load_ps(distance_ + at);
        // Two additions instead of one: the dependency chain from x to x is shorter.
        x[v] = smaller(smaller(old, _mm256_add_ps(nearest, c)), _mm256_add_ps(x[v], c));
        _mm256_store_ps(distance_ + at, x[v]);
        fell[v] = _mm256_or_si256(fell[v], less(x[v], smaller(old, limit[v])));
        behind[v] = beside[v];
        beside[v] = ahead;
      }
    }
    __m256i any = fell[0];
    for (int v = 1; v < kVectors; ++v) any = _mm256_or_si256(any, fell[v]);
    return _mm256_movemask_ps(_mm256_castsi256_ps(any)) != 0;
  }

  /// All distances u with fl(u + c(target)) <= d(target) lie below it.
  __m256 limit_that_matters(int32_t lane) const {
    const __m256 c = _mm256_load_ps(cost_ + grid_.target + lane);
    const __m256 d = _mm256_load_ps(distance_ + grid_.target + lane);
    const __m256 before = _mm256_max_ps(_mm256_sub_ps(d, c), _mm256_setzero_ps());
    const __m256 rounding =
        _mm256_add_ps(_mm256_mul_ps(d, _mm256_set1_ps(0x1p-20f)), _mm256_set1_ps(0x1p-126f));
    return _mm256_add_ps(before, rounding);
  }

  const PaddedGrid& grid_;
  const float* cost_;
  float* distance_;
  /// The direction of the last pull, and whether it left its row open.
  int32_t step_ = kCell;
  bool open_ = false;
  int64_t pulls_ = 0;
};

/// A bit for each neighbour from which the cell is reached at its distance.
template <int kNeighbours>
inline unsigned tight_neighbours(const PaddedGrid& grid, const float* cost, const float* distance,
                                 int32_t cell) {
  const float* d = distance + cell;
  if constexpr (kNeighbours == 8) {
    const __m256 u =
        _mm256_setr_ps(d[grid.step[0]], d[grid.step[1]], d[grid.step[2]], d[grid.step[3]],
                       d[grid.step[4]], d[grid.step[5]], d[grid.step[6]], d[grid.step[7]]);
    const __m256 through_u = _mm256_add_ps(u, _mm256_set1_ps(cost[cell]));
    return static_cast<unsigned>(
        _mm256_movemask_ps(_mm256_cmp_ps(through_u, _mm256_set1_ps(*d), _CMP_EQ_OQ)));
  } else {
    const __m128 u =
        _mm_setr_ps(d[grid.step[0]], d[grid.step[1]], d[grid.step[2]], d[grid.step[3]]);
    const __m128 through_u = _mm_add_ps(u, _mm_set1_ps(cost[cell]));
    return static_cast<unsigned>(
        _mm_movemask_ps(_mm_cmp_ps(through_u, _mm_set1_ps(*d), _CMP_EQ_OQ)));
  }
}

/// A walk in progress.
struct Walker {
  int32_t lane;
  int32_t cell;
  int32_t raster_cell;
  float* z;
};

/// Interleaves the walks of several grids, one step each; one that reaches a tie continues alone.
template <int kNeighbours>
void write_paths(const PaddedGrid& grid, const float* cost, const float* distance, Walker* walkers,
                 int count, GridWalk<float>& walk) {
  while (count > 0) {
    for (int w = 0; w < count; ++w) {
      Walker& at = walkers[w];
      at.z[at.raster_cell] = 1.0f;
      if (at.cell == grid.source) {
        at = walkers[--count];
        --w;
        continue;
      }
      const unsigned tight =
          tight_neighbours<kNeighbours>(grid, cost + at.lane, distance + at.lane, at.cell);
      if ((tight & (tight - 1)) != 0) {
        walk.write_path_from(at.cell, at.raster_cell, cost + at.lane, distance + at.lane, at.z);
        at = walkers[--count];
        --w;
        continue;
      }
      const int way = __builtin_ctz(tight);
      at.cell += grid.step[way];
      at.raster_cell += grid.raster_step[way];
    }
  }
}

void fill(float* z, int64_t n, float value) {
  for (int64_t j = 0; j < n; ++j) z[j] = value;
}

template <int kVectors, int kNeighbours>
bool solve_lanes(const GridPath& solver, const PaddedGrid& grid, const Rows<float>& rows,
                 const Scratch& scratch, GridWalk<float>& walk) {
  const auto [cost, distance, pending] = scratch;
  const int64_t n = int64_t{grid.height} * grid.width;
  const Found found = read_costs(grid, rows, cost);
  Sweeps<kVectors, kNeighbours> sweeps(grid, cost, distance);
  if (!sweeps.run(pending, pending + grid.height)) return false;
  Walker walkers[kVectors * kLanes];
  int walking = 0;
  for (int32_t row = 0; row < rows.count; ++row) {
    Status status = Status::kOk;
    if (distance[grid.target + row] == __builtin_huge_valf()) status = Status::kDisconnected;
    if ((found.negative >> row & 1) != 0 && solver.negative == GridPath::Negative::kError) {
      status = Status::kNegativeCost;
    }
    if ((found.nan >> row & 1) != 0) status = Status::kNaN;
    rows.status[row] = status;
    float* z = rows.z + row * n;
    fill(z, n, status == Status::kOk ? 0.0f : __builtin_nanf(""));
    if (status == Status::kOk) walkers[walking++] = {row, grid.target, grid.raster_target, z};
  }
  write_paths<kNeighbours>(grid, cost, distance, walkers, walking, walk);
  return true;
}

}  // namespace

bool solve_side_by_side(const GridPath& solver, const PaddedGrid& grid, const Rows<float>& rows,
                        const Scratch& scratch, GridWalk<float>& walk) {
  if (grid.lanes == 2 * kLanes) {
    return grid.neighbours == 8 ? solve_lanes<2, 8>(solver, grid, rows, scratch, walk)
                                : solve_lanes<2, 4>(solver, grid, rows, scratch, walk);
  }
  return grid.neighbours == 8 ? solve_lanes<1, 8>(solver, grid, rows, scratch, walk)
                              : solve_lanes<1, 4>(solver, grid, rows, scratch, walk);
}

}  // namespace aimle::avx2
