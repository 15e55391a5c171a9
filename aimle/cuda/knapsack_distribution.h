// Reading a row of the distribution over knapsacks by a group of threads; exact/knapsack_row.h has
// the rest. Every entry is an item here; the CPU packs those that fit (map/knapsack_items.h).
#pragma once

#include "aimle/cuda/group.h"
#include "aimle/cuda/knapsack.h"
#include "aimle/exact/knapsack_distribution.h"
#include "aimle/exact/knapsack_row.h"

namespace aimle::cuda {

using exact_row::KnapsackRow;
using exact_row::KnapsackTables;

/// Item j is entry j.
struct EveryEntry {
  AIMLE_EITHER int64_t operator()(int64_t j) const { return j; }
};

template <class T, class Group>
AIMLE_DEVICE KnapsackRow read_knapsack(Group& group, const KnapsackShape& shape, const T* scores,
                                       const bool* mask, const int64_t* data,
                                       const KnapsackTables& tables) {
  const double infinity = __builtin_huge_val();
  const int64_t given = data[shape.n];
  KnapsackRow row{
      .status = Status::kOk, .entries = shape.n, .n = shape.n, .capacity = 0, .linear = true};
  uint32_t worst = given < 0 ? 1 : 0;
  uint64_t divisor = 0;
  double spread = 0;
  for (int64_t j = group.rank(); j < shape.n; j += group.size()) {
    const bool allowed = mask == nullptr || mask[j];
    const auto x = static_cast<double>(scores[j]);
    if (data[j] < 0 && worst < 1) worst = 1;
    if (allowed && (x != x || x == infinity)) worst = 2;
    const bool wanted = allowed && x > -infinity && 0 <= data[j] && data[j] <= given;
    tables.x[j] = wanted ? x : -infinity;
    if (!wanted) continue;
    spread += x < 0 ? -x : x;
    divisor = detail::GreatestDivisor{}(divisor, static_cast<uint64_t>(data[j]));
  }
  worst = group.max(worst);
  if (worst != 0) {
    row.status = worst == 2 ? Status::kNaN : Status::kBadData;
    return row;
  }
  divisor = group.reduce(divisor, detail::GreatestDivisor{});
  if (divisor == 0) divisor = 1;
  row.linear = group.reduce(spread, Plus{}) <= aimle::detail::kLinearSpread;
  const detail::CappedSum add{static_cast<uint64_t>(given) / divisor};
  uint64_t total = 0;
  for (int64_t j = group.rank(); j < shape.n; j += group.size()) {
    const uint64_t weight = tables.x[j] > -infinity ? static_cast<uint64_t>(data[j]) / divisor : 0;
    tables.weight[j] = static_cast<double>(weight);
    total = add(total, weight);
  }
  row.capacity = static_cast<int64_t>(group.reduce(total, add));
  const double cells = static_cast<double>(shape.n + 1) * (static_cast<double>(row.capacity) + 1);
  if (row.capacity > shape.max_capacity || cells > static_cast<double>(kMaxKnapsackCells)) {
    row.status = Status::kTooLarge;
  }
  return row;
}

}  // namespace aimle::cuda
