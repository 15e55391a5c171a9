// The AVX2 kernels of SpanningTree: float32 rows without a mask, in both layouts.
//
// They take plain numbers so that their files, compiled for AVX2, instantiate nothing that the
// portable files use as well. Rows that these kernels do not handle (ties, NaN) are passed to
// `solve_one`, so results are those of the portable solver.
#pragma once

#include <cstdint>

#include "aimle/map/map.h"

namespace aimle::avx2 {

struct TreeRows {
  int64_t vertices;
  bool directed;
  int64_t count;
  const float* scores;  // [count, size]
  float* z;             // [count, size]
  Status* status;       // [count]

  void (*solve_one)(const TreeRows& rows, int64_t row);
};

/// Eight trees across the lanes, O(n^3 / 8) each. The bottleneck between two vertices is the
/// maximum, over all paths, of the smallest weight on the path; an edge is in the tree iff its
/// weight reaches the bottleneck between its ends. If more than n - 1 edges do, the row has
/// relevant ties. kMinClosureVertices <= vertices <= kMaxClosureVertices.
void solve_by_closure(const TreeRows& rows);
inline constexpr int64_t kMinClosureVertices = 5;
inline constexpr int64_t kMaxClosureVertices = 24;

/// Prim over rows of the full weight matrix, O(n^2 / 8); small graphs several at a time.
/// 2 <= vertices <= kMaxPrimVertices; `scratch` has `prim_scratch(vertices)` initial zeros.
void solve_by_prim(const TreeRows& rows, float* scratch);
int64_t prim_scratch(int64_t vertices);
inline constexpr int64_t kMaxPrimVertices = 2048;

}  // namespace aimle::avx2
