// The kernel that all solvers share: scores in, solutions out.
//
// A policy defines how one row is solved, by one thread, by a warp or by a block. It is a small
// struct of settings, copied to the device:
//
//   struct Policy {
//     static constexpr int kRowThreads;    // threads that share a row: 1, 32, or the whole block
//     static constexpr int kBlockThreads;  // threads in a block; a multiple of 32 and kRowThreads
//     static constexpr const char* kName;  // for error messages
//     static constexpr int kMinBlocks;     // optional: blocks that should fit on a multiprocessor
//
//     /// Shared memory for one row of n entries of T, besides that of the kernel itself. Host.
//     template <class T>
//     int64_t row_bytes(int64_t n) const;
//
//     /// Solves one row. All kRowThreads threads call it and return the same status. `chosen` is
//     /// shared memory of (n + 31) / 32 words: bit j % 32 of word j / 32 means that entry j is
//     /// chosen. All words must be written if the status is kOk (bits from n on are zeros).
//     /// `scratch` is the row's shared memory, aligned to 16 bytes.
//     template <class T>
//     __device__ Status solve(const Row<T>& row, uint32_t* chosen, char* scratch) const;
//   };
//
// Inside, the threads of a row synchronise with Group<kRowThreads>::sync(). The kernel writes z,
// bits and status, with neighbouring threads writing to neighbouring addresses.
#pragma once

#include "aimle/cuda/group.cuh"
#include "aimle/cuda/launch.cuh"
#include "aimle/cuda/row.cuh"
#include "aimle/estimate/passes.h"

namespace aimle::cuda {

/// The rows that a warp (or a block, if a row has more threads) processes at once.
template <class Policy>
struct UnitOf {
  static constexpr int kThreads = Policy::kRowThreads < 32 ? 32 : Policy::kRowThreads;
  static constexpr int kRows = kThreads / Policy::kRowThreads;
  static constexpr int kPerBlock = Policy::kBlockThreads / kThreads;
  static_assert(Policy::kRowThreads == 1 || Policy::kRowThreads == 32 ||
                Policy::kRowThreads == Policy::kBlockThreads);

  static constexpr int64_t kStatusBytes = align_up(kRows);
  __host__ __device__ static int64_t words(int64_t n) { return (n + 31) / 32; }
  __host__ __device__ static int64_t chosen_bytes(int64_t n) {
    return (kRows * words(n) * 4 + 15) / 16 * 16;
  }
  __host__ __device__ static int64_t bytes(int64_t n, int64_t row_bytes) {
    return kStatusBytes + chosen_bytes(n) + kRows * row_bytes;
  }
};

/// Bit `bit` of the word as 0 or 1, or NaN; by selection, because conversions are slow.
template <class T>
__device__ __forceinline__ T as_number(uint32_t word, int bit, bool bad) {
  const T one = bad ? static_cast<T>(NAN) : T(1), zero = bad ? static_cast<T>(NAN) : T(0);
  return (word >> bit) & 1 ? one : zero;
}

/// e / length and e % length for e < 32 length, length <= 32: a product instead of a division.
class ShortSplit {
 public:
  __device__ explicit ShortSplit(int64_t length)
      : length_(static_cast<uint32_t>(length)), factor_(((1u << 20) + length_ - 1) / length_) {}
  __device__ Split operator()(int64_t e) const {
    const auto at = static_cast<uint32_t>(e), quotient = (at * factor_) >> 20;
    return {quotient, at - quotient * length_};
  }

