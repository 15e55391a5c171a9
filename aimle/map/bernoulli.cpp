#include "aimle/map/bernoulli.h"

#include "aimle/base/check.h"
#include "aimle/map/declaration.h"
#include "aimle/map/each_row.h"

namespace aimle {
namespace {

template <class T>
Status solve_row(int64_t n, const T* x, const bool* mask, T* z) {
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
  return nan == 0 ? Status::kOk : Status::kNaN;
}

template <class T>
void solve_all(const Bernoulli& solver, const Rows<T>& rows) {
  const int64_t n = solver.n;
  detail::solve_each_row(rows, n, [&](const T* x, const bool* mask, T* z, int64_t) {
    return solve_row(n, x, mask, z);
  });
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
