#include "aimle/map/bernoulli.h"

#include <algorithm>
#include <limits>

#include "aimle/base/check.h"
#include "aimle/map/declaration.h"

namespace aimle {
namespace {

template <class T>
bool solve_row(int64_t n, const T* x, const bool* mask, T* z) {
  T nan = 0;
  if (mask == nullptr) {
    for (int64_t j = 0; j < n; ++j) {
      z[j] = x[j] > T(0) ? T(1) : T(0);
      nan += x[j] != x[j] ? T(1) : T(0);
    }
  } else {
    for (int64_t j = 0; j < n; ++j) {
      z[j] = mask[j] && x[j] > T(0) ? T(1) : T(0);
      nan += mask[j] && x[j] != x[j] ? T(1) : T(0);
    }
  }
  return nan == 0;
}

template <class T>
void solve_all(const Bernoulli& solver, const Rows<T>& rows) {
  const int64_t n = solver.n;
  for (int64_t i = 0; i < rows.count; ++i) {
    T* const z = rows.z + i * n;
    const bool numbers =
        solve_row(n, rows.scores + i * n, rows.mask ? rows.mask + i * n : nullptr, z);
    rows.status[i] = numbers ? Status::kOk : Status::kNaN;
    if (!numbers) std::fill_n(z, n, std::numeric_limits<T>::quiet_NaN());
  }
}

}  // namespace

void Bernoulli::validate() const {
  AIMLE_CHECK(n >= 0, "[aimle::bernoulli] expected n >= 0 but got n=", n);
}

void Bernoulli::declare(Declaration<Bernoulli>& solver) {
  solver.summary = "every entry whose score is above zero";
  solver.ties = "a score of zero is off";
  solver.noise = "logistic";
}

void solve_rows(const Bernoulli& solver, const Rows<float>& rows) { solve_all(solver, rows); }
void solve_rows(const Bernoulli& solver, const Rows<double>& rows) { solve_all(solver, rows); }

}  // namespace aimle
