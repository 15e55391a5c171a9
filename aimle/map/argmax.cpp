#include "aimle/map/argmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "aimle/base/check.h"
#include "aimle/base/isa.h"
#include "aimle/map/declaration.h"
#include "aimle/map/each_row.h"
#include "aimle/map/topk_avx2.h"

namespace aimle {
namespace {

template <class T>
Status solve_row(int64_t n, const T* scores, const bool* mask, T* z) {
  int64_t best = -1;
  T best_score = -std::numeric_limits<T>::infinity();
  for (int64_t j = 0; j < n; ++j) {
    if (mask != nullptr && !mask[j]) continue;
    if (std::isnan(scores[j])) return Status::kNaN;
    if (scores[j] > best_score) {
      best = j;
      best_score = scores[j];
    }
  }
  if (best < 0) return Status::kTooFewEntries;
  std::fill_n(z, n, T(0));
  z[best] = T(1);
  return Status::kOk;
}

template <class T>
void solve_portable(const Argmax& solver, const Rows<T>& rows) {
  const int64_t n = solver.n;
  detail::solve_each_row(rows, n, [&](const T* scores, const bool* mask, T* z, int64_t) {
    return solve_row(n, scores, mask, z);
  });
}

}  // namespace

void Argmax::validate() const {
  AIMLE_CHECK(n >= 1, "[aimle::argmax] expected n >= 1 but got n=", n);
}

void Argmax::declare(Declaration<Argmax>& solver) { solver.summary = "the largest score"; }

void solve_rows(const Argmax& solver, const Rows<float>& rows) {
  if constexpr (kBuiltWithAvx2) {
    if (isa() >= Isa::kAvx2 && solver.n >= 8) return avx2::solve_rows(solver, rows);
  }
  solve_portable(solver, rows);
}

void solve_rows(const Argmax& solver, const Rows<double>& rows) { solve_portable(solver, rows); }

}  // namespace aimle
