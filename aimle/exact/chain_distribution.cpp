#include "aimle/exact/chain_distribution.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "aimle/exact/chain_sums.h"

namespace aimle {
namespace {

template <class Number>
void fill_backward(const Weights& weights, Sums& backward) {
  const int64_t labels = weights.labels;
  backward.start<Number>(weights.steps);
  for (int64_t t = weights.steps - 1; t >= 0; --t) {
    const double* const after = backward.at(t + 1);
    double* const before = backward.at(t);
    if constexpr (std::is_same_v<Number, Linear>) {
      weights.loops.backward(labels, weights.step(t), after, before);
    } else {
      for (int64_t i = 0; i < labels; ++i) {
        const double* const row = weights.step(t) + i * labels;
        before[i] = log_sum(labels, [&](int64_t j) { return row[j] + after[j]; });
      }
    }
    backward.normalise<Number>(t);
  }
}

template <class Number>
double log_partition_of(const Weights& weights, const Sums& forward) {
  double result = weights.log_scale;
  for (int64_t t = 1; t <= weights.steps; ++t) {
    result += Number::log(forward.scale[static_cast<size_t>(t)]);
  }
  double sum = Number::zero();
  const double* const last = forward.at(weights.steps);
  for (int64_t j = 0; j < weights.labels; ++j) sum = Number::add(sum, last[j]);
  return result + Number::log(sum);
}

class Evaluator {
 public:
  explicit Evaluator(const Chain& solver)
      : size_(solver.size()), weights_(solver), forward_(solver), backward_(solver) {}

  template <class T>
  void evaluate(const DistributionRows<T>& rows) {
    for_each_chain(rows, size_, weights_, forward_,
                   [&]<class Number>(Number, int64_t row) { evaluate_in<Number>(rows, row); });
  }

 private:
  template <class Number, class T>
  void evaluate_in(const DistributionRows<T>& rows, int64_t row) {
    // A chain of length 1 has no edge: it has one structure.
    const bool empty = weights_.steps == 0;
    if (rows.log_partition) {
      rows.log_partition[row] =
          empty ? T(0) : static_cast<T>(log_partition_of<Number>(weights_, forward_));
    }
    if (!rows.marginals && !rows.covariance) return;
    fill_backward<Number>(weights_, backward_);
    mu_.resize(static_cast<size_t>(size_));
    for (int64_t t = 0; t < weights_.steps; ++t) fill_marginals<Number>(t);
    if (rows.marginals) {
      T* const out = rows.marginals + row * size_;
      const int64_t entries = weights_.steps * weights_.edges;
      for (int64_t j = 0; j < entries; ++j) out[j] = static_cast<T>(mu_[static_cast<size_t>(j)]);
      std::fill(out + entries, out + size_, T{0});
    }
    if (rows.covariance) {
      write_covariance<Number>(rows.v + row * size_, rows.covariance + row * size_);
    }
  }

  /// For step t: F w B, divided by their sum.
  template <class Number>
  void fill_marginals(int64_t t) {
    const int64_t labels = weights_.labels;
    const double* const w = weights_.step(t);
    const double* const before = forward_.at(t);
    const double* const behind = backward_.at(t + 1);
    double* const mu = mu_.data() + t * weights_.edges;
    double sum = 0;
    if constexpr (std::is_same_v<Number, Linear>) {
      // Sum over i of F_t(i) B_t(i), B_t as it was before its division.
      for (int64_t i = 0; i < labels; ++i) sum += before[i] * backward_.at(t)[i];
      sum *= backward_.scale[static_cast<size_t>(t)];
      for (int64_t i = 0, e = 0; i < labels; ++i) {
        const double first = before[i] / sum;
        for (int64_t j = 0; j < labels; ++j, ++e) mu[e] = first * w[e] * behind[j];
      }
    } else {
      // Relative to the largest: rounding can change all logarithms by the same large number.
      double most = -kInf;
      for (int64_t i = 0, e = 0; i < labels; ++i) {
        for (int64_t j = 0; j < labels; ++j, ++e) {
          mu[e] = before[i] + w[e] + behind[j];
          most = std::max(most, mu[e]);
        }
      }
      for (int64_t e = 0; e < weights_.edges; ++e) sum += mu[e] = std::exp(mu[e] - most);
      for (int64_t e = 0; e < weights_.edges; ++e) mu[e] /= sum;
    }
  }

