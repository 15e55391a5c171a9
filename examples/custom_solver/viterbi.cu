// The same solver on a GPU, bit-identical to the CPU: a warp per row, or a block for long rows.
// Without this file a theta on a GPU raises an error.
#include "viterbi.h"

#include <aimle/cuda/kernels.h>

#include <aimle/cuda/map_work.cuh>

namespace chains {

namespace gpu = aimle::cuda;

struct Work {
  static constexpr const char* kName = "viterbi";

  int64_t steps;
  int64_t labels;

  /// The scores, the best sums of two positions, and their predecessors.
  template <class T>
  int64_t bytes(int64_t n) const {
    return (n + 2 * labels) * int64_t{sizeof(T)} + steps * labels * int64_t{sizeof(int)};
  }

  /// Each thread takes some labels of a position.
  template <class T, class Group, class Choose>
  __device__ aimle::Status solve(Group& group, const gpu::Row<T>& row, char* memory,
                                 const Choose& choose) const {
    const T never = -static_cast<T>(INFINITY);
    T* const x = reinterpret_cast<T*>(memory);
    T *best = x + row.n(), *next = best + labels;
    int* const from = reinterpret_cast<int*>(next + labels);

    bool nan = false;
    gpu::QuadScores<T>{row}.for_each(group.rank(), group.size(), [&](int64_t e, T score) {
      const bool allowed = row.mask() == nullptr || row.mask()[e];
      nan |= allowed && isnan(score);  // theta including its noise and its step
      x[e] = allowed ? score : never;
    });
    for (int64_t b = group.rank(); b < labels; b += group.size()) best[b] = T(0);
    if (group.any(nan)) return aimle::Status::kNaN;

    for (int64_t t = 0; t < steps; ++t) {
      for (int64_t b = group.rank(); b < labels; b += group.size()) {
        next[b] = never;
        for (int64_t a = 0; a < labels; ++a) {
          const T score = best[a] + x[(t * labels + a) * labels + b];
          if (score > next[b]) {
            next[b] = score;
            from[t * labels + b] = static_cast<int>(a);
          }
        }
      }
      group.sync();
      T* const done = best;
      best = next;
      next = done;
    }

    int64_t label = 0;
    for (int64_t b = 1; b < labels; ++b) label = best[b] > best[label] ? b : label;
    if (best[label] == never) return aimle::Status::kDisconnected;
    for (int64_t t = steps - 1; group.rank() == 0 && t >= 0; --t) {
      const int64_t before = from[t * labels + label];
      choose((t * labels + before) * labels + label);
      label = before;
    }
    return aimle::Status::kOk;
  }
};

template <class T>
void map_rows(const Viterbi& solver, const gpu::RowSource<T>& source, const gpu::RowSink<T>& sink,
              const gpu::Context& context) {
  const Work work{solver.steps(), solver.labels};
  if (gpu::map_in_shared_memory<32, 4>(work, source, sink, context)) return;
  gpu::map_in_device_memory<256>(work, source, sink, context);
}

AIMLE_REGISTER_KERNELS(Viterbi)

}  // namespace chains
