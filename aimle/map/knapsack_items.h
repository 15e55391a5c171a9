// The relevant items of one knapsack, on the coarsest equivalent scale. Shared by the solver and
// its exact distribution.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "aimle/map/knapsack.h"

namespace aimle::detail {

struct KnapsackItems {
  std::vector<int64_t> index;   // which of the row's entries
  std::vector<int64_t> weight;  // over their greatest common divisor
  int64_t capacity = 0;         // also divided by it, and at most the sum of the weights

  int64_t count() const { return static_cast<int64_t>(index.size()); }

  /// kBadData or kTooLarge if there is no solution. `wanted(j)`: whether entry j may be taken,
  /// regardless of its weight.
  template <class Wanted>
  Status read(const Knapsack& solver, const int64_t* data, Wanted wanted) {
    const int64_t n = solver.n;
    index.clear();
    weight.clear();
    const int64_t given = data[n];
    if (given < 0 || std::any_of(data, data + n, [](int64_t w) { return w < 0; })) {
      return Status::kBadData;
    }
    int64_t divisor = 0;
    for (int64_t j = 0; j < n; ++j) {
      if (data[j] > given || !wanted(j)) continue;
      index.push_back(j);
      weight.push_back(data[j]);
      if (divisor != 1) divisor = std::gcd(divisor, data[j]);
    }
    divisor = std::max<int64_t>(divisor, 1);
    const auto most = static_cast<uint64_t>(given / divisor);
    uint64_t total = 0;  // up to twice the largest int64
    for (int64_t& w : weight) {
      w /= divisor;
      total = std::min(most, total + static_cast<uint64_t>(w));
    }
    capacity = static_cast<int64_t>(total);
    return capacity > solver.max_capacity ? Status::kTooLarge : Status::kOk;
  }
};

}  // namespace aimle::detail