  /// v minus its mean at every step; 0 where there is no edge.
  template <class Number, class T>
  void centre(const T* v) {
    centred_.resize(static_cast<size_t>(size_));
    for (int64_t t = 0; t < weights_.steps; ++t) {
      const double* const w = weights_.step(t);
      const double* const mu = mu_.data() + t * weights_.edges;
      double* const centred = centred_.data() + t * weights_.edges;
      double mean = 0, total = 0;
      for (int64_t e = 0; e < weights_.edges; ++e) {
        centred[e] = w[e] > Number::zero() ? static_cast<double>(v[t * weights_.edges + e]) : 0.0;
        mean += mu[e] * centred[e];
        total += mu[e];
      }
      mean /= total;
      for (int64_t e = 0; e < weights_.edges; ++e) {
        if (w[e] > Number::zero()) centred[e] -= mean;
      }
    }
  }

  /// The mean of value(i) under `weight`, a Number; 0 if all weights are zero.
  template <class Number, class Weight, class Value>
  double mean_of(const Weight& weight, const Value& value) const {
    double most = Number::zero();
    for (int64_t i = 0; i < weights_.labels; ++i) most = std::max(most, weight(i));
    if (!(most > Number::zero())) return 0;
    double sum = 0, total = 0;
    for (int64_t i = 0; i < weights_.labels; ++i) {
      const double p = Number::ratio(weight(i), most);
      sum += p * value(i);
      total += p;
    }
    return sum / total;
  }

  /// f_t+1(j) = sum over i of p(i before j) (f_t(i) + v_tij), [steps + 1, labels].
  template <class Number>
  void fill_before() {
    const int64_t labels = weights_.labels;
    before_.assign(static_cast<size_t>((weights_.steps + 1) * labels), 0.0);
    for (int64_t t = 0; t < weights_.steps; ++t) {
      const double* const from = before_.data() + t * labels;
      for (int64_t j = 0; j < labels; ++j) {
        const double* const w = weights_.step(t) + j;
        const double* const v = centred_.data() + t * weights_.edges + j;
        before_[static_cast<size_t>((t + 1) * labels + j)] = mean_of<Number>(
            [&](int64_t i) { return Number::multiply(forward_.at(t)[i], w[i * labels]); },
            [&](int64_t i) { return from[i] + v[i * labels]; });
      }
    }
  }

  /// b_t(i) = sum over j of p(j after i) (v_tij + b_t+1(j)), likewise.
  template <class Number>
  void fill_behind() {
    const int64_t labels = weights_.labels;
    behind_.assign(static_cast<size_t>((weights_.steps + 1) * labels), 0.0);
    for (int64_t t = weights_.steps - 1; t >= 0; --t) {
      const double* const to = behind_.data() + (t + 1) * labels;
      for (int64_t i = 0; i < labels; ++i) {
        const double* const w = weights_.step(t) + i * labels;
        const double* const v = centred_.data() + t * weights_.edges + i * labels;
        behind_[static_cast<size_t>(t * labels + i)] = mean_of<Number>(
            [&](int64_t j) { return Number::multiply(w[j], backward_.at(t + 1)[j]); },
            [&](int64_t j) { return v[j] + to[j]; });
      }
    }
  }

  template <class Number, class T>
  void write_covariance(const T* v, T* out) {
    centre<Number>(v);
    fill_before<Number>();
    fill_behind<Number>();
    const int64_t labels = weights_.labels;
    std::fill_n(out, size_, T{0});
    for (int64_t t = 0; t < weights_.steps; ++t) {
      for (int64_t e = 0; e < weights_.edges; ++e) {
        const auto at = static_cast<size_t>(t * weights_.edges + e);
        const double along = before_[static_cast<size_t>(t * labels + e / labels)] + centred_[at] +
                             behind_[static_cast<size_t>((t + 1) * labels + e % labels)];
        out[at] = static_cast<T>(mu_[at] * along);
      }
    }
  }

  int64_t size_;
  Weights weights_;
  Sums forward_, backward_;
  std::vector<double> mu_, centred_, before_, behind_;
};

template <class T>
void evaluate_all(const Chain& solver, const DistributionRows<T>& rows) {
  Evaluator(solver).evaluate(rows);
}

}  // namespace

void evaluate_rows(const Chain& solver, const DistributionRows<float>& rows) {
  evaluate_all(solver, rows);
}
void evaluate_rows(const Chain& solver, const DistributionRows<double>& rows) {
  evaluate_all(solver, rows);
}

}  // namespace aimle
