// Knapsack: the best set of items whose weights fit into a capacity.
//
//   z = argmax over z in {0,1}^n with <w, z> <= capacity of <x, z>
//
// The weights and the capacity of an instance are given as data, n + 1 integers: w_0 ... w_(n-1),
// capacity, shared by a batch or one set per instance. Negative ones make the row kBadData.
//
// Values are sums in the order of the items, rounded in the type of the scores at every step:
//   f(-1, c) = 0;   f(j, c) = max(f(j-1, c), fl(f(j-1, c - w_j) + x_j))   where w_j <= c.
// Ties: from the last item to the first, with c the remaining capacity, item j is taken only if
// fl(f(j-1, c - w_j) + x_j) > f(j-1, c). So of equal items the lower index wins, and items that add
// nothing are left out: scores of zero, -0 and below are never taken, whatever their weight.
//
// -inf counts as masked, +inf is larger than every number; NaN in an unmasked entry is kNaN.
//
// Dynamic programming, O(n C), where C is the capacity divided by the greatest common divisor of
// the relevant weights, or the sum of these if that is less. If C is large, the CPU first decides
// most items by bounds (knapsack_core.h), with the same result. A row with a C beyond max_capacity
// is kTooLarge; a GPU, which cannot read the data first, allocates scratch memory for max_capacity.
//
//   aimle::solve(aimle::Knapsack{.n = 16}, {.data = {weights_and_capacity.data()}, ...});
#pragma once

#include <vector>

#include "aimle/map/map.h"

namespace aimle {

struct Knapsack {
  static constexpr std::string_view kName = "knapsack";
  static constexpr Sense kSense = Sense::kMax;
  static constexpr int64_t kMaxCells = int64_t{1} << 33;  // n (max_capacity + 1)

  int64_t n = 0;
  int64_t max_capacity = int64_t{1} << 20;

  int64_t size() const { return n; }
  double work_ns() const { return 100.0 + 100.0 * static_cast<double>(n); }
  SolutionSize solution_size() const { return {}; }
  void validate() const;
  /// Of the data that `take_data` was given.
  std::vector<uint8_t> structures() const;
  double structure_count() const;

  static void declare(Declaration<Knapsack>& solver);
  void take_data(int64_t length, const int64_t* data);
  void fit(Shape instance);

  int64_t data_length = -1;              // as given to take_data
  std::vector<int64_t> known_data = {};  // those of all instances, if they are known
};

void solve_rows(const Knapsack& solver, const Rows<float>& rows);
void solve_rows(const Knapsack& solver, const Rows<double>& rows);

}  // namespace aimle
