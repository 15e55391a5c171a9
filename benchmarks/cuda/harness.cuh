// The common part of these programs. Each compares versions of a kernel with its CPU reference and
// checks each version before timing it.
//
//   nvcc -std=c++20 -O3 -arch=native -fmad=false -I. benchmarks/cuda/NAME.cu <libraries> && ./NAME
//
// or, with CMake, -DAIMLE_BENCHMARKS=ON -DAIMLE_CUDA=ON: targets cuda_NAME. With any argument a few
// instances are checked and nothing is timed: compute-sanitizer --tool racecheck ./NAME --few
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <list>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "aimle/cuda/device_rows.h"
#include "aimle/cuda/launch.cuh"

namespace aimle::bench {

inline void check(cudaError_t code) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(code));
  std::exit(1);
}

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t size) : size_(size) {
    check(cudaMalloc(&data_, std::max<size_t>(size, 1) * sizeof(T)));
    check(cudaMemset(data_, 0xff, std::max<size_t>(size, 1) * sizeof(T)));  // nothing may be left
  }
  explicit DeviceArray(const std::vector<T>& host) : DeviceArray(host.size()) {
    check(cudaMemcpy(data_, host.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  T* data() { return data_; }
  std::vector<T> to_host() const {
    std::vector<T> host(size_);
    check(cudaMemcpy(host.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }

 private:
  T* data_ = nullptr;
  size_t size_;
};

/// Memory for kernels, kept until the program ends so that timings do not include it.
class Scratch {
 public:
  cuda::Context context() { return {.stream = nullptr, .allocate = allocate_}; }
  /// Makes the same memory available again.
  void rewind() { used_ = 0; }

 private:
  std::vector<std::pair<void*, size_t>> held_;
  size_t used_ = 0;
  std::function<void*(size_t)> allocate_ = [this](size_t bytes) {
    if (used_ < held_.size() && held_[used_].second >= bytes) return held_[used_++].first;
    void* memory = nullptr;
    check(cudaMalloc(&memory, bytes));
    held_.insert(held_.begin() + static_cast<long>(used_++), {memory, bytes});
    return memory;
  };
};

/// Median time of run(), in microseconds: 5 to warm up, then `repeats`.
template <class Run>
double microseconds(const Run& run, int repeats = 20) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin));
  check(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = -5; i < repeats; ++i) {
    check(cudaEventRecord(begin));
    run();
    check(cudaEventRecord(end));
    check(cudaEventSynchronize(end));
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end));
    if (i >= 0) times.push_back(1000 * ms);
  }
  check(cudaGetLastError());
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  return times[static_cast<size_t>(repeats / 2)];
}

/// Time of solving on all cores of the CPU, in microseconds: the best of three.
template <class Run>
double host_microseconds(const Run& run) {
  double best = 1e30;
  for (int i = 0; i < 3; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    best = std::min(best, time.count());
  }
  return best;
}

/// Scores in [0, 1); with ties, multiples of 1/8.
template <class T>
std::vector<T> draw_scores(size_t size, bool ties, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<T> scores(size);
  for (T& x : scores) {
    x = ties ? static_cast<T>(rng() % 8) / 8
             : static_cast<T>(static_cast<double>(rng() >> 11) * 0x1p-53);
  }
  return scores;
}

/// Rows of a batch on both sides, and the CPU's results.
template <class T, class S>
struct Instances {
  S solver;
  int64_t count;
  std::vector<T> scores;
  std::vector<T> z;
  std::vector<Status> status;
  DeviceArray<T> device_scores;

  Instances(const S& solver, int64_t count, bool ties, uint64_t seed)
      : solver(solver),
        count(count),
        scores(draw_scores<T>(static_cast<size_t>(count * solver.size()), ties, seed)),
        z(scores.size()),
        status(static_cast<size_t>(count)),
        device_scores(scores) {
    solve(solver, rows(), thread_pool());
  }
  Rows<T> rows() {
    return {.count = count, .scores = scores.data(), .z = z.data(), .status = status.data()};
  }
  cuda::RowSource<T> source() {
    return {.examples = {.count = count, .n = solver.size(), .theta = device_scores.data()}};
  }
  /// Ends the program unless run(z, status) gives the CPU's results.
  template <class Run>
  void require_same(const std::string& version, const Run& run) {
    DeviceArray<T> device_z(scores.size());
    DeviceArray<uint8_t> device_status(static_cast<size_t>(count));
    run(device_z.data(), device_status.data());
    check(cudaDeviceSynchronize());
    const std::vector<T> found = device_z.to_host();
    const std::vector<uint8_t> outcome = device_status.to_host();
    for (int64_t r = 0; r < count; ++r) {
      bool same =
          outcome[static_cast<size_t>(r)] == static_cast<uint8_t>(status[static_cast<size_t>(r)]);
      for (int64_t j = 0; same && j < solver.size(); ++j) {
        const auto at = static_cast<size_t>(r * solver.size() + j);
        same = found[at] == z[at] || (found[at] != found[at] && z[at] != z[at]);
      }
      if (same) continue;
      std::fprintf(stderr, "%s: row %lld of %lld differs from the CPU\n", version.c_str(),
                   static_cast<long long>(r), static_cast<long long>(count));
      std::exit(1);
    }
  }
};

inline void print_row(const std::string& what, double us, int64_t rows) {
  std::printf("%-58s %10.1f us %14.0f rows/s\n", what.c_str(), us,
              1e6 * static_cast<double>(rows) / us);
}

}  // namespace aimle::bench
