#include "aimle/map/lattice_path_avx2.h"

#include <immintrin.h>

#include "aimle/map/transpose_avx2.h"

namespace aimle::avx2 {
namespace {

constexpr unsigned kDown = 2, kRight = 4, kDiagonal = 1;

inline __m256 wall() { return _mm256_set1_ps(-__builtin_huge_valf()); }

/// a + x, or a wall if one of them is: a maximum returns its second argument for NaN.
inline __m256 add(__m256 a, __m256 x) { return _mm256_max_ps(_mm256_add_ps(a, x), wall()); }

inline unsigned bits(__m256 truth) { return static_cast<unsigned>(_mm256_movemask_ps(truth)); }
inline unsigned larger(__m256 a, __m256 b) { return bits(_mm256_cmp_ps(a, b, _CMP_GT_OQ)); }

/// Parallel lattices, kVectors times eight of them.
template <bool kPerMove, unsigned kMoves, int kVectors>
class Lattices {
 public:
  static constexpr int kLanes = 8 * kVectors;
  static constexpr int kPerCell = kPerMove ? 3 : 1;

  Lattices(const LatticeSize& size, const Rows<float>& rows, const LatticeScratch& scratch)
      : height_(size.height),
        width_(size.width),
        entries_(height_ * width_ * kPerCell),
        rows_(rows),
        scratch_(scratch) {}

  void solve() {
    float* above = scratch_.sums;
    float* here = above + (width_ + 1) * kLanes;
    for (int64_t i = 0; i < (width_ + 1) * kLanes; i += 8) _mm256_store_ps(above + i, wall());
    for (int64_t t = 0; t < height_; ++t) {
      if (rows_.mask != nullptr) {
        read<true>(t);
      } else {
        read<false>(t);
      }
      add_row(t, above, here);
      float* const filled = here;
      here = above;
      above = filled;
    }
    for (int lane = 0; lane < rows_.count; ++lane) write(lane);
  }

 private:
  /// Eight entries of a lane from j on; walls where masked, anything beyond the end of the row.
  template <bool kMasked>
  __m256 load(int64_t row, int64_t j) const {
    return load_unmasked<kMasked>(rows_.scores + row * entries_ + j,
                                  kMasked ? rows_.mask + row * entries_ + j : nullptr, entries_ - j,
                                  wall());
  }

  /// The scores of row t of every lattice, lane by lane, and which are NaN. Lanes without a row
  /// repeat the first one.
  template <bool kMasked>
  void read(int64_t t) {
    const int64_t length = width_ * kPerCell, first = t * length;
    for (int v = 0; v < kVectors; ++v) {
      __m256 nan = _mm256_setzero_ps();
      for (int64_t j = 0; j < length; j += 8) {
        __m256 x[8];
        for (int i = 0; i < 8; ++i) {
          const int row = 8 * v + i;
          x[i] = load<kMasked>(row < rows_.count ? row : 0, first + j);
        }
        transpose(x);
        float* out = scratch_.scores + j * kLanes + 8 * v;
        for (int i = 0; i < 8; ++i) {
          if (j + i < length) nan = _mm256_or_ps(nan, _mm256_cmp_ps(x[i], x[i], _CMP_UNORD_Q));
          _mm256_store_ps(out + i * kLanes, x[i]);
        }
      }
      nan_ |= bits(nan) << (8 * v);
    }
  }

  void add_row(int64_t t, const float* above, float* here) {
    __m256 diagonal[kVectors], left[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      diagonal[v] = left[v] = wall();
      _mm256_store_ps(here + 8 * v, wall());
    }
    const float* x = scratch_.scores;
    LatticeStep* step = scratch_.steps + t * width_;
    for (int64_t u = 0; u < width_; ++u) {
      above += kLanes;
      here += kLanes;
      unsigned down = 0, right = 0, alive = 0;
      for (int v = 0; v < kVectors; ++v) {
        const __m256 upper = _mm256_load_ps(above + 8 * v);
        unsigned by_down = 0, by_right = 0;
        __m256 sum = enter(x + 8 * v, diagonal[v], upper, left[v], by_down, by_right);
        if (t == 0 && u == 0) {
          const __m256 zero = _mm256_setzero_ps();
          sum = kPerMove ? zero : add(zero, _mm256_load_ps(x + 8 * v));
        }
        _mm256_store_ps(here + 8 * v, sum);
        diagonal[v] = upper;
        left[v] = sum;
        down |= by_down << (8 * v);
        right |= by_right << (8 * v);
        alive |= larger(sum, wall()) << (8 * v);
      }
      step[u] = {static_cast<uint16_t>(down), static_cast<uint16_t>(right),
                 static_cast<uint16_t>(alive)};
      x += kPerCell * kLanes;
    }
  }

