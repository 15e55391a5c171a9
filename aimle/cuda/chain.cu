#include "aimle/cuda/chain.h"

#include "aimle/cuda/map_work.cuh"

namespace aimle::cuda {
namespace {

/// A row's scores, a quad at a time.
template <class T>
struct RangeScores {
  const Row<T>& row;

  template <class Body>
  __device__ __forceinline__ void for_range(int64_t begin, int64_t end, int rank, int threads,
                                            const Body& body) const {
    for (int64_t q = begin / 4 + rank; 4 * q < end; q += threads) {
      T x[4];
      row.quad(q, x);
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int64_t e = 4 * q + c;
        if (begin <= e && e < end) body(e, x[c]);
      }
    }
  }
};

struct WorkOnChain {
  static constexpr const char* kName = "chain";

  ChainShape chain;

  template <class T>
  int64_t bytes(int64_t) const {
    return ChainScratch<T>::bytes(chain);
  }

  template <class T, class Group, class Choose>
  __device__ __forceinline__ Status solve(Group& group, const Row<T>& row, char* memory,
                                          const Choose& choose) const {
    return solve_chain<T>(group, chain, RangeScores<T>{row}, row.mask(),
                          ChainScratch<T>::at(memory, chain), choose);
  }
};

constexpr int64_t kShortRow = 32;  // a thread solves it alone

}  // namespace

template <class T>
void map_rows(const Chain& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context) {
  const WorkOnChain work{chain_shape(solver)};
  if (solver.size() <= kShortRow && solver.size() > 0 &&
      map_in_shared_memory<1, 64>(work, source, sink, context)) {
    return;
  }
  if (solver.labels <= 32 && map_in_shared_memory<32, 4>(work, source, sink, context)) return;
  if (solver.labels <= 64 && map_in_shared_memory<64, 1>(work, source, sink, context)) return;
  if (map_in_shared_memory<256, 1>(work, source, sink, context)) return;
  map_in_device_memory<512>(work, source, sink, context);
}

AIMLE_INSTANTIATE_MAP(Chain)

}  // namespace aimle::cuda
