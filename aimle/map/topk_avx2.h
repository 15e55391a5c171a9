// The AVX2 forms of top-k and argmax for float32. They are entered only where isa() allows it, and
// give what the portable form gives.
#pragma once

#include "aimle/map/argmax.h"
#include "aimle/map/topk.h"

namespace aimle::avx2 {

/// Rows up to this length are solved eight at a time.
inline constexpr int64_t kShortRow = 32;

/// n <= kShortRow. Eight rows lie across the lanes; each half of a row is sorted by a network, and
/// the k-th largest of two sorted lists A, B is the maximum over i + j = k of min(A_i, B_j).
void solve_short_rows(const TopK& solver, const Rows<float>& rows);

/// Any n >= 8, one row after the other. The k-th largest of the maxima of disjoint groups is a
/// lower bound of the k-th largest score; what reaches it is packed together, and the k-th of the
/// few survivors is found by counting ranks.
void solve_long_rows(const TopK& solver, const Rows<float>& rows);

/// n >= 8.
void solve_rows(const Argmax& solver, const Rows<float>& rows);

}  // namespace aimle::avx2