  /// The best sum of one vector's lanes in a cell, and the moves that it came by.
  [[gnu::always_inline]] static __m256 enter(const float* x, __m256 diagonal, __m256 upper,
                                             __m256 left, unsigned& by_down, unsigned& by_right) {
    if constexpr (kPerMove) {
      diagonal = add(diagonal, _mm256_load_ps(x));
      upper = add(upper, _mm256_load_ps(x + kLanes));
      left = add(left, _mm256_load_ps(x + 2 * kLanes));
    }
    __m256 best = diagonal;
    if constexpr ((kMoves & kDiagonal) == 0) {
      best = upper;
      by_down = 0xff;
    } else if constexpr ((kMoves & kDown) != 0) {
      by_down = larger(upper, best);
      best = _mm256_max_ps(upper, best);
    }
    if constexpr ((kMoves & kRight) != 0) {
      by_right = larger(left, best);
      best = _mm256_max_ps(left, best);
    }
    return kPerMove ? best : add(best, _mm256_load_ps(x));
  }

  void write(int lane) const {
    const bool* mask = rows_.mask != nullptr ? rows_.mask + lane * entries_ : nullptr;
    const detail::LatticeExtent extent = detail::lattice_extent(height_, width_, kPerCell, mask);
    int64_t t = extent.height - 1, u = extent.width - 1;
    const bool reached = t >= 0 && (scratch_.steps[t * width_ + u].alive >> lane & 1) != 0;
    const Status status = (nan_ >> lane & 1) != 0 ? Status::kNaN
                          : reached               ? Status::kOk
                                                  : Status::kDisconnected;
    rows_.status[lane] = status;
    float* z = rows_.z + lane * entries_;
    const float filling = status == Status::kOk ? 0.0f : __builtin_nanf("");
    for (int64_t j = 0; j < entries_; ++j) z[j] = filling;
    if (status != Status::kOk) return;
    while (t > 0 || u > 0) {
      const int64_t cell = t * width_ + u;
      const LatticeStep step = scratch_.steps[cell];
      const bool right = (step.right >> lane & 1) != 0;
      const bool down = !right && (step.down >> lane & 1) != 0;
      z[kPerMove ? 3 * cell + (right ? 2 : down ? 1 : 0) : cell] = 1;
      t -= !right;
      u -= !down;
    }
    if constexpr (!kPerMove) z[0] = 1;
  }

  int64_t height_, width_, entries_;
  const Rows<float>& rows_;
  const LatticeScratch& scratch_;
  unsigned nan_ = 0;
};

template <bool kPerMove, int kVectors>
void solve_by_moves(const LatticeSize& size, const Rows<float>& rows,
                    const LatticeScratch& scratch) {
  switch (size.moves) {
    case kDiagonal | kDown:
      return Lattices<kPerMove, kDiagonal | kDown, kVectors>(size, rows, scratch).solve();
    case kDown | kRight:
      return Lattices<kPerMove, kDown | kRight, kVectors>(size, rows, scratch).solve();
    default:
      return Lattices<kPerMove, kDiagonal | kDown | kRight, kVectors>(size, rows, scratch).solve();
  }
}

}  // namespace

void solve_side_by_side(const LatticeSize& size, int lanes, const Rows<float>& rows,
                        const LatticeScratch& scratch) {
  if (size.per_move) {
    lanes == 16 ? solve_by_moves<true, 2>(size, rows, scratch)
                : solve_by_moves<true, 1>(size, rows, scratch);
  } else {
    lanes == 16 ? solve_by_moves<false, 2>(size, rows, scratch)
                : solve_by_moves<false, 1>(size, rows, scratch);
  }
}

}  // namespace aimle::avx2
