#include "aimle/cuda/knapsack.h"

#include "aimle/cuda/centred_rows.cuh"
#include "aimle/cuda/direct_output.cuh"
#include "aimle/cuda/map_rows.cuh"

namespace aimle::cuda {
namespace {

/// A warp or a block per row, everything in shared memory.
template <int kThreads, int kBlock>
struct KnapsackPolicy {
  static constexpr int kRowThreads = kThreads;
  static constexpr int kBlockThreads = kBlock;
  static constexpr const char* kName = "knapsack";

  KnapsackShape shape;
  int64_t bytes;

  template <class T>
  int64_t row_bytes(int64_t) const {
    return bytes;
  }

  template <class T>
  __device__ __forceinline__ Status solve(const Row<T>& row, uint32_t* chosen,
                                          char* scratch) const {
    Group<kThreads> group;
    for (int64_t word = group.rank(); 32 * word < row.n(); word += kThreads) chosen[word] = 0;
    group.sync();
    return solve_knapsack<T>(group, shape, CentredScores<T>{row}, row.mask(), row.data(),
                             KnapsackScratch<T>::at(scratch, shape.n, shape.max_capacity),
                             [chosen](int64_t j) { chosen[j / 32] |= 1u << (j % 32); });
  }
};

constexpr int kLargeThreads = 512;
constexpr int64_t kLargeBlocks = 264;
constexpr int64_t kLargeScratch = int64_t{1} << 30;

/// A block per row, everything in device memory.
template <class T>
__global__ void __launch_bounds__(kLargeThreads)
    large_knapsack(const __grid_constant__ RowSource<T> source,
                   const __grid_constant__ RowSink<T> sink, int64_t rows,
                   const __grid_constant__ KnapsackShape shape, char* scratch, int64_t bytes) {
  Group<kLargeThreads> block;
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const Row<T> row(source, r);
    const DirectOutput<T> output(sink, r, row.n());
    output.clear(block);
    block.sync();
    const Status status = solve_knapsack<T>(
        block, shape, CentredScores<T>{row}, row.mask(), row.data(),
        KnapsackScratch<T>::at(scratch + blockIdx.x * bytes, shape.n, shape.max_capacity),
        [&](int64_t j) { output.set(j); });
    block.sync();
    output.finish(block, status);
    block.sync();
  }
}

}  // namespace

template <class T>
void map_rows(const Knapsack& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context) {
  if (source.rows() == 0) return;
  const KnapsackShape shape{.n = solver.n, .max_capacity = solver.max_capacity};
  const int64_t bytes = KnapsackScratch<T>::bytes(solver);
  if (shape.max_capacity < 256 &&
      4 * UnitOf<KnapsackPolicy<32, 128>>::bytes(shape.n, bytes) <= shared_memory_limit()) {
    return map_rows_by(KnapsackPolicy<32, 128>{shape, bytes}, source, sink, context);
  }
  if (UnitOf<KnapsackPolicy<256, 256>>::bytes(shape.n, bytes) <= shared_memory_limit()) {
    return map_rows_by(KnapsackPolicy<256, 256>{shape, bytes}, source, sink, context);
  }
  const int64_t room = std::clamp<int64_t>(kLargeScratch / bytes, 1, kLargeBlocks);
  const unsigned blocks = blocks_for(source.rows(), 1, room);
  launch("knapsack", large_knapsack<T>, blocks, kLargeThreads, 0, context, source, sink,
         source.rows(), shape, context.array<char>(blocks * bytes), bytes);
}

template void map_rows(const Knapsack&, const RowSource<float>&, const RowSink<float>&,
                       const Context&);
template void map_rows(const Knapsack&, const RowSource<double>&, const RowSink<double>&,
                       const Context&);

}  // namespace aimle::cuda
