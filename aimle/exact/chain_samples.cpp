// Samples of the distribution over the label sequences of a chain, and the list of them.
#include <cmath>
#include <vector>

#include "aimle/exact/chain_sums.h"
#include "aimle/exact/enumerate.h"
#include "aimle/exact/uniform.h"

namespace aimle {
namespace {

class Sampler {
 public:
  explicit Sampler(const Chain& solver)
      : size_(solver.size()), weights_(solver), forward_(solver) {}

  template <class T>
  void sample(const SampleRows<T>& rows) {
    for_each_chain(rows, size_, weights_, forward_,
                   [&]<class Number>(Number, int64_t row) { sample_in<Number>(rows, row); });
  }

 private:
  template <class Number, class T>
  void sample_in(const SampleRows<T>& rows, int64_t row) {
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

  /// The label at which the sum of the weights exceeds `wanted`; the last with a weight, in case
  /// rounding leaves the sum short.
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
void sample_all(const Chain& solver, const SampleRows<T>& rows) {
  Sampler(solver).sample(rows);
}

}  // namespace

double Chain::structure_count() const {
  // A chain of length 1 has no edge, so it has one structure.
  return length == 1 ? 1.0 : std::pow(static_cast<double>(labels), static_cast<double>(length));
}

std::vector<uint8_t> Chain::structures() const {
  validate();
  check_structure_count(structure_count(), "for length=", length, ", labels=", labels);
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

void sample_rows(const Chain& solver, const SampleRows<float>& rows) { sample_all(solver, rows); }
void sample_rows(const Chain& solver, const SampleRows<double>& rows) { sample_all(solver, rows); }

}  // namespace aimle
