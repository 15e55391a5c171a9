// A user's solver, in another namespace, works in the estimators like a built-in one.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/estimate/cases.h"

namespace elsewhere {

/// The k largest scores, as a stranger would write it: by sorting.
struct Largest {
  static constexpr std::string_view kName = "largest";
  static constexpr aimle::Sense kSense = aimle::Sense::kMax;

  int64_t n = 0;
  int64_t k = 0;

  int64_t size() const { return n; }
  double work_ns() const { return 100.0; }
  aimle::SolutionSize solution_size() const { return {.fixed = true, .ones = k}; }
  void validate() const {}
};

template <class T>
void solve_each(const Largest& solver, const aimle::Rows<T>& rows) {
  std::vector<int64_t> order(static_cast<size_t>(solver.n));
  for (int64_t row = 0; row < rows.count; ++row) {
    const T* x = rows.scores + row * solver.n;
    T* z = rows.z + row * solver.n;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return x[a] > x[b]; });
    std::fill_n(z, solver.n, T(0));
    for (int64_t i = 0; i < solver.k; ++i) z[order[static_cast<size_t>(i)]] = T(1);
    rows.status[row] = aimle::Status::kOk;
  }
}
void solve_rows(const Largest& solver, const aimle::Rows<float>& rows) { solve_each(solver, rows); }
void solve_rows(const Largest& solver, const aimle::Rows<double>& rows) {
  solve_each(solver, rows);
}

}  // namespace elsewhere

namespace aimle::cases {
namespace {

TEST(OwnSolver, HasTheBitsOfOurs) {
  int64_t compared = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Rng rng(seed);
    auto call = draw_case<float>(rng, 4, 3, 24);
    const auto* topk = call.solver.get_if<TopK>();
    const bool finite =
        std::all_of(call.theta.begin(), call.theta.end(), [](float x) { return std::isfinite(x); });
    if (topk == nullptr || !finite || call.mask.size() != 0 || !call.k.empty()) continue;
    const auto expected = run_fused(call);
    call.solver = elsewhere::Largest{.n = topk->n, .k = topk->k};
    expect_same(run_fused(call), expected, "seed " + std::to_string(seed) + ": " + call.text());
    if (HasFatalFailure()) return;
    ++compared;
  }
  EXPECT_GT(compared, 50);
}

TEST(OwnSolver, SaysWhatItCannotDo) {
  const Solver solver = elsewhere::Largest{.n = 3, .k = 1};
  EXPECT_EQ(solver.name(), "largest");
  EXPECT_FALSE(solver.is<TopK>());
  EXPECT_THROW(solver.structures(), std::invalid_argument);
}

}  // namespace
}  // namespace aimle::cases
