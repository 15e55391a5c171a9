#include "aimle/exact/knapsack_distribution.h"

#include <cmath>
#include <vector>

#include "aimle/exact/log_domain.h"
#include "aimle/exact/uniform.h"
#include "aimle/map/knapsack_items.h"

namespace aimle {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// One instance: its items and their scores.
struct Problem {
  detail::KnapsackItems items;
  std::vector<double> x;
  bool linear = true;

  int64_t count() const { return items.count(); }
  int64_t line() const { return items.capacity + 1; }
  int64_t weight(int64_t i) const { return items.weight[static_cast<size_t>(i)]; }
  int64_t entry(int64_t i) const { return items.index[static_cast<size_t>(i)]; }

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
    if ((count() + 1) * line() > kMaxKnapsackCells) return Status::kTooLarge;
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

/// B_j(c) of all items and capacities, as numbers of type N.
template <class N>
class Table {
 public:
  explicit Table(const Problem& problem) : problem_(problem) {
    const int64_t count = problem.count(), line = problem.line();
    b_.resize(static_cast<size_t>((count + 1) * line));
    std::fill_n(row(count), line, N::from_log(0.0));
    for (int64_t i = count; i-- > 0;) {
      const int64_t weight = problem.weight(i);
      const double e = N::from_log(problem.x[static_cast<size_t>(i)]);
      const double* after = row(i + 1);
      double* here = row(i);
      std::copy_n(after, std::min(weight, line), here);
      for (int64_t c = weight; c < line; ++c) {
        here[c] = N::add(after[c], N::multiply(e, after[c - weight]));
      }
    }
  }

  double log_partition() const { return N::log(row(0)[problem_.items.capacity]); }
  /// The probabilities of item i, with capacity c left.
  double out(int64_t i, int64_t c) const { return N::ratio(row(i + 1)[c], row(i)[c]); }
  double in(int64_t i, int64_t c) const {
    const int64_t weight = problem_.weight(i);
    if (weight > c) return 0.0;
    const double e = N::from_log(problem_.x[static_cast<size_t>(i)]);
    return N::ratio(N::multiply(e, row(i + 1)[c - weight]), row(i)[c]);
  }

 private:
  double* row(int64_t i) { return b_.data() + i * problem_.line(); }
  const double* row(int64_t i) const { return b_.data() + i * problem_.line(); }

  const Problem& problem_;
  std::vector<double> b_;
};

/// The pass over the items: marginals and, if v is not empty, Cov(z) v.
template <class N>
class Walk {
 public:
  Walk(const Problem& problem, const Table<N>& table, std::vector<double> v)
      : problem_(problem), table_(table), v_(std::move(v)) {
    if (!v_.empty()) fill_means();
    walk();
  }

  std::vector<double> marginals, covariance;

 private:
  /// mean_[i][c]: E <z, v> over the items i, i+1, ..., with c left.
  void fill_means() {
    const int64_t line = problem_.line();
    mean_.assign(static_cast<size_t>((problem_.count() + 1) * line), 0.0);
    for (int64_t i = problem_.count(); i-- > 0;) {
      const double* after = mean_.data() + (i + 1) * line;
      double* here = mean_.data() + i * line;
      const int64_t weight = problem_.weight(i);
      for (int64_t c = 0; c < line; ++c) {
        here[c] = table_.out(i, c) * after[c];
        if (c >= weight) {
          here[c] += table_.in(i, c) * (v_[static_cast<size_t>(i)] + after[c - weight]);
        }
      }
    }
  }

  void walk() {
    const int64_t count = problem_.count(), line = problem_.line();
    std::vector<double> p(static_cast<size_t>(line)), carried(static_cast<size_t>(line));
    std::vector<double> next(p.size()), next_carried(p.size());
    p.back() = 1.0;
    const double mean = v_.empty() ? 0.0 : mean_[static_cast<size_t>(line - 1)];
    for (int64_t i = 0; i < count; ++i) {
      const int64_t weight = problem_.weight(i);
      const double v = v_.empty() ? 0.0 : v_[static_cast<size_t>(i)];
      const double* after = v_.empty() ? nullptr : mean_.data() + (i + 1) * line;
      std::fill(next.begin(), next.end(), 0.0);
      std::fill(next_carried.begin(), next_carried.end(), 0.0);
      double taken = 0.0, product = 0.0;
      for (int64_t c = 0; c < line; ++c) {
        const auto at = static_cast<size_t>(c);
        if (p[at] == 0.0) continue;
        const double out = table_.out(i, c), in = table_.in(i, c);
        next[at] += p[at] * out;
        next_carried[at] += carried[at] * out;
        if (in == 0.0) continue;
        const auto left = static_cast<size_t>(c - weight);
        const double with = (carried[at] + p[at] * v) * in;
        taken += p[at] * in;
        if (after != nullptr) product += with + p[at] * in * (after[left] - mean);
        next[left] += p[at] * in;
        next_carried[left] += with;
      }
      marginals.push_back(taken);
      covariance.push_back(product);
      std::swap(p, next);
      std::swap(carried, next_carried);
    }
  }

