// Grid paths by the number of threads per grid.
//
// 1..4  a warp, 64, 128 and 512 threads per grid, scratch in shared memory
// 5     the library, which chooses by the number of cells; beyond shared memory a block per grid in
//       device memory
#include "aimle/cuda/grid_path.h"

#include "aimle/cuda/group.cuh"
#include "benchmarks/cuda/harness.cuh"

namespace aimle::bench {
namespace {

template <class T>
struct RowInMemory {
  const T* scores;
  int64_t n;

  template <class Body>
  __device__ void for_each(int rank, int threads, const Body& body) const {
    for (int64_t j = rank; j < n; j += threads) body(j, scores[j]);
  }
};

template <class T, int kThreads>
__global__ void by_group(const __grid_constant__ cuda::GridShape grid, int64_t cells, const T* x,
                         T* z, uint8_t* status) {
  extern __shared__ __align__(16) char shared[];
  cuda::Group<kThreads> group;
  const int64_t r = blockIdx.x;
  z += r * cells;
  for (int64_t j = group.rank(); j < cells; j += kThreads) z[j] = T(0);
  group.sync();
  const Status outcome = cuda::solve_grid(group, grid, RowInMemory<T>{x + r * cells, cells},
                                          nullptr, cuda::GridScratch<T>::at(shared, grid.padded),
                                          [z](int32_t j) { z[j] = T(1); });
  if (group.rank() == 0) status[r] = static_cast<uint8_t>(outcome);
}

template <class T>
void run(const GridPath& solver, int64_t count, bool ties, bool timed) {
  Instances<T, GridPath> batch(solver, count, ties, 11);
  const cuda::GridShape grid = cuda::grid_shape(solver);
  const int64_t bytes = cuda::GridScratch<T>::bytes(grid.padded);
  Scratch scratch;
  const auto version = [&]<int kThreads>(std::integral_constant<int, kThreads>) {
    check(cudaFuncSetAttribute(by_group<T, kThreads>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(bytes)));
    return [&, bytes](T* z, uint8_t* status) {
      by_group<T, kThreads><<<static_cast<unsigned>(count), kThreads, static_cast<size_t>(bytes)>>>(
          grid, solver.size(), batch.device_scores.data(), z, status);
    };
  };
  const auto library = [&](T* z, uint8_t* status) {
    scratch.rewind();
    cuda::map_rows(solver, batch.source(), cuda::RowSink<T>{.z = z, .status = status},
                   scratch.context());
  };
  const std::string what = std::to_string(count) + " grids " + std::to_string(solver.height) +
                           " x " + std::to_string(solver.width) +
                           (solver.neighbourhood == 4 ? ", 4 neighbours" : "") +
                           (sizeof(T) == 8 ? " float64" : "");
  DeviceArray<T> z(batch.scores.size());
  DeviceArray<uint8_t> status(static_cast<size_t>(count));
  if (timed) {
    const double cpu = host_microseconds([&] { solve(solver, batch.rows(), thread_pool()); });
    print_row(what + ", CPU, " + std::to_string(std::thread::hardware_concurrency()) + " threads",
              cpu, count);
  }
  const auto look = [&](const std::string& name, const auto& solve_all) {
    batch.require_same(what + ", " + name, solve_all);
    if (timed) {
      print_row("  " + name, microseconds([&] { solve_all(z.data(), status.data()); }), count);
    }
  };
  if (bytes <= 200 * 1024) {
    look("1 a warp per grid", version(std::integral_constant<int, 32>{}));
    look("2 64 threads per grid", version(std::integral_constant<int, 64>{}));
    look("3 128 threads per grid", version(std::integral_constant<int, 128>{}));
    look("4 512 threads per grid", version(std::integral_constant<int, 512>{}));
  }
  look("5 the library", library);
}

}  // namespace
}  // namespace aimle::bench

int main(int argc, char**) {
  using namespace aimle::bench;
  using aimle::GridPath;
  if (argc > 1) {
    for (const bool ties : {false, true}) {
      run<float>({.height = 12, .width = 12}, 10, ties, false);
      run<double>({.height = 7, .width = 9, .neighbourhood = 4}, 10, ties, false);
      run<float>({.height = 150, .width = 120}, 1, ties, false);
    }
    return 0;
  }
  for (const bool ties : {false, true}) {
    for (const int64_t side : {1, 2, 7, 12, 30, 64}) {
      run<float>({.height = side, .width = side + 1}, 100, ties, false);
      run<float>({.height = side + 2, .width = side, .neighbourhood = 4}, 100, ties, false);
      run<double>({.height = side, .width = side}, 100, ties, false);
    }
    run<float>({.height = 150, .width = 200}, 2, ties, false);
    run<double>({.height = 90, .width = 111, .neighbourhood = 4}, 2, ties, false);
  }
  run<float>({.height = 12, .width = 12}, 70, false, true);
  run<float>({.height = 12, .width = 12}, 10000, false, true);
  run<float>({.height = 30, .width = 30}, 70, false, true);
  run<float>({.height = 30, .width = 30}, 10000, false, true);
  run<float>({.height = 512, .width = 512}, 4, false, true);
  return 0;
}
