#include "aimle/cuda/chain.h"

#include "aimle/cuda/direct_output.cuh"
#include "aimle/cuda/map_rows.cuh"

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

template <int kThreads>
struct GroupOf {
  using Type = Group<kThreads>;
};
template <>
struct GroupOf<1> {
  using Type = OneThread;
};

/// Some threads to a row, everything in shared memory.
template <int kThreads, int kRowsPerBlock>
struct ChainPolicy {
  static constexpr int kRowThreads = kThreads;
  static constexpr int kBlockThreads = kThreads * kRowsPerBlock;
  static constexpr const char* kName = "chain";

  ChainShape chain;

  template <class T>
  int64_t row_bytes(int64_t) const {
    return ChainScratch<T>::bytes(chain);
  }

  template <class T>
  __device__ __forceinline__ Status solve(const Row<T>& row, uint32_t* chosen,
                                          char* scratch) const {
    typename GroupOf<kThreads>::Type group;
    for (int64_t word = group.rank(); 32 * word < row.n(); word += kThreads) chosen[word] = 0;
    group.sync();
    return solve_chain<T>(group, chain, RangeScores<T>{row}, row.mask(),
                          ChainScratch<T>::at(scratch, chain),
                          [chosen](int64_t e) { chosen[e / 32] |= 1u << (e % 32); });
  }
};

constexpr int kLargeThreads = 512;
constexpr int64_t kLargeBlocks = 264;
constexpr int64_t kLargeScratch = int64_t{1} << 30;

/// A block per row, everything in device memory.
template <class T>
__global__ void __launch_bounds__(kLargeThreads)
    large_chain(const __grid_constant__ RowSource<T> source,
                const __grid_constant__ RowSink<T> sink, int64_t rows,
                const __grid_constant__ ChainShape chain, char* scratch, int64_t bytes) {
  Group<kLargeThreads> block;
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const Row<T> row(source, r);
    const DirectOutput<T> output(sink, r, row.n());
    output.clear(block);
    block.sync();
    const Status status = solve_chain<T>(block, chain, RangeScores<T>{row}, row.mask(),
                                         ChainScratch<T>::at(scratch + blockIdx.x * bytes, chain),
                                         [&](int64_t e) { output.set(e); });
    block.sync();
    output.finish(block, status);
    block.sync();
  }
}

/// False, and nothing done, where a block's rows do not fit into shared memory.
template <int kThreads, int kRowsPerBlock, class T>
bool map_in_shared(const ChainShape& chain, const RowSource<T>& source, const RowSink<T>& sink,
                   const Context& context) {
  using Policy = ChainPolicy<kThreads, kRowsPerBlock>;
  using Unit = UnitOf<Policy>;
  const int64_t bytes =
      Unit::kPerBlock * Unit::bytes(source.examples.n, align_up(ChainScratch<T>::bytes(chain)));
  if (bytes > shared_memory_limit()) return false;
  map_rows_by(Policy{chain}, source, sink, context);
  return true;
}

constexpr int64_t kShortRow = 32;  // a thread solves it alone

}  // namespace

template <class T>
void map_rows(const Chain& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context) {
  if (source.rows() == 0) return;
  const ChainShape chain = chain_shape(solver);
  const int64_t labels = solver.labels;
  if (solver.size() <= kShortRow && solver.size() > 0 &&
      map_in_shared<1, 64>(chain, source, sink, context)) {
    return;
  }
  if (labels <= 32 && map_in_shared<32, 4>(chain, source, sink, context)) return;
  if (labels <= 64 && map_in_shared<64, 1>(chain, source, sink, context)) return;
  if (map_in_shared<256, 1>(chain, source, sink, context)) return;
  const int64_t bytes = ChainScratch<T>::bytes(chain);
  const int64_t room = std::clamp<int64_t>(kLargeScratch / bytes, 1, kLargeBlocks);
  const unsigned blocks = blocks_for(source.rows(), 1, room);
  launch("chain", large_chain<T>, blocks, kLargeThreads, 0, context, source, sink, source.rows(),
         chain, context.array<char>(blocks * bytes), bytes);
}

template void map_rows(const Chain&, const RowSource<float>&, const RowSink<float>&,
                       const Context&);
template void map_rows(const Chain&, const RowSource<double>&, const RowSink<double>&,
                       const Context&);

}  // namespace aimle::cuda
