#include "aimle/exact/chain_distribution.h"

#include <cmath>
#include <vector>

#include "aimle/base/check.h"
#include "aimle/exact/enumerate.h"
#include "aimle/exact/log_domain.h"
#include "aimle/exact/uniform.h"

namespace aimle {
namespace {

using detail::Linear;
using detail::Logarithmic;

constexpr double kInf = std::numeric_limits<double>::infinity();

// Sums as they are lie within exp(+-spread) of each other: that of one step where every edge may be
// chosen, that of all steps together otherwise. Three factors meet in a marginal.
constexpr double kStepSpread = 200;
constexpr double kRowSpread = 600;

/// One row's scores, less the largest of their step, and what is known of them.
struct Weights {
  int64_t labels = 0;
  int64_t edges = 0;      // per step
  int64_t all_steps = 0;  // of the row
  int64_t steps = 0;      // up to the chain's end
  std::vector<double> w;  // by their logarithms until `exponentiate`
  double log_scale = 0;   // the sum of the largest
  bool linear = false;

  explicit Weights(const Chain& solver)
      : labels(solver.labels),
        edges(solver.edges_per_step()),
        all_steps(solver.steps()),
        w(static_cast<size_t>(solver.size())) {}

  double* step(int64_t t) { return w.data() + t * edges; }
  const double* step(int64_t t) const { return w.data() + t * edges; }

  template <class T>
  Status read(const T* scores, const bool* mask) {
    steps = chain_steps(all_steps, edges, mask);
    bool bad = false;
    for (int64_t j = 0; j < steps * edges; ++j) {
      const double x = mask == nullptr || mask[j] ? static_cast<double>(scores[j]) : -kInf;
      bad |= !(x < kInf);
      w[static_cast<size_t>(j)] = x;
    }
    if (bad) return Status::kNaN;
    log_scale = 0;
    double sum_of_spreads = 0;
    bool dense = true;
    for (int64_t t = 0; t < steps; ++t) {
      double* const x = step(t);
      double largest = -kInf, least = kInf;
      bool all = true;
      for (int64_t e = 0; e < edges; ++e) {
        const bool none = x[e] == -kInf;
        largest = x[e] > largest ? x[e] : largest;
        least = !none && x[e] < least ? x[e] : least;
        all &= !none;
      }
      if (largest == -kInf) return Status::kDisconnected;
      for (int64_t e = 0; e < edges; ++e) x[e] -= largest;
      log_scale += largest;
      sum_of_spreads += largest - least;
      dense &= all && largest - least <= kStepSpread;
    }
    linear = dense || sum_of_spreads <= kRowSpread;
    return Status::kOk;
  }

  template <class Number>
  void exponentiate() {
    if constexpr (std::is_same_v<Number, Linear>) {
      for (int64_t j = 0; j < steps * edges; ++j) {
        w[static_cast<size_t>(j)] = std::exp(w[static_cast<size_t>(j)]);
      }
    }
  }
};

/// Sums of every position, [steps + 1, labels], divided by the largest of their position.
struct Sums {
  int64_t labels;
  std::vector<double> sum;
  std::vector<double> scale;  // [steps + 1], what they were divided by

  explicit Sums(const Chain& solver)
      : labels(solver.labels),
        sum(static_cast<size_t>(solver.length * solver.labels)),
        scale(static_cast<size_t>(solver.length)) {}

  double* at(int64_t t) { return sum.data() + t * labels; }
  const double* at(int64_t t) const { return sum.data() + t * labels; }

  template <class Number>
  void start(int64_t t) {
    std::fill_n(at(t), labels, Number::from_log(0));
    scale[static_cast<size_t>(t)] = Number::from_log(0);
  }

