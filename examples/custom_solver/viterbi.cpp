#include "viterbi.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chains {

template <class T>
aimle::Status solve_row(const Viterbi& solver, const T* x, const bool* mask, T* z) {
  constexpr T kNever = -std::numeric_limits<T>::infinity();
  const int64_t n = solver.labels;
  std::vector<T> best(static_cast<size_t>(n), T(0));
  std::vector<int64_t> from(static_cast<size_t>(solver.steps() * n));
  for (int64_t t = 0; t < solver.steps(); ++t) {
    std::vector<T> next(static_cast<size_t>(n), kNever);
    for (int64_t a = 0; a < n; ++a) {
      for (int64_t b = 0; b < n; ++b) {
        const int64_t entry = (t * n + a) * n + b;
        if (mask != nullptr && !mask[entry]) continue;
        if (std::isnan(x[entry])) return aimle::Status::kNaN;
        const T score = best[static_cast<size_t>(a)] + x[entry];
        if (score > next[static_cast<size_t>(b)]) {
          next[static_cast<size_t>(b)] = score;
          from[static_cast<size_t>(t * n + b)] = a;
        }
      }
    }
    best = std::move(next);
  }
  const auto last = std::max_element(best.begin(), best.end());
  if (*last == kNever) return aimle::Status::kDisconnected;
  std::fill_n(z, solver.size(), T(0));
  int64_t label = last - best.begin();
  for (int64_t t = solver.steps() - 1; t >= 0; --t) {
    const int64_t before = from[static_cast<size_t>(t * n + label)];
    z[(t * n + before) * n + label] = T(1);
    label = before;
  }
  return aimle::Status::kOk;
}

template <class T>
void solve_all(const Viterbi& solver, const aimle::Rows<T>& rows) {
  const int64_t size = solver.size();
  for (int64_t i = 0; i < rows.count; ++i) {
    T* z = rows.z + i * size;
    const bool* mask = rows.mask == nullptr ? nullptr : rows.mask + i * size;
    rows.status[i] = solve_row(solver, rows.scores + i * size, mask, z);
    if (rows.status[i] != aimle::Status::kOk) {
      std::fill_n(z, size, std::numeric_limits<T>::quiet_NaN());
    }
  }
}
void solve_rows(const Viterbi& solver, const aimle::Rows<float>& rows) { solve_all(solver, rows); }
void solve_rows(const Viterbi& solver, const aimle::Rows<double>& rows) { solve_all(solver, rows); }

AIMLE_REGISTER_SOLVER(Viterbi)

}  // namespace chains
