// Spanning trees: from one thread per tree to the library's kernels.
//
// 1  a thread per tree, its frontier in device memory: the CPU's Prim, many times
// 2  a warp per tree, a vertex per lane, the frontier in shared memory
// 3  the library: the frontier in registers, scores and solution in shared memory; a block per tree
//    beyond 32 vertices
#include "aimle/cuda/spanning_tree.h"

#include "aimle/cuda/group.cuh"
#include "benchmarks/cuda/harness.cuh"

namespace aimle::bench {
namespace {

using Layout = SpanningTree::Layout;

struct OneThread {
  __device__ static int rank() { return 0; }
  __device__ static int size() { return 1; }
  __device__ static void sync() {}
  __device__ static bool any(bool value) { return value; }
  template <class Word>
  __device__ static Word max(Word word) {
    return word;
  }
};

template <class T, bool kDirected, class Group>
__device__ void solve_plain(Group& group, int vertices, int64_t size, const T* x,
                            cuda::Joining<T, uint32_t>* memory, T* z, uint8_t* status) {
  for (int64_t j = group.rank(); j < size; j += group.size()) z[j] = T(0);
  group.sync();
  const Status outcome = cuda::solve_tree<uint32_t, T, kDirected>(
      group, vertices, [x](int j) { return x[j]; }, nullptr,
      cuda::ManyVertices<T, uint32_t>{memory}, [z](int j) { z[j] = T(1); });
  if (group.rank() == 0) *status = static_cast<uint8_t>(outcome);
}

template <class T, bool kDirected>
__global__ void by_thread(int vertices, int64_t size, int64_t rows, const T* x,
                          cuda::Joining<T, uint32_t>* memory, T* z, uint8_t* status) {
  const int64_t r = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  OneThread group;
  solve_plain<T, kDirected>(group, vertices, size, x + r * size, memory + r * vertices,
                            z + r * size, status + r);
}

template <class T, bool kDirected>
__global__ void by_warp(int vertices, int64_t size, int64_t rows, const T* x, T* z,
                        uint8_t* status) {
  __shared__ cuda::Joining<T, uint32_t> memory[4][64];
  const int64_t r = int64_t{blockIdx.x} * 4 + threadIdx.x / 32;
  if (r >= rows) return;
  cuda::Group<32> group;
  solve_plain<T, kDirected>(group, vertices, size, x + r * size, memory[threadIdx.x / 32],
                            z + r * size, status + r);
}

template <class T, bool kDirected>
void run(int64_t vertices, int64_t count, bool ties, bool timed) {
  const SpanningTree solver{.vertices = vertices,
                            .layout = kDirected ? Layout::kDirected : Layout::kUndirected};
  Instances<T, SpanningTree> batch(solver, count, ties, 7);
  const int n = static_cast<int>(vertices);
  const int64_t size = solver.size();
  Scratch scratch;
  DeviceArray<cuda::Joining<T, uint32_t>> memory(static_cast<size_t>(count * vertices));
  const auto version1 = [&](T* z, uint8_t* status) {
    by_thread<T, kDirected><<<static_cast<unsigned>((count + 127) / 128), 128>>>(
        n, size, count, batch.device_scores.data(), memory.data(), z, status);
  };
  const auto version2 = [&](T* z, uint8_t* status) {
    by_warp<T, kDirected><<<static_cast<unsigned>((count + 3) / 4), 128>>>(
        n, size, count, batch.device_scores.data(), z, status);
  };
  const auto version3 = [&](T* z, uint8_t* status) {
    scratch.rewind();
    cuda::map_rows(solver, batch.source(), cuda::RowSink<T>{.z = z, .status = status},
                   scratch.context());
  };
  const std::string what = std::to_string(count) + " trees of " + std::to_string(vertices) +
                           (kDirected ? " directed" : "") + (sizeof(T) == 8 ? " float64" : "");
  batch.require_same(what + ", version 1", version1);
  if (vertices <= 64) batch.require_same(what + ", version 2", version2);
  batch.require_same(what + ", version 3", version3);
  if (!timed) return;
  DeviceArray<T> z(batch.scores.size());
  DeviceArray<uint8_t> status(static_cast<size_t>(count));
  const double cpu = host_microseconds([&] { solve(solver, batch.rows(), thread_pool()); });
  print_row(what + ", CPU, " + std::to_string(std::thread::hardware_concurrency()) + " threads",
            cpu, count);
  print_row("  1 a thread per tree", microseconds([&] { version1(z.data(), status.data()); }),
            count);
  print_row("  2 a warp per tree", microseconds([&] { version2(z.data(), status.data()); }), count);
  print_row("  3 the library", microseconds([&] { version3(z.data(), status.data()); }), count);
}

}  // namespace
}  // namespace aimle::bench

int main(int argc, char**) {
  using namespace aimle::bench;
  if (argc > 1) {
    for (const int64_t vertices : {10, 32, 40}) {
      run<float, true>(vertices, 20, true, false);
      run<double, false>(vertices, 20, true, false);
    }
    return 0;
  }
  for (const bool ties : {false, true}) {
    for (const int64_t vertices : {1, 2, 3, 10, 31, 32, 33, 64, 100}) {
      run<float, false>(vertices, 300, ties, false);
      run<float, true>(vertices, 300, ties, false);
      run<double, false>(vertices, 300, ties, false);
      run<double, true>(vertices, 300, ties, false);
    }
    run<float, false>(400, 3, ties, false);
    run<double, true>(300, 3, ties, false);
  }
  run<float, true>(10, 128, false, true);
  run<float, true>(10, 100000, false, true);
  run<float, false>(30, 100000, false, true);
  return 0;
}
