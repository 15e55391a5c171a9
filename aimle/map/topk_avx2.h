// The AVX2 versions of top-k and argmax for float32, and of top-k of short rows also for float64.
// They are used only if isa() allows it, and give the same result as the portable versions.
#pragma once

#include "aimle/map/argmax.h"
#include "aimle/map/topk.h"

namespace aimle::avx2 {

/// n <= kShortRow (topk_short.h).
void solve_short_rows(const TopK& solver, const Rows<float>& rows);
void solve_short_rows(const TopK& solver, const Rows<double>& rows);

/// Any n >= 8, one row after the other. The k-th largest of the maxima of disjoint groups is a
/// lower bound of the k-th largest score; the scores that reach it are packed, and the k-th of the
/// few survivors is found by counting ranks.
void solve_long_rows(const TopK& solver, const Rows<float>& rows);

/// n >= 8.
void solve_rows(const Argmax& solver, const Rows<float>& rows);

}  // namespace aimle::avx2
