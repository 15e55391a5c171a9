// Solvers that need scratch memory for a row: in shared memory if it fits, otherwise in device
// memory.
//
// A work is a small struct of settings, copied to the device:
//
//   struct Work {
//     static constexpr const char* kName;  // for error messages
//
//     /// Scratch memory for one row of n entries of T. Host.
//     template <class T>
//     int64_t bytes(int64_t n) const;
//
//     /// Solves one row. All threads of the group call it and return the same status; `choose(j)`
//     /// is called once for every chosen entry, by one thread at a time.
//     template <class T, class Group, class Choose>
//     __device__ Status solve(Group& group, const Row<T>& row, char* memory,
//                             const Choose& choose) const;
//   };
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "aimle/cuda/direct_output.cuh"
#include "aimle/cuda/map_rows.cuh"

namespace aimle::cuda {

/// Several threads per row, everything in shared memory.
template <class Work, int kThreads, int kRowsPerBlock>
struct InSharedMemory {
  static constexpr int kRowThreads = kThreads;
  static constexpr int kBlockThreads = kThreads * kRowsPerBlock;
  static constexpr const char* kName = Work::kName;
  using RowGroup =
      std::conditional_t<kThreads == 1, OneThread, Group<kThreads == 1 ? 32 : kThreads>>;

  Work work;

  template <class T>
  int64_t row_bytes(int64_t n) const {
    return work.template bytes<T>(n);
  }

  template <class T>
  __device__ __forceinline__ Status solve(const Row<T>& row, uint32_t* chosen,
                                          char* scratch) const {
    RowGroup group;
    for (int64_t word = group.rank(); 32 * word < row.n(); word += kThreads) chosen[word] = 0;
    group.sync();
    return work.template solve<T>(group, row, scratch,
                                  [chosen](int64_t j) { chosen[j / 32] |= 1u << (j % 32); });
  }
};

/// A block per row, everything in device memory, `bytes` for every block.
template <int kThreads, class T, class Work>
__global__ void __launch_bounds__(kThreads)
    map_large_rows(const __grid_constant__ RowSource<T> source,
                   const __grid_constant__ RowSink<T> sink, int64_t rows,
                   const __grid_constant__ Work work, char* memory, int64_t bytes) {
  Group<kThreads> block;
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const Row<T> row(source, r);
    const DirectOutput<T> output(sink, r, row.n());
    output.clear(block);
    block.sync();
    const Status status = work.template solve<T>(block, row, memory + blockIdx.x * bytes,
                                                 [&](int64_t j) { output.set(j); });
    block.sync();
    output.finish(block, status);
    block.sync();
  }
}

/// Solves every row of the source; false, and nothing done, if the rows of a block do not fit into
/// shared memory.
template <int kThreads, int kRowsPerBlock, class Work, class T>
bool map_in_shared_memory(const Work& work, const RowSource<T>& source, const RowSink<T>& sink,
                          const Context& context) {
  using Policy = InSharedMemory<Work, kThreads, kRowsPerBlock>;
  using Unit = UnitOf<Policy>;
  const int64_t n = source.examples.n;
  const int64_t bytes = Unit::bytes(n, align_up(work.template bytes<T>(n)));
  if (Unit::kPerBlock * bytes > shared_memory_limit()) return false;
  map_rows_by(Policy{work}, source, sink, context);
  return true;
}

/// Solves every row of the source.
template <int kThreads, class Work, class T>
void map_in_device_memory(const Work& work, const RowSource<T>& source, const RowSink<T>& sink,
                          const Context& context) {
  if (source.rows() == 0) return;
  constexpr int64_t kMemory = int64_t{1} << 30;
  constexpr int64_t kBlocks = std::max(264, 264 * 512 / kThreads);
  const int64_t bytes = align_up(work.template bytes<T>(source.examples.n));
  const int64_t room = std::clamp<int64_t>(kMemory / std::max<int64_t>(bytes, 1), 1, kBlocks);
  const unsigned blocks = blocks_for(source.rows(), 1, room);
  launch(Work::kName, map_large_rows<kThreads, T, Work>, blocks, kThreads, 0, context, source, sink,
         source.rows(), work, context.array<char>(blocks * bytes), bytes);
}

}  // namespace aimle::cuda
