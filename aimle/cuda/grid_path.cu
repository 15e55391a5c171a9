#include "aimle/cuda/grid_path.h"

#include "aimle/cuda/centred_rows.cuh"
#include "aimle/cuda/direct_output.cuh"
#include "aimle/cuda/map_rows.cuh"

namespace aimle::cuda {
namespace {

template <bool kInPlace, class T, class Group, class Chosen>
__device__ __forceinline__ Status solve_row(Group& group, const Row<T>& row, const GridShape& grid,
                                            void* memory, unsigned long long* clipped,
                                            Chosen chosen) {
  unsigned long long seen = 0;
  const Status status = solve_grid<kInPlace>(group, grid, Costs<T>{row, seen}, row.mask(),
                                             GridScratch<T>::at(memory, grid.padded), chosen);
  count_clipped(group, seen, clipped);
  return status;
}

/// A block per grid, everything in shared memory.
template <int kThreads>
struct GridPolicy {
  static constexpr int kRowThreads = kThreads;
  static constexpr int kBlockThreads = kThreads;
  static constexpr const char* kName = "grid_path";

  GridShape grid;
  unsigned long long* clipped;  // as in RowSink

  template <class T>
  int64_t row_bytes(int64_t) const {
    return GridScratch<T>::bytes(grid.padded);
  }

  template <class T>
  __device__ __forceinline__ Status solve(const Row<T>& row, uint32_t* chosen,
                                          char* scratch) const {
    Group<kThreads> group;
    const auto n = static_cast<int>(row.n());
    for (int word = group.rank(); 32 * word < n; word += kThreads) chosen[word] = 0;
    group.sync();
    return solve_row<false>(group, row, grid, scratch, clipped,
                            [chosen](int32_t j) { chosen[j / 32] |= 1u << (j % 32); });
  }
};

constexpr int kLargeThreads = 1024;
constexpr int64_t kLargeBlocks = 264;
constexpr int64_t kLargeScratch = int64_t{1} << 30;

/// A block per grid, everything in device memory.
template <class T>
__global__ void __launch_bounds__(kLargeThreads)
    large_grid(const __grid_constant__ RowSource<T> source, const __grid_constant__ RowSink<T> sink,
               int64_t rows, const __grid_constant__ GridShape grid, char* scratch, int64_t bytes) {
  Group<kLargeThreads> block;
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const Row<T> row(source, r);
    const DirectOutput<T> output(sink, r, row.n());
    output.clear(block);
    block.sync();
    const Status status = solve_row<true>(block, row, grid, scratch + blockIdx.x * bytes,
                                          sink.clipped, [&](int32_t j) { output.set(j); });
    output.finish(block, status);
    block.sync();
  }
}

constexpr int64_t kManyRows = 1056;  // 8 for each of 132 multiprocessors

/// Few grids need many threads each, so that a sweep is short; many grids fill the device anyway,
/// and barriers between few threads are cheaper.
template <class T>
void map_in_shared(const GridShape& grid, const RowSource<T>& source, const RowSink<T>& sink,
                   const Context& context) {
  const int64_t cells = source.examples.n;
  if (cells <= 64 || (cells <= 4096 && source.rows() > kManyRows)) {
    return map_rows_by(GridPolicy<64>{grid, sink.clipped}, source, sink, context);
  }
  if (cells <= 256) return map_rows_by(GridPolicy<160>{grid, sink.clipped}, source, sink, context);
  if (cells <= 4096) return map_rows_by(GridPolicy<512>{grid, sink.clipped}, source, sink, context);
  map_rows_by(GridPolicy<1024>{grid, sink.clipped}, source, sink, context);
}

}  // namespace

template <class T>
void map_rows(const GridPath& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context) {
  if (source.rows() == 0) return;
  const GridShape grid = grid_shape(solver);
  const int64_t bytes = GridScratch<T>::bytes(grid.padded);
  if (UnitOf<GridPolicy<1024>>::bytes(solver.size(), bytes) <= shared_memory_limit()) {
    return map_in_shared(grid, source, sink, context);
  }
  const int64_t room = std::clamp<int64_t>(kLargeScratch / bytes, 1, kLargeBlocks);
  const unsigned blocks = blocks_for(source.rows(), 1, room);
  launch("grid_path", large_grid<T>, blocks, kLargeThreads, 0, context, source, sink, source.rows(),
         grid, context.array<char>(blocks * bytes), bytes);
}

AIMLE_INSTANTIATE_MAP(GridPath)

}  // namespace aimle::cuda
