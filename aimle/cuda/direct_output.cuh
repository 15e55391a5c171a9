// Rows that do not fit into shared memory: scores are computed on request, and solutions are
// written directly to the sink, which is cleared by all threads, set by one, and completed by all,
// with a sync of the group in between.
#pragma once

#include <cstdint>

#include "aimle/cuda/device_rows.h"
#include "aimle/cuda/row.cuh"

namespace aimle::cuda {

template <class T>
class DirectOutput {
 public:
  __device__ DirectOutput(const RowSink<T>& sink, int64_t row, int64_t n)
      : sink_(sink), row_(row), n_(n), bytes_((n + 7) / 8) {}

  template <class Group>
  __device__ void clear(const Group& group) const {
    fill(group, T(0));
  }
  __device__ void set(int64_t j) const {
    if (sink_.z != nullptr) sink_.z[row_ * n_ + j] = T(1);
    if (sink_.bits != nullptr) {
      sink_.bits[row_ * bytes_ + j / 8] |= static_cast<uint8_t>(1u << (j % 8));
    }
  }
  template <class Group>
  __device__ void finish(const Group& group, Status status) const {
    if (sink_.status != nullptr && group.rank() == 0) {
      sink_.status[row_] = static_cast<uint8_t>(status);
    }
    if (status != Status::kOk) fill(group, static_cast<T>(NAN));
  }

 private:
  template <class Group>
  __device__ void fill(const Group& group, T value) const {
    if (sink_.z != nullptr) {
      for (int64_t j = group.rank(); j < n_; j += group.size()) sink_.z[row_ * n_ + j] = value;
    }
    if (sink_.bits != nullptr) {
      uint8_t* bits = sink_.bits + row_ * bytes_;
      for (int64_t i = group.rank(); i < bytes_; i += group.size()) bits[i] = 0;
    }
  }

  const RowSink<T>& sink_;
  int64_t row_;
  int64_t n_;
  int64_t bytes_;
};

/// A row's scores: all of them, one quad at a time, or a single entry.
template <class T>
struct QuadScores {
  const Row<T>& row;

  /// Calls body(j, score) for this thread's share.
  template <class Body>
  __device__ __forceinline__ void for_each(int rank, int threads, const Body& body) const {
    const int64_t n = row.n();
    for (int64_t q = rank; 4 * q < n; q += threads) {
      T x[4];
      row.quad(q, x);
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        if (4 * q + c < n) body(4 * q + c, x[c]);
      }
    }
  }
  __device__ __forceinline__ T operator()(int64_t j) const {
    T x[4];
    row.quad(j / 4, x);
    const T low = j % 2 ? x[1] : x[0], high = j % 2 ? x[3] : x[2];
    return j % 4 < 2 ? low : high;
  }
};

}  // namespace aimle::cuda
