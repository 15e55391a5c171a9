// The same solver on a GPU, with the CPU's bits: a warp per row. Without this file a theta on a GPU is
// refused with a message.
#include <aimle/cuda/kernels.h>

#include <aimle/cuda/map_rows.cuh>

#include "viterbi.h"

namespace chains {

namespace gpu = aimle::cuda;

/// Each thread of the warp takes every 32nd label of a position.
struct WarpPerRow {
  static constexpr int kRowThreads = 32;
  static constexpr int kBlockThreads = 32;
  static constexpr const char* kName = "viterbi";

  int64_t steps;
  int64_t labels;

  /// Of shared memory: the scores, the best sums of two positions, and where they came from.
  template <class T>
  int64_t row_bytes(int64_t n) const {
    return (n + 2 * labels) * int64_t{sizeof(T)} + steps * labels * int64_t{sizeof(int)};
  }

  template <class T>
  __device__ aimle::Status solve(const gpu::Row<T>& row, uint32_t* chosen, char* scratch) const {
    const gpu::Group<32> warp;
    const T never = -static_cast<T>(INFINITY);
    T* const x = reinterpret_cast<T*>(scratch);
    T *best = x + row.n(), *next = best + labels;
    int* const from = reinterpret_cast<int*>(next + labels);

    bool nan = false;
    for (int64_t q = warp.rank(); 4 * q < row.n(); q += 32) {
      T four[4];
      row.quad(q, four);  // theta with its noise and its step
      for (int64_t e = 4 * q; e < min(4 * q + 4, row.n()); ++e) {
        const bool allowed = row.mask() == nullptr || row.mask()[e];
        nan |= allowed && isnan(four[e % 4]);
        x[e] = allowed ? four[e % 4] : never;
      }
    }
    for (int64_t word = warp.rank(); 32 * word < row.n(); word += 32) chosen[word] = 0;
    for (int64_t b = warp.rank(); b < labels; b += 32) best[b] = T(0);
    if (warp.any(nan)) return aimle::Status::kNaN;

    for (int64_t t = 0; t < steps; ++t) {
      for (int64_t b = warp.rank(); b < labels; b += 32) {
        next[b] = never;
        for (int64_t a = 0; a < labels; ++a) {
          const T score = best[a] + x[(t * labels + a) * labels + b];
          if (score > next[b]) {
            next[b] = score;
            from[t * labels + b] = static_cast<int>(a);
          }
        }
      }
      warp.sync();
      T* const done = best;
      best = next;
      next = done;
    }

    int64_t label = 0;
    for (int64_t b = 1; b < labels; ++b) label = best[b] > best[label] ? b : label;
    if (best[label] == never) return aimle::Status::kDisconnected;
    if (warp.rank() == 0) {
      for (int64_t t = steps - 1; t >= 0; --t) {
        const int64_t before = from[t * labels + label], e = (t * labels + before) * labels + label;
        chosen[e / 32] |= 1u << (e % 32);
        label = before;
      }
    }
    return aimle::Status::kOk;
  }
};

template <class T>
void map_rows(const Viterbi& solver, const gpu::RowSource<T>& source, const gpu::RowSink<T>& sink,
              const gpu::Context& context) {
  gpu::map_rows_by(WarpPerRow{solver.steps(), solver.labels}, source, sink, context);
}

AIMLE_REGISTER_KERNELS(Viterbi)

}  // namespace chains
