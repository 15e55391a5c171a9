// Sums over the rows of a matrix: how its entries are distributed over blocks and threads.
//
// PyTorch's reduction over the rows of a tall matrix uses only a few blocks. Here a block takes 8
// columns, 32 bytes of a row, and at most 3,072 rows, a part of them. The caller adds the parts.
// The order of summation is fixed.
#pragma once

#include <cstdint>

namespace aimle::experiments::column_sums {

constexpr int kThreads = 1024;
constexpr int kColumns = 8;                       // of a block
constexpr int kRowsAtOnce = kThreads / kColumns;  // a thread processes one column
constexpr int64_t kRows = 3072;                   // of a block
constexpr int kLoads = 4;                         // rows of a thread that it loads together

inline int64_t parts_of(int64_t rows) { return rows <= kRows ? 1 : (rows + kRows - 1) / kRows; }

inline unsigned blocks_of(int64_t rows, int64_t columns) {
  return static_cast<unsigned>((columns + kColumns - 1) / kColumns * parts_of(rows));
}

/// What a thread takes: rows first, first + kRowsAtOnce, ... before end. The column of some threads
/// lies behind the last one of the matrix: they take no rows.
struct Place {
  int64_t part, column, first, end;
};

__device__ inline Place place_in(int64_t rows, int64_t columns) {
  const auto thread = static_cast<int64_t>(threadIdx.x), block = static_cast<int64_t>(blockIdx.x);
  const int64_t strips = (columns + kColumns - 1) / kColumns, parts = gridDim.x / strips;
  const int64_t part_rows = (rows + parts - 1) / parts;
  Place place = {.part = block / strips,
                 .column = block % strips * kColumns + thread % kColumns,
                 .first = 0,
                 .end = 0};
  if (place.column >= columns) return place;
  place.first = place.part * part_rows + thread / kColumns;
  place.end = (place.part + 1) * part_rows < rows ? (place.part + 1) * part_rows : rows;
  return place;
}

/// The sum over the threads with the same column, which the first kColumns threads get.
template <class Number>
__device__ Number sum_of_column(Number own) {
  __shared__ Number of_warps[kThreads / 32][kColumns];
  const int thread = static_cast<int>(threadIdx.x);
  for (int by = kColumns; by < 32; by *= 2) own += __shfl_xor_sync(~0U, own, by);
  if (thread % 32 < kColumns) of_warps[thread / 32][thread % 32] = own;
  __syncthreads();
  Number sum = 0;
  if (thread < kColumns) {
    for (int warp = 0; warp < kThreads / 32; ++warp) sum += of_warps[warp][thread];
  }
  __syncthreads();
  return sum;
}

}  // namespace aimle::experiments::column_sums
