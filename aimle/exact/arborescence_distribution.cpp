#include "aimle/exact/arborescence_distribution.h"

#include <algorithm>
#include <vector>

#include "aimle/exact/arborescence_row.h"
#include "aimle/exact/define_distribution.h"
#include "aimle/exact/directed_network.h"
#include "aimle/exact/network.h"

namespace aimle {
namespace {

using detail::AllPairs;
using detail::DirectedNetwork;
using detail::Linear;
using detail::Logarithmic;
using exact_row::ArborescenceRow;
using exact_row::ArborescenceScratch;

/// One row after the other, in numbers of a type.
template <class Number>
class Evaluator {
 public:
  /// `weights` are the row's logits, which are converted.
  template <class T>
  void evaluate(const ArborescenceRow& row, double* weights, const DistributionRows<T>& rows,
                int64_t size, int64_t i) {
    detail::OneThread alone;
    exact_row::load_weights<Number>(alone, row, weights);
    if (rows.log_partition) {
      network_.load(row.n, weights);
      double sum = row.offset();
      while (network_.vertices() > 0) sum += Number::log(network_.eliminate_last());
      rows.log_partition[i] = static_cast<T>(sum);
    }
    if (!rows.marginals && !rows.covariance) return;
    T* mu = detail::row_of(rows.marginals, size, i);
    T* covariance = detail::row_of(rows.covariance, size, i);
    if (mu) std::fill_n(mu, size, T{0});
    if (covariance) std::fill_n(covariance, size, T{0});
    marginals(row.n, weights, detail::row_of(rows.v, size, i), mu, covariance);
  }

 private:
  template <class T>
  void marginals(int64_t n, const double* weights, const T* v, T* mu, T* covariance) {
    network_.load(n, weights);
    const auto weight = [&](int64_t h, int64_t d) { return weights[d * n + h]; };
    if (covariance) {
      network_.start_tangents();
      for (int64_t h = 0; h < n; ++h) {
        for (int64_t d = 0; d < n; ++d) {
          if (weight(h, d) == Number::zero()) continue;
          network_.t(h == d ? kRoot : h, d) = static_cast<double>(v[h * n + d]);
        }
      }
    }
    const auto write = [&](int64_t h, int64_t d, double whole, double of_whole) {
      if (weight(h, d) == Number::zero()) return;
      const int64_t e = h * n + d;
      const double p = std::min(Number::ratio(weight(h, d), whole), 1.0);
      if (mu) mu[e] = static_cast<T>(p);
      if (covariance) covariance[e] = static_cast<T>(p * (static_cast<double>(v[e]) - of_whole));
    };
    if (n == 1) return write(0, 0, network_.w(kRoot, 0), covariance ? network_.t(kRoot, 0) : 0);
    pairs_.run(network_, [&](int64_t i, int64_t j, DirectedNetwork<Number>& two) {
      pair(two, 1, 0, covariance != nullptr, [&](auto... whole) { write(i, j, whole...); });
      pair(two, 0, 1, covariance != nullptr, [&](auto... whole) { write(j, i, whole...); });
      root(two, 0, 1, covariance != nullptr, [&](auto... whole) { write(j, j, whole...); });
      root(two, 1, 0, covariance != nullptr, [&](auto... whole) { write(i, i, whole...); });
    });
  }

  static constexpr int64_t kRoot = DirectedNetwork<Number>::kRoot;

  /// A sum of positive numbers with its tangent.
  struct Sum {
    double value = Number::zero();
    double tangent = 0;

    void add(double term, double of_term) {
      if (term == Number::zero()) return;
      value = Number::add(value, term);
      tangent += Number::ratio(term, value) * (of_term - tangent);
    }
  };

