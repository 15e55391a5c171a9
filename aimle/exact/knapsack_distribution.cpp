#include "aimle/exact/knapsack_distribution.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "aimle/exact/define_distribution.h"
#include "aimle/exact/knapsack_row.h"
#include "aimle/map/knapsack_items.h"
#include "aimle/map/one_thread.h"

namespace aimle {
namespace {

using exact_row::KnapsackTables;
using Wanted = KnapsackTables::Wanted;

constexpr double kInf = std::numeric_limits<double>::infinity();

/// One instance: its items and their scores.
struct Problem {
  detail::KnapsackItems items;
  std::vector<double> x;
  bool linear = true;

  int64_t line() const { return items.capacity + 1; }

  template <class T>
  Status read(const Knapsack& solver, const T* scores, const bool* mask, const int64_t* data) {
    const auto allowed = [&](int64_t j) { return mask == nullptr || mask[j]; };
    for (int64_t j = 0; j < solver.n; ++j) {
      const auto score = static_cast<double>(scores[j]);
      if (allowed(j) && (std::isnan(score) || score == kInf)) return Status::kNaN;
    }
    const Status status = items.read(solver, data, [&](int64_t j) {
      return allowed(j) && static_cast<double>(scores[j]) > -kInf;
    });
    if (status != Status::kOk) return status;
    if ((items.count() + 1) * line() > kMaxKnapsackCells) return Status::kTooLarge;
    x.clear();
    double spread = 0;
    for (const int64_t j : items.index) {
      x.push_back(static_cast<double>(scores[j]));
      spread += std::abs(x.back());
    }
    linear = spread <= detail::kLinearSpread;
    return Status::kOk;
  }
};

/// Which entries the items are.
struct Entries {
  const int64_t* index;
  int64_t operator()(int64_t j) const { return index[j]; }
};

/// Calls body(sums, i) for every row i, by numbers of the kind that suits it.
template <class Rows, class Body>
void for_each_problem(const Knapsack& solver, const Rows& rows, KnapsackTables::Wanted wanted,
                      const Body& body) {
  Problem problem;
  std::vector<double> memory;
  detail::for_each_row(
      rows, solver.n,
      [&](const auto* scores, const bool* mask, int64_t i) {
        return problem.read(solver, scores, mask, rows.data.of(i));
      },
      [&](int64_t i) {
        const int64_t n = problem.items.count(), line = problem.line();
        memory.resize(static_cast<size_t>(KnapsackTables::doubles(n, line, wanted)));
        const KnapsackTables tables = KnapsackTables::at(memory.data(), n, line);
        std::copy(problem.x.begin(), problem.x.end(), tables.x);
        std::copy(problem.items.weight.begin(), problem.items.weight.end(), tables.weight);
        exact_row::in_its_numbers({.status = Status::kOk,
                                   .entries = solver.n,
                                   .n = n,
                                   .capacity = problem.items.capacity,
                                   .linear = problem.linear},
                                  tables, Entries{problem.items.index.data()},
                                  [&](const auto& sums) { body(sums, i); });
      });
}

/// A function of its own: inlined into callers, the compiler does not always vectorise its loops.
template <class Sums>
[[gnu::noinline]] void fill(const Sums& sums) {
  detail::OneThread alone;
  sums.fill(alone);
}

template <class T>
void evaluate_all(const Knapsack& solver, const DistributionRows<T>& rows) {
  const int64_t size = solver.n;
  const Wanted wanted = rows.covariance  ? Wanted::kCovariance
                        : rows.marginals ? Wanted::kMarginals
                                         : Wanted::kSums;
  for_each_problem(solver, rows, wanted, [&](const auto& sums, int64_t i) {
    detail::OneThread alone;
    fill(sums);
    if (rows.log_partition) rows.log_partition[i] = static_cast<T>(sums.log_partition());
    if (wanted == Wanted::kSums) return;
    T* mu = detail::row_of(rows.marginals, size, i);
    T* covariance = detail::row_of(rows.covariance, size, i);
    const T* v = covariance ? rows.v + i * size : nullptr;
    if (mu) std::fill_n(mu, size, T(0));
    if (covariance) std::fill_n(covariance, size, T(0));
    if (v) sums.fill_means(alone, v);
    sums.walk(alone, v, mu, covariance);
  });
}

template <class T>
void sample_all(const Knapsack& solver, const SampleRows<T>& rows) {
  for_each_problem(solver, rows, Wanted::kSums, [&](const auto& sums, int64_t i) {
    detail::OneThread alone;
    T* z = rows.z + i * rows.samples * solver.n;
    std::fill_n(z, rows.samples * solver.n, T(0));
    fill(sums);
    sums.sample(alone, rows.key, rows.first + i, rows.samples, z);
  });
}

}  // namespace

AIMLE_DEFINE_DISTRIBUTION(Knapsack)

}  // namespace aimle