  const Problem& problem_;
  const Table<N>& table_;
  std::vector<double> v_;
  std::vector<double> mean_;
};

template <class N, class T>
void evaluate_problem(const Problem& problem, const Knapsack& solver,
                      const DistributionRows<T>& rows, int64_t i) {
  const Table<N> table(problem);
  if (rows.log_partition) rows.log_partition[i] = static_cast<T>(table.log_partition());
  if (!rows.marginals && !rows.covariance) return;
  const int64_t at = i * solver.n;
  std::vector<double> v;
  for (const int64_t j : problem.items.index) {
    if (rows.covariance) v.push_back(static_cast<double>(rows.v[at + j]));
  }
  const Walk<N> walk(problem, table, std::move(v));
  const auto write = [&](const std::vector<double>& values, T* out) {
    if (out == nullptr) return;
    std::fill_n(out + at, solver.n, T(0));
    for (size_t item = 0; item < values.size(); ++item) {
      out[at + problem.items.index[item]] = static_cast<T>(values[item]);
    }
  };
  write(walk.marginals, rows.marginals);
  write(walk.covariance, rows.covariance);
}

template <class N, class T>
void sample_problem(const Problem& problem, const Knapsack& solver, const SampleRows<T>& rows,
                    int64_t i) {
  const Table<N> table(problem);
  for (int64_t s = 0; s < rows.samples; ++s) {
    T* z = rows.z + (i * rows.samples + s) * solver.n;
    std::fill_n(z, solver.n, T(0));
    int64_t left = problem.items.capacity;
    for (int64_t item = 0; item < problem.count(); ++item) {
      const int64_t entry = problem.entry(item);
      if (uniform(rows.key, rows.first + i, s, entry) >= table.in(item, left)) continue;
      z[entry] = T(1);
      left -= problem.weight(item);
    }
  }
}

/// Calls body(N{}) for the kind of numbers that suits the problem.
template <class Body>
void in_its_numbers(const Problem& problem, Body body) {
  if (problem.linear) {
    body(detail::Linear{});
  } else {
    body(detail::Logarithmic{});
  }
}

template <class Rows, class Body>
void for_each_problem(const Knapsack& solver, const Rows& rows, Body body) {
  Problem problem;
  detail::for_each_row(
      rows, solver.n,
      [&](const auto* scores, const bool* mask, int64_t i) {
        return problem.read(solver, scores, mask, rows.data.of(i));
      },
      [&](int64_t i) {
        in_its_numbers(problem, [&](auto numbers) { body(numbers, problem, i); });
      });
}

template <class T>
void evaluate_all(const Knapsack& solver, const DistributionRows<T>& rows) {
  for_each_problem(solver, rows, [&](auto numbers, const Problem& problem, int64_t i) {
    evaluate_problem<decltype(numbers)>(problem, solver, rows, i);
  });
}

template <class T>
void sample_all(const Knapsack& solver, const SampleRows<T>& rows) {
  for_each_problem(solver, rows, [&](auto numbers, const Problem& problem, int64_t i) {
    sample_problem<decltype(numbers)>(problem, solver, rows, i);
  });
}

}  // namespace

void evaluate_rows(const Knapsack& solver, const DistributionRows<float>& rows) {
  evaluate_all(solver, rows);
}
void evaluate_rows(const Knapsack& solver, const DistributionRows<double>& rows) {
  evaluate_all(solver, rows);
}
void sample_rows(const Knapsack& solver, const SampleRows<float>& rows) {
  sample_all(solver, rows);
}
void sample_rows(const Knapsack& solver, const SampleRows<double>& rows) {
  sample_all(solver, rows);
}

}  // namespace aimle