  /// write(whole, d log whole) with mu_hd = w_hd / whole; not called if mu_hd is 0.
  template <class Write>
  void pair(DirectedNetwork<Number>& two, int64_t h, int64_t d, bool tangents, const Write& write) {
    if (two.w(kRoot, h) == Number::zero()) return;
    const auto t = [&](int64_t from, int64_t to) { return tangents ? two.t(from, to) : 0.0; };
    Sum whole;
    whole.add(two.w(kRoot, d), t(kRoot, d));
    whole.add(two.w(h, d), t(h, d));
    const double back = Number::divide(two.w(kRoot, d), two.w(kRoot, h));
    if (two.w(d, h) != Number::zero() && two.w(kRoot, d) != Number::zero()) {
      whole.add(Number::multiply(two.w(d, h), back), t(d, h) + t(kRoot, d) - t(kRoot, h));
    }
    write(whole.value, whole.tangent);
  }

  /// Likewise for root d.
  template <class Write>
  void root(DirectedNetwork<Number>& two, int64_t d, int64_t other, bool tangents,
            const Write& write) {
    const auto t = [&](int64_t from, int64_t to) { return tangents ? two.t(from, to) : 0.0; };
    Sum pivot;
    pivot.add(two.w(kRoot, other), t(kRoot, other));
    pivot.add(two.w(d, other), t(d, other));
    Sum whole;
    whole.add(two.w(kRoot, d), t(kRoot, d));
    if (two.w(kRoot, other) != Number::zero() && two.w(other, d) != Number::zero()) {
      whole.add(Number::multiply(two.w(kRoot, other), Number::divide(two.w(other, d), pivot.value)),
                t(kRoot, other) + t(other, d) - pivot.tangent);
    }
    write(whole.value, whole.tangent);
  }

  DirectedNetwork<Number> network_;
  AllPairs<DirectedNetwork<Number>> pairs_;
};

template <class T>
void evaluate_all(const Arborescence& solver, const DistributionRows<T>& rows) {
  const auto n = static_cast<int32_t>(solver.vertices);
  const int64_t size = solver.size();
  std::vector<double> x(static_cast<size_t>(size));
  std::vector<uint8_t> state(static_cast<size_t>(n));
  Evaluator<Linear> linear;
  Evaluator<Logarithmic> logarithmic;
  ArborescenceRow row{};
  detail::OneThread alone;
  detail::for_each_row(
      rows, size,
      [&](const T* scores, const bool* mask, int64_t) {
        row = exact_row::read_arborescence(alone, n, solver.single_root, scores, mask, x.data(),
                                           state.data());
        return row.status;
      },
      [&](int64_t i) {
        row.linear ? linear.evaluate(row, x.data(), rows, size, i)
                   : logarithmic.evaluate(row, x.data(), rows, size, i);
      });
}

template <class Number, class T>
void sample_row(const ArborescenceRow& row, const ArborescenceScratch& scratch,
                const SampleRows<T>& rows, int64_t i) {
  const int64_t size = int64_t{row.n} * row.n;
  detail::OneThread alone;
  exact_row::load_weights<Number>(alone, row, scratch.x);
  for (int64_t s = 0; s < rows.samples; ++s) {
    T* z = rows.z + (i * rows.samples + s) * size;
    std::fill_n(z, size, T{0});
    exact_row::sample_arborescence<Number>(alone, row.n, scratch, rows.key, rows.first + i, s, z);
  }
}

template <class T>
void sample_all(const Arborescence& solver, const SampleRows<T>& rows) {
  const auto n = static_cast<int32_t>(solver.vertices);
  std::vector<double> memory(static_cast<size_t>(ArborescenceScratch::doubles(n, false)));
  const ArborescenceScratch scratch = ArborescenceScratch::at(memory.data(), n, false);
  ArborescenceRow row{};
  detail::OneThread alone;
  detail::for_each_row(
      rows, solver.size(),
      [&](const T* scores, const bool* mask, int64_t) {
        row = exact_row::read_arborescence(alone, n, solver.single_root, scores, mask, scratch.x,
                                           scratch.state);
        return row.status;
      },
      [&](int64_t i) {
        row.linear ? sample_row<Linear>(row, scratch, rows, i)
                   : sample_row<Logarithmic>(row, scratch, rows, i);
      });
}

}  // namespace

AIMLE_DEFINE_DISTRIBUTION(Arborescence)

}  // namespace aimle
