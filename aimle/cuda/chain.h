// Chain by a group of threads: the sums of a step, one label per thread, then the walk backwards
// (map/chain.h has the problem and the tie rule).
//
// The scores of a step are computed once, by all threads, into a tile of some rows i of the step;
// then every thread adds them to the sums so far for its labels j. Rows are in ascending order and
// a sum must exceed the best so far, so that the lowest predecessor of a tie is kept, as on the
// CPU. Thread 0 goes backwards over the predecessors.
#pragma once

#include <cstdint>

#include "aimle/cuda/group.h"
#include "aimle/map/chain.h"

namespace aimle::cuda {

struct ChainShape {
  int64_t steps;
  int32_t labels;
  int32_t tile_rows;  // rows of a step that are in memory at once

  AIMLE_DEVICE int64_t edges_per_step() const { return int64_t{labels} * labels; }
};

inline ChainShape chain_shape(const Chain& solver) {
  constexpr int64_t kTileEntries = 4096;
  int64_t rows = kTileEntries / solver.labels;
  rows = rows < 1 ? 1 : rows > solver.labels ? solver.labels : rows;
  return {.steps = solver.steps(),
          .labels = static_cast<int32_t>(solver.labels),
          .tile_rows = static_cast<int32_t>(rows)};
}

/// Memory of one row.
template <class T>
struct ChainScratch {
  T* before;           // [labels], the sums to every label
  T* after;            // [labels], those one step on
  T* tile;             // [tile_rows, labels]
  uint16_t* previous;  // [steps, labels], the label before

  static int64_t bytes(const ChainShape& chain) {
    const int64_t numbers = int64_t{2 + chain.tile_rows} * chain.labels;
    const int64_t labels = chain.steps * chain.labels;
    return (numbers * static_cast<int64_t>(sizeof(T)) + 2 * labels + 15) / 16 * 16;
  }
  AIMLE_DEVICE static ChainScratch at(void* memory, const ChainShape& chain) {
    T* const before = static_cast<T*>(memory);
    T* const tile = before + 2 * int64_t{chain.labels};
    return {before, before + chain.labels, tile,
            reinterpret_cast<uint16_t*>(tile + int64_t{chain.tile_rows} * chain.labels)};
  }
};

/// chain_steps of map/chain.h, by all threads.
template <class Group>
AIMLE_DEVICE int64_t steps_of_mask(Group& group, const ChainShape& chain, const bool* mask) {
  if (mask == nullptr) return chain.steps;
  const int64_t edges = chain.edges_per_step();
  uint32_t steps = 0;
  for (int64_t e = group.rank(); e < chain.steps * edges; e += group.size()) {
    if (mask[e]) steps = static_cast<uint32_t>(e / edges) + 1;
  }
  return static_cast<int64_t>(group.max(steps));
}

/// `scores.for_range(begin, end, rank, threads, body)` calls body(e, score) for a thread's share of
/// the entries from begin to end. `chosen(e)` is called only by thread 0.
template <class T, class Group, class Scores, class Chosen>
AIMLE_DEVICE Status solve_chain(Group& group, const ChainShape& chain, const Scores& scores,
                                const bool* mask, ChainScratch<T> scratch, const Chosen& chosen) {
  const T never = -static_cast<T>(__builtin_huge_val());
  const int32_t labels = chain.labels;
  const int64_t steps = steps_of_mask(group, chain, mask);
  for (int32_t j = group.rank(); j < labels; j += group.size()) scratch.before[j] = T(0);
  bool nan = false;
  for (int64_t t = 0; t < steps; ++t) {
    for (int32_t first = 0; first < labels; first += chain.tile_rows) {
      const int32_t left = labels - first;
      const int32_t rows = left < chain.tile_rows ? left : chain.tile_rows;
      const int64_t begin = t * chain.edges_per_step() + int64_t{first} * labels;
      scores.for_range(begin, begin + int64_t{rows} * labels, group.rank(), group.size(),
                       [&](int64_t e, T x) {
                         if (mask != nullptr && !mask[e]) x = never;
                         nan |= x != x;
                         scratch.tile[e - begin] = x;
                       });
      group.sync();
      for (int32_t j = group.rank(); j < labels; j += group.size()) {
        uint16_t* const previous = scratch.previous + t * labels + j;
        T best = first == 0 ? never : scratch.after[j];
        int32_t from = first == 0 ? 0 : *previous;
        for (int32_t i = 0; i < rows; ++i) {
          const T sum = scratch.before[first + i] + scratch.tile[i * labels + j];
          if (sum > best) {
            best = sum;
            from = first + i;
          }
        }
        scratch.after[j] = best;
        *previous = static_cast<uint16_t>(from);
      }
      group.sync();
    }
    T* const swapped = scratch.before;
    scratch.before = scratch.after;
    scratch.after = swapped;
  }
  if (group.any(nan)) return Status::kNaN;
  int32_t label = 0;
  for (int32_t j = 1; j < labels; ++j) {
    if (scratch.before[j] > scratch.before[label]) label = j;
  }
  if (scratch.before[label] == never) return Status::kDisconnected;
  if (group.rank() != 0) return Status::kOk;
  for (int64_t t = steps - 1; t >= 0; --t) {
    const int32_t before = scratch.previous[t * labels + label];
    chosen((t * labels + before) * labels + label);
    label = before;
  }
  return Status::kOk;
}

}  // namespace aimle::cuda
