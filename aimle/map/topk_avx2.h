// The AVX2 forms of top-k and argmax for float32, and of top-k of short rows also
// for float64. They are entered only where isa() allows it, and
// give what the portable form gives.
#pragma once

#include "aimle/map/argmax.h"
#include "aimle/map/topk.h"

namespace aimle::avx2 {

/// n <= kShortRow (topk_short.h).
void solve_short_rows(const TopK& solver, const Rows<float>& rows);
void solve_short_rows(const TopK& solver, const Rows<double>& rows);

/// Any n >= 8, one row after the other. The k-th largest of the maxima of disjoint groups is a
/// lower bound of the k-th largest score; what reaches it is packed together, and the k-th of the
/// few survivors is found by counting ranks.
void solve_long_rows(const TopK& solver, const Rows<float>& rows);

/// n >= 8.
void solve_rows(const Argmax& solver, const Rows<float>& rows);

}  // namespace aimle::avx2
