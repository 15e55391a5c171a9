// Top-k of long rows: one block per row compared with many.
//
// 1  a block per row, bisection over keys in device memory
// 2  the library: as many blocks as the row has chunks, a digit of the k-th largest per pass
#include "aimle/cuda/topk.cuh"
#include "benchmarks/cuda/harness.cuh"

namespace aimle::bench {
namespace {

constexpr int kThreads = 1024;

template <class T>
__global__ void by_block(int64_t n, int64_t k, const T* x, T* z, uint8_t* status) {
  using Key = cuda::OrderedKey<T>;
  const T* row = x + blockIdx.x * n;
  const auto kth = cuda::kth_key<T, kThreads>(k, [&](auto visit) {
    for (int64_t j = threadIdx.x; j < n; j += kThreads) visit(Key::of(row[j]));
  });
  int reaching = 0;
  for (int64_t j = threadIdx.x; j < n; j += kThreads) reaching += Key::of(row[j]) >= kth;
  int64_t surplus = cuda::Group<kThreads>::sum(reaching) - k;
  for (int64_t j = threadIdx.x; j < n; j += kThreads) {
    z[blockIdx.x * n + j] = Key::of(row[j]) >= kth ? T(1) : T(0);
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int64_t j = n - 1; surplus > 0; --j) {
    if (Key::of(row[j]) != kth) continue;
    z[blockIdx.x * n + j] = T(0);
    --surplus;
  }
  status[blockIdx.x] = 0;
}

template <class T>
void run(int64_t n, int64_t k, int64_t count, bool ties, bool timed) {
  const TopK solver{.n = n, .k = k};
  Instances<T, TopK> batch(solver, count, ties, 3);
  Scratch scratch;
  const auto version1 = [&](T* z, uint8_t* status) {
    by_block<T>
        <<<static_cast<unsigned>(count), kThreads>>>(n, k, batch.device_scores.data(), z, status);
  };
  const auto version2 = [&](T* z, uint8_t* status) {
    scratch.rewind();
    cuda::map_rows(solver, batch.source(), cuda::RowSink<T>{.z = z, .status = status},
                   scratch.context());
  };
  const std::string what = std::to_string(count) + " rows, " + std::to_string(k) + " of " +
                           std::to_string(n) + (sizeof(T) == 8 ? " float64" : "");
  if (k > 0) batch.require_same(what + ", version 1", version1);
  batch.require_same(what + ", version 2", version2);
  if (!timed) return;
  DeviceArray<T> z(batch.scores.size());
  DeviceArray<uint8_t> status(static_cast<size_t>(count));
  print_row(what + ", CPU, " + std::to_string(std::thread::hardware_concurrency()) + " threads",
            host_microseconds([&] { solve(solver, batch.rows(), thread_pool()); }), count);
  print_row("  1 a block per row", microseconds([&] { version1(z.data(), status.data()); }), count);
  print_row("  2 the library", microseconds([&] { version2(z.data(), status.data()); }), count);
}

}  // namespace
}  // namespace aimle::bench

int main(int argc, char**) {
  using namespace aimle::bench;
  if (argc > 1) {
    run<float>(60000, 100, 1, true, false);
    run<double>(60000, 30000, 1, true, false);
    return 0;
  }
  for (const bool ties : {false, true}) {
    for (const int64_t n : {60000, 65536, 100001, 1000000}) {
      for (const int64_t k : {int64_t{0}, int64_t{1}, int64_t{100}, n / 2, n - 1, n}) {
        run<float>(n, k, 2, ties, false);
      }
      run<double>(n, n / 3, 2, ties, false);
    }
  }
  run<float>(1000000, 100, 1, false, true);
  run<float>(1000000, 1000, 16, false, true);
  return 0;
}
