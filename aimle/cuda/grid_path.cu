#include "aimle/cuda/grid_path.h"

#include "aimle/cuda/centred_rows.cuh"
#include "aimle/cuda/map_work.cuh"

namespace aimle::cuda {
namespace {

/// kInPlace: as solve_grid has it, for grids in device memory.
template <bool kInPlace>
struct WorkOnGrid {
  static constexpr const char* kName = "grid_path";

  GridShape grid;
  unsigned long long* clipped;  // as in RowSink

  template <class T>
  int64_t bytes(int64_t) const {
    return GridScratch<T>::bytes(grid.padded);
  }

  template <class T, class Group, class Choose>
  __device__ __forceinline__ Status solve(Group& group, const Row<T>& row, char* memory,
                                          const Choose& choose) const {
    unsigned long long seen = 0;
    const Status status = solve_grid<kInPlace>(group, grid, Costs<T>{row, seen}, row.mask(),
                                               GridScratch<T>::at(memory, grid.padded), choose);
    count_clipped(group, seen, clipped);
    return status;
  }
};

constexpr int64_t kManyRows = 1056;  // 8 for each of 132 multiprocessors

/// Few grids need many threads each, so that a sweep is short; many grids fill the device anyway,
/// and barriers between few threads are cheaper.
template <class T>
bool map_in_shared(const GridShape& grid, const RowSource<T>& source, const RowSink<T>& sink,
                   const Context& context) {
  const WorkOnGrid<false> work{grid, sink.clipped};
  const int64_t cells = source.examples.n;
  if (cells <= 64 || (cells <= 4096 && source.rows() > kManyRows)) {
    return map_in_shared_memory<64, 1>(work, source, sink, context);
  }
  if (cells <= 256) return map_in_shared_memory<160, 1>(work, source, sink, context);
  if (cells <= 4096) return map_in_shared_memory<512, 1>(work, source, sink, context);
  return map_in_shared_memory<1024, 1>(work, source, sink, context);
}

}  // namespace

template <class T>
void map_rows(const GridPath& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context) {
  const GridShape grid = grid_shape(solver);
  if (map_in_shared(grid, source, sink, context)) return;
  map_in_device_memory<1024>(WorkOnGrid<true>{grid, sink.clipped}, source, sink, context);
}

AIMLE_INSTANTIATE_MAP(GridPath)

}  // namespace aimle::cuda