  /// False if all sums are zero.
  template <class Number>
  bool normalise(int64_t t) {
    double* const now = at(t);
    const double largest = *std::max_element(now, now + labels);
    scale[static_cast<size_t>(t)] = largest;
    if (largest == Number::zero()) return false;
    for (int64_t i = 0; i < labels; ++i) now[i] = Number::divide(now[i], largest);
    return true;
  }
};

/// False if there is no sequence.
template <class Number>
bool fill_forward(const Weights& weights, Sums& forward) {
  const int64_t labels = weights.labels;
  forward.start<Number>(0);
  for (int64_t t = 0; t < weights.steps; ++t) {
    const double* const before = forward.at(t);
    double* const after = forward.at(t + 1);
    std::fill_n(after, labels, Number::zero());
    for (int64_t i = 0; i < labels; ++i) {
      const double* const w = weights.step(t) + i * labels;
      for (int64_t j = 0; j < labels; ++j) {
        after[j] = Number::add(after[j], Number::multiply(before[i], w[j]));
      }
    }
    if (!forward.normalise<Number>(t + 1)) return false;
  }
  return true;
}

template <class Number>
void fill_backward(const Weights& weights, Sums& backward) {
  const int64_t labels = weights.labels;
  backward.start<Number>(weights.steps);
  for (int64_t t = weights.steps - 1; t >= 0; --t) {
    const double* const after = backward.at(t + 1);
    double* const before = backward.at(t);
    for (int64_t i = 0; i < labels; ++i) {
      const double* const w = weights.step(t) + i * labels;
      double sum = Number::zero();
      for (int64_t j = 0; j < labels; ++j) sum = Number::add(sum, Number::multiply(w[j], after[j]));
      before[i] = sum;
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
  void evaluate(const DistributionRows<T>& rows, int64_t row) {
    const int64_t at = row * size_;
    const Status status = weights_.read(rows.scores + at, rows.mask ? rows.mask + at : nullptr);
    if (status != Status::kOk) return detail::refuse(rows, size_, row, status);
    rows.status[row] = status;
    weights_.linear ? evaluate_in<Linear>(rows, row) : evaluate_in<Logarithmic>(rows, row);
  }

 private:
  template <class Number, class T>
  void evaluate_in(const DistributionRows<T>& rows, int64_t row) {
    weights_.exponentiate<Number>();
    if (!fill_forward<Number>(weights_, forward_)) {
      return detail::refuse(rows, size_, row, Status::kDisconnected);
    }
    // A chain of length 1 has no edge: one structure, whatever its label.
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

  /// Of step t: F w B, divided by their sum.
  template <class Number>
  void fill_marginals(int64_t t) {
    const int64_t labels = weights_.labels;
    const double* const before = forward_.at(t);
    const double* const behind = backward_.at(t + 1);
    // Sum over i of F_t(i) B_t(i), B_t as it was before its division.
    double sum = Number::zero();
    for (int64_t i = 0; i < labels; ++i) {
      sum = Number::add(sum, Number::multiply(before[i], backward_.at(t)[i]));
    }
    sum = Number::multiply(sum, backward_.scale[static_cast<size_t>(t)]);
    for (int64_t i = 0; i < labels; ++i) {
      const double* const w = weights_.step(t) + i * labels;
      double* const mu = mu_.data() + t * weights_.edges + i * labels;
      const double first = Number::divide(before[i], sum);
      for (int64_t j = 0; j < labels; ++j) {
        mu[j] =
            Number::ratio(Number::multiply(Number::multiply(first, w[j]), behind[j]), kOne<Number>);
      }
    }
  }

  template <class Number>
  static constexpr double kOne = std::is_same_v<Number, Linear> ? 1.0 : 0.0;

  /// v less its mean at every step; 0 where there is no edge.
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

  /// f_t+1(j) = sum over i of p(i before j) (f_t(i) + v_tij), [steps + 1, labels].
  template <class Number>
  void fill_before() {
    const int64_t labels = weights_.labels;
    before_.assign(static_cast<size_t>((weights_.steps + 1) * labels), 0.0);
    for (int64_t t = 0; t < weights_.steps; ++t) {
      const double scale = forward_.scale[static_cast<size_t>(t + 1)];
      for (int64_t j = 0; j < labels; ++j) {
        const double sum = Number::multiply(forward_.at(t + 1)[j], scale);
        if (!(sum > Number::zero())) continue;
        double mean = 0;
        for (int64_t i = 0; i < labels; ++i) {
          const int64_t e = i * labels + j;
          const double p =
              Number::ratio(Number::multiply(forward_.at(t)[i], weights_.step(t)[e]), sum);
          mean += p * (before_[static_cast<size_t>(t * labels + i)] +
                       centred_[static_cast<size_t>(t * weights_.edges + e)]);
        }
        before_[static_cast<size_t>((t + 1) * labels + j)] = mean;
      }
    }
  }

  /// b_t(i) = sum over j of p(j behind i) (v_tij + b_t+1(j)), likewise.
  template <class Number>
  void fill_behind() {
    const int64_t labels = weights_.labels;
    behind_.assign(static_cast<size_t>((weights_.steps + 1) * labels), 0.0);
    for (int64_t t = weights_.steps - 1; t >= 0; --t) {
      const double scale = backward_.scale[static_cast<size_t>(t)];
      for (int64_t i = 0; i < labels; ++i) {
        const double sum = Number::multiply(backward_.at(t)[i], scale);
        if (!(sum > Number::zero())) continue;
        double mean = 0;
        for (int64_t j = 0; j < labels; ++j) {
          const int64_t e = i * labels + j;
          const double p =
              Number::ratio(Number::multiply(weights_.step(t)[e], backward_.at(t + 1)[j]), sum);
          mean += p * (behind_[static_cast<size_t>((t + 1) * labels + j)] +
                       centred_[static_cast<size_t>(t * weights_.edges + e)]);
        }
        behind_[static_cast<size_t>(t * labels + i)] = mean;
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

class Sampler {
 public:
  explicit Sampler(const Chain& solver)
      : size_(solver.size()), weights_(solver), forward_(solver) {}

  template <class T>
  void sample(const SampleRows<T>& rows, int64_t row) {
    const int64_t at = row * size_;
    const Status status = weights_.read(rows.scores + at, rows.mask ? rows.mask + at : nullptr);
    if (status != Status::kOk) return detail::refuse(rows, size_, row, status);
    rows.status[row] = status;
    weights_.linear ? sample_in<Linear>(rows, row) : sample_in<Logarithmic>(rows, row);
  }

 private:
  template <class Number, class T>
  void sample_in(const SampleRows<T>& rows, int64_t row) {
    weights_.exponentiate<Number>();
    if (!fill_forward<Number>(weights_, forward_)) {
      return detail::refuse(rows, size_, row, Status::kDisconnected);
    }
    const int64_t labels = weights_.labels, steps = weights_.steps;
    for (int64_t s = 0; s < rows.samples; ++s) {
      T* const z = rows.z + (row * rows.samples + s) * size_;
      std::fill_n(z, size_, T{0});
      if (steps == 0) continue;
      const auto number = [&](int64_t t) { return uniform(rows.key, rows.first + row, s, t); };
      const double* const last = forward_.at(steps);
      double sum = 0;
      for (int64_t j = 0; j < labels; ++j) sum += Number::ratio(last[j], kOne<Number>);
      int64_t label = pick(number(steps) * sum,
                           [&](int64_t j) { return Number::ratio(last[j], kOne<Number>); });
      for (int64_t t = steps - 1; t >= 0; --t) {
        const double total =
            Number::multiply(forward_.at(t + 1)[label], forward_.scale[static_cast<size_t>(t + 1)]);
        const int64_t before = pick(number(t), [&](int64_t i) {
          const double w = weights_.step(t)[i * labels + label];
          return Number::ratio(Number::multiply(forward_.at(t)[i], w), total);
        });
        z[t * weights_.edges + before * labels + label] = T(1);
        label = before;
      }
    }
  }

  template <class Number>
  static constexpr double kOne = std::is_same_v<Number, Linear> ? 1.0 : 0.0;

  /// The label at which the sum of the weights exceeds `wanted`; the last of any weight, should
  /// rounding leave the sum short.
  template <class Weight>
  int64_t pick(double wanted, const Weight& weight) const {
    double before = 0;
    int64_t chosen = 0;
    for (int64_t i = 0; i < weights_.labels && before <= wanted; ++i) {
      const double w = weight(i);
      if (w > 0) chosen = i;
      before += w;
    }
    return chosen;
  }

  int64_t size_;
  Weights weights_;
  Sums forward_;
};

template <class T>
void evaluate_all(const Chain& solver, const DistributionRows<T>& rows) {
  Evaluator evaluator(solver);
  for (int64_t i = 0; i < rows.count; ++i) evaluator.evaluate(rows, i);
}

template <class T>
void sample_all(const Chain& solver, const SampleRows<T>& rows) {
  Sampler sampler(solver);
  for (int64_t i = 0; i < rows.count; ++i) sampler.sample(rows, i);
}

}  // namespace

double Chain::structure_count() const {
  // A chain of length 1 has no edge, hence one structure.
  return length == 1 ? 1.0 : std::pow(static_cast<double>(labels), static_cast<double>(length));
}

std::vector<uint8_t> Chain::structures() const {
  validate();
  AIMLE_CHECK(structure_count() <= static_cast<double>(kMaxStructures),
              "[aimle::enumerate] expected at most ", kMaxStructures,
              " structures but there are more for length=", length, ", labels=", labels);
  std::vector<uint8_t> all;
  if (length == 1) return all;
  const auto count = static_cast<int64_t>(structure_count());
  all.resize(static_cast<size_t>(count * size()));
  std::vector<int64_t> label(static_cast<size_t>(length));
  for (int64_t s = 0; s < count; ++s) {
    int64_t rest = s;
    for (int64_t t = length - 1; t >= 0; --t, rest /= labels) {
      label[static_cast<size_t>(t)] = rest % labels;
    }
    uint8_t* const z = all.data() + s * size();
    for (int64_t t = 0; t < steps(); ++t) {
      const auto at = static_cast<size_t>(t);
      z[t * edges_per_step() + label[at] * labels + label[at + 1]] = 1;
    }
  }
  return all;
}

void evaluate_rows(const Chain& solver, const DistributionRows<float>& rows) {
  evaluate_all(solver, rows);
}
void evaluate_rows(const Chain& solver, const DistributionRows<double>& rows) {
  evaluate_all(solver, rows);
}
void sample_rows(const Chain& solver, const SampleRows<float>& rows) { sample_all(solver, rows); }
void sample_rows(const Chain& solver, const SampleRows<double>& rows) { sample_all(solver, rows); }

}  // namespace aimle