 private:
  uint32_t length_;
  uint32_t factor_;
};

/// A single row: no division at all.
struct NoSplit {
  __device__ explicit NoSplit(int64_t) {}
  __device__ Split operator()(int64_t e) const { return {0, e}; }
};

/// Writes the solutions of rows [first, first + count); executed by the threads of a unit together.
template <class Policy, class T>
__device__ void write_rows(const RowSink<T>& sink, int64_t first, int count, int64_t n,
                           const uint8_t* status, const uint32_t* chosen) {
  using Unit = UnitOf<Policy>;
  const int rank = Group<Unit::kThreads>::rank();
  const int64_t words = Unit::words(n);
  if (sink.status != nullptr) {
    for (int i = rank; i < count; i += Unit::kThreads) sink.status[first + i] = status[i];
  }
  static_assert(Unit::kRows == 1 || Unit::kRows == 32);  // the latter: n <= 32, one word
  using Place = std::conditional_t<Unit::kRows == 1, NoSplit, ShortSplit>;
  if (sink.bits != nullptr) {
    const int64_t stride = bytes_per_row(n);
    const Place place(stride);
    for (int64_t e = rank; e < count * stride; e += Unit::kThreads) {
      const Split at = place(e);
      sink.bits[first * stride + e] =
          static_cast<uint8_t>(chosen[at.quotient * words + at.rest / 4] >> (8 * (at.rest % 4)));
    }
  }
  if (sink.z == nullptr) return;
  T* z = sink.z + first * n;
  if (quads_aligned(sink.z, n)) {
    const int64_t quads = n / 4;
    const Place place(quads);
#pragma unroll 2
    for (int64_t e = rank; e < count * quads; e += Unit::kThreads) {
      const Split at = place(e);
      const bool bad = status[at.quotient] != 0;
      const uint32_t four = chosen[at.quotient * words + at.rest / 8] >> (4 * (at.rest % 8));
      const T x0 = as_number<T>(four, 0, bad), x1 = as_number<T>(four, 1, bad);
      const T x2 = as_number<T>(four, 2, bad), x3 = as_number<T>(four, 3, bad);
      if constexpr (sizeof(T) == 4) {
        __stcs(reinterpret_cast<float4*>(z) + e, make_float4(x0, x1, x2, x3));
      } else {
        __stcs(reinterpret_cast<double2*>(z) + 2 * e, make_double2(x0, x1));
        __stcs(reinterpret_cast<double2*>(z) + 2 * e + 1, make_double2(x2, x3));
      }
    }
    return;
  }
  const Place place(n);
  for (int64_t e = rank; e < count * n; e += Unit::kThreads) {
    const Split at = place(e);
    z[e] = as_number<T>(chosen[at.quotient * words + at.rest / 32], static_cast<int>(at.rest % 32),
                        status[at.quotient] != 0);
  }
}

template <class Policy>
constexpr int min_blocks() {
  if constexpr (requires { Policy::kMinBlocks; }) return Policy::kMinBlocks;
  return 1;
}

template <class T, class Policy>
__global__ void __launch_bounds__(Policy::kBlockThreads, min_blocks<Policy>())
    map_rows_kernel(const __grid_constant__ RowSource<T> source,
                    const __grid_constant__ Policy policy, const __grid_constant__ RowSink<T> sink,
                    int64_t rows, int64_t row_bytes) {
  using Unit = UnitOf<Policy>;
  using UnitGroup = Group<Unit::kThreads>;
  char* shared = dynamic_shared<char>();
  const int64_t n = source.examples.n;
  const int unit = static_cast<int>(threadIdx.x) / Unit::kThreads;
  char* memory = shared + unit * Unit::bytes(n, row_bytes);
  auto* status = reinterpret_cast<uint8_t*>(memory);
  auto* chosen = reinterpret_cast<uint32_t*>(memory + Unit::kStatusBytes);
  char* scratch = memory + Unit::kStatusBytes + Unit::chosen_bytes(n);

  const int local = UnitGroup::rank() / Policy::kRowThreads;
  const int row_rank = UnitGroup::rank() % Policy::kRowThreads;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * Unit::kPerBlock * Unit::kRows;
  for (int64_t first = (static_cast<int64_t>(blockIdx.x) * Unit::kPerBlock + unit) * Unit::kRows;
       first < rows; first += stride) {
    const int count = static_cast<int>(rows - first < Unit::kRows ? rows - first : Unit::kRows);
    if (local < count) {
      uint32_t* mine = chosen + local * Unit::words(n);
      const Row<T> row(source, first + local);
      const Status found = policy.template solve<T>(row, mine, scratch + local * row_bytes);
      if (row_rank == 0) status[local] = static_cast<uint8_t>(found);
      if (found != Status::kOk) {
        for (int64_t w = row_rank; w < Unit::words(n); w += Policy::kRowThreads) mine[w] = 0;
      }
    }
    UnitGroup::sync();
    write_rows<Policy>(sink, first, count, n, status, chosen);
    UnitGroup::sync();
  }
}

/// Solves every row of the source by the policy.
template <class T, class Policy>
void map_rows_by(const Policy& policy, const RowSource<T>& source, const RowSink<T>& sink,
                 const Context& context) {
  using Unit = UnitOf<Policy>;
  const int64_t rows = source.rows(), n = source.examples.n;
  if (rows == 0) return;
  const int64_t row_bytes = align_up(policy.template row_bytes<T>(n));
  const int64_t shared = Unit::kPerBlock * Unit::bytes(n, row_bytes);
  launch(Policy::kName, map_rows_kernel<T, Policy>, blocks_for(rows, Unit::kPerBlock * Unit::kRows),
         Policy::kBlockThreads, shared, context, source, policy, sink, rows, row_bytes);
}

}  // namespace aimle::cuda
