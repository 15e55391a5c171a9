// One kernel for all exact distributions: a body processes a row with its own memory.
#pragma once

#include <algorithm>

#include "aimle/cuda/exact.h"
#include "aimle/cuda/group.cuh"
#include "aimle/cuda/launch.cuh"
#include "aimle/cuda/row.cuh"

namespace aimle::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kLargeThreads = 256;
constexpr int64_t kWarpBytes = 8 * 1024;  // beyond this, a block processes a row
constexpr int64_t kLargeBlocks = 264;
constexpr int64_t kLargeBytes = int64_t{1} << 30;

template <int kThreads, int kPerBlock, class Body>
__global__ void __launch_bounds__(kThreads* kPerBlock)
    exact_in_shared(int64_t rows, int doubles, const __grid_constant__ Body body) {
  double* shared_numbers = dynamic_shared<double>();
  Group<kThreads> group;
  const int slot = static_cast<int>(threadIdx.x) / kThreads;
  for (int64_t row = int64_t{blockIdx.x} * kPerBlock + slot; row < rows;
       row += int64_t{gridDim.x} * kPerBlock) {
    body(group, row, shared_numbers + slot * doubles);
    group.sync();
  }
}

template <class Body>
__global__ void __launch_bounds__(kLargeThreads)
    exact_in_memory(int64_t rows, int64_t doubles, const __grid_constant__ Body body,
                    double* memory) {
  Group<kLargeThreads> group;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    body(group, row, memory + blockIdx.x * doubles);
    group.sync();
  }
}

/// The body that evaluates rows of a distribution, which is a struct of settings with
///
///   template <class T, class Group>
///   __device__ void evaluate(Group& group, const DistributionRows<T>& rows, int64_t row,
///                            double* memory) const;
///   template <class T, class Group>
///   __device__ void sample(Group& group, const SampleRows<T>& rows, Key key, int64_t row,
///                          double* memory) const;
template <class Distribution, class T>
struct Evaluate {
  Distribution distribution;
  DistributionRows<T> rows;

  template <class Group>
  __device__ void operator()(Group& group, int64_t row, double* memory) const {
    distribution.evaluate(group, rows, row, memory);
  }
};

/// The body that samples them.
template <class Distribution, class T>
struct Sample {
  Distribution distribution;
  SampleRows<T> rows;
  DeviceKey key;

  template <class Group>
  __device__ void operator()(Group& group, int64_t row, double* memory) const {
    distribution.sample(group, rows, load_key(key), row, memory);
  }
};

/// Calls body(group, row, memory of this many doubles) for every row.
template <class Body>
void for_each_row(const char* op, int64_t rows, int64_t doubles, const Body& body,
                  const Context& context) {
  if (rows == 0) return;
  const int64_t bytes = doubles * static_cast<int64_t>(sizeof(double));
  if (bytes <= kWarpBytes) {
    launch(op, exact_in_shared<32, kWarps, Body>, blocks_for(rows, kWarps), 32 * kWarps,
           kWarps * bytes, context, rows, static_cast<int>(doubles), body);
  } else if (bytes <= shared_memory_limit()) {
    launch(op, exact_in_shared<128, 1, Body>, blocks_for(rows, 1), 128, bytes, context, rows,
           static_cast<int>(doubles), body);
  } else {
    const int64_t room = std::clamp<int64_t>(kLargeBytes / bytes, 1, kLargeBlocks);
    const unsigned blocks = blocks_for(rows, 1, room);
    launch(op, exact_in_memory<Body>, blocks, kLargeThreads, 0, context, rows, doubles, body,
           context.array<double>(blocks * doubles));
  }
}

template <class T, class Group>
__device__ void fill(Group& group, T* out, int64_t count, T value) {
  for (int64_t j = group.rank(); j < count; j += group.size()) out[j] = value;
}

/// Writes the status of a row, and NaN if it is invalid; true if it is valid.
template <class T, class Group>
__device__ bool accept(Group& group, const DistributionRows<T>& rows, int64_t size, int64_t row,
                       Status status) {
  const T nan = static_cast<T>(NAN);
  if (group.rank() == 0) rows.status[row] = status;
  if (status == Status::kOk) return true;
  if (rows.log_partition != nullptr && group.rank() == 0) rows.log_partition[row] = nan;
  if (rows.marginals != nullptr) fill(group, rows.marginals + row * size, size, nan);
  if (rows.covariance != nullptr) fill(group, rows.covariance + row * size, size, nan);
  return false;
}
template <class T, class Group>
__device__ bool accept(Group& group, const SampleRows<T>& rows, int64_t size, int64_t row,
                       Status status) {
  if (group.rank() == 0) rows.status[row] = status;
  if (status == Status::kOk) return true;
  const int64_t entries = rows.samples * size;
  fill(group, rows.z + row * entries, entries, static_cast<T>(NAN));
  return false;
}

template <class T, class Group>
__device__ void write_log_partition(Group& group, const DistributionRows<T>& rows, int64_t row,
                                    double value) {
  if (rows.log_partition != nullptr && group.rank() == 0) {
    rows.log_partition[row] = static_cast<T>(value);
  }
}

template <class T>
__device__ T* at(T* data, int64_t offset) {
  return data == nullptr ? nullptr : data + offset;
}

}  // namespace
}  // namespace aimle::cuda
