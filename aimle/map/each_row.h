// The rows of a batch, one after the other. For the portable solvers.
#pragma once

#include <algorithm>
#include <limits>

#include "aimle/map/map.h"

namespace aimle::detail {

/// solve(scores, mask, z, i) solves row i, whose mask is null if there is none, and returns its
/// status. If that is not kOk, z becomes NaN.
template <class T, class Solve>
void solve_each_row(const Rows<T>& rows, int64_t size, const Solve& solve) {
  for (int64_t i = 0; i < rows.count; ++i) {
    const bool* mask = rows.mask ? rows.mask + i * size : nullptr;
    T* z = rows.z + i * size;
    rows.status[i] = solve(rows.scores + i * size, mask, z, i);
    if (rows.status[i] != Status::kOk) std::fill_n(z, size, std::numeric_limits<T>::quiet_NaN());
  }
}

}  // namespace aimle::detail
