// Knapsack by a group of threads: the recursion of map/knapsack.h, one line of its table after the
// other, with eight capacities per thread, then the walk backwards by one thread. The sums, and
// therefore the bits, are those of the CPU.
#pragma once

#include <cstdint>

#include "aimle/cuda/group.h"
#include "aimle/map/knapsack.h"

namespace aimle::cuda {

/// Memory of one row: scores, two lines of values, and a bit for every cell of the table.
template <class T>
struct KnapsackScratch {
  T* x;            // [n]
  T* before;       // [capacity + 1]
  T* after;        // [capacity + 1]
  uint8_t* taken;  // [n, bytes_per_line(capacity)]

  AIMLE_HD static int64_t bytes_per_line(int64_t capacity) { return (capacity + 8) / 8; }
  static int64_t bytes(const Knapsack& solver) {
    const int64_t numbers = solver.n + 2 * (solver.max_capacity + 1);
    const int64_t size =
        numbers * static_cast<int64_t>(sizeof(T)) + solver.n * bytes_per_line(solver.max_capacity);
    return (size + 15) / 16 * 16;
  }
  AIMLE_DEVICE static KnapsackScratch at(void* memory, int64_t n, int64_t max_capacity) {
    T* x = static_cast<T*>(memory);
    T* before = x + n;
    T* after = before + max_capacity + 1;
    return {x, before, after, reinterpret_cast<uint8_t*>(after + max_capacity + 1)};
  }
};

/// The size of a problem, known to all threads.
struct KnapsackShape {
  int64_t n;
  int64_t max_capacity;
};

namespace detail {

struct GreatestDivisor {
  AIMLE_DEVICE uint64_t operator()(uint64_t a, uint64_t b) const {
    while (b != 0) {
      const uint64_t rest = a % b;
      a = b;
      b = rest;
    }
    return a;
  }
};

struct CappedSum {
  uint64_t most;
  AIMLE_DEVICE uint64_t operator()(uint64_t a, uint64_t b) const {
    return a + b < most ? a + b : most;
  }
};

/// Line j of the table from line j - 1; the group's threads together.
template <class T, class Group>
AIMLE_DEVICE void add_item(Group& group, const T* before, T* after, uint8_t* taken,
                           int64_t capacity, int64_t weight, T x) {
  for (int64_t first = 8 * static_cast<int64_t>(group.rank()); first <= capacity;
       first += 8 * static_cast<int64_t>(group.size())) {
    const int64_t end = first + 8 <= capacity + 1 ? first + 8 : capacity + 1;
    uint32_t bits = 0;
    for (int64_t c = first; c < end; ++c) {
      const T without = before[c];
      const T with = c >= weight ? before[c - weight] + x : without;
      const bool better = with > without;
      after[c] = better ? with : without;
      bits |= static_cast<uint32_t>(better) << (c - first);
    }
    taken[first / 8] = static_cast<uint8_t>(bits);
  }
}

}  // namespace detail

/// Solves one row: `scores.for_each(rank, size, body(j, x))` provides its scores, `data` its
/// weights and capacity; `chosen(j)` is called by thread 0 for every item taken.
template <class T, class Group, class Scores, class Chosen>
AIMLE_DEVICE Status solve_knapsack(Group& group, const KnapsackShape& shape, const Scores& scores,
                                   const bool* mask, const int64_t* data,
                                   KnapsackScratch<T> scratch, Chosen chosen) {
  const int64_t given = data[shape.n];
  uint32_t worst = given < 0 ? 1 : 0;
  uint64_t divisor = 0;
  scores.for_each(group.rank(), group.size(), [&](int64_t j, T x) {
    const bool allowed = mask == nullptr || mask[j];
    if (data[j] < 0 && worst < 1) worst = 1;
    if (allowed && x != x) worst = 2;
    const bool wanted = allowed && x > T(0) && 0 <= data[j] && data[j] <= given;
    scratch.x[j] = wanted ? x : T(0);
    if (wanted) divisor = detail::GreatestDivisor{}(divisor, static_cast<uint64_t>(data[j]));
  });
  worst = group.max(worst);
  if (worst == 2) return Status::kNaN;
  if (worst == 1) return Status::kBadData;
  divisor = group.reduce(divisor, detail::GreatestDivisor{});
  if (divisor == 0) divisor = 1;
  const detail::CappedSum add{static_cast<uint64_t>(given) / divisor};
  uint64_t total = 0;
  for (int64_t j = group.rank(); j < shape.n; j += group.size()) {
    if (scratch.x[j] > T(0)) total = add(total, static_cast<uint64_t>(data[j]) / divisor);
  }
  const auto capacity = static_cast<int64_t>(group.reduce(total, add));
  if (capacity > shape.max_capacity) return Status::kTooLarge;

  for (int64_t c = group.rank(); c <= capacity; c += group.size()) scratch.before[c] = T(0);
  group.sync();
  const int64_t line = KnapsackScratch<T>::bytes_per_line(capacity);
  for (int64_t j = 0; j < shape.n; ++j) {
    const T x = scratch.x[j];
    if (!(x > T(0))) continue;
    detail::add_item(group, scratch.before, scratch.after, scratch.taken + j * line, capacity,
                     static_cast<int64_t>(static_cast<uint64_t>(data[j]) / divisor), x);
    T* const filled = scratch.after;
    scratch.after = scratch.before;
    scratch.before = filled;
    group.sync();
  }
  if (group.rank() == 0) {
    int64_t left = capacity;
    for (int64_t j = shape.n; j-- > 0;) {
      if (!(scratch.x[j] > T(0))) continue;
      if ((scratch.taken[j * line + left / 8] >> (left % 8) & 1) == 0) continue;
      chosen(j);
      left -= static_cast<int64_t>(static_cast<uint64_t>(data[j]) / divisor);
    }
  }
  return Status::kOk;
}

}  // namespace aimle::cuda
