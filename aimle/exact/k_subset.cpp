#include "aimle/exact/k_subset.h"

#include <cmath>
#include <functional>
#include <vector>

#include "aimle/exact/uniform.h"

namespace aimle {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kTiltTolerance = 0.1;

double sigmoid(double x) {
  const double e = std::exp(-std::abs(x));
  return (x < 0 ? e : 1.0) / (1.0 + e);
}

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

/// c with sum_j sigmoid(x_j - c) about k, 0 < k < size: Newton's steps, kept within a bracket.
/// `sorted` is scratch.
double find_tilt(const std::vector<double>& x, int64_t k, std::vector<double>& sorted) {
  sorted = x;
  const auto kth = sorted.begin() + (k - 1);
  std::nth_element(sorted.begin(), kth, sorted.end(), std::greater<>());
  const double last_in = *kth;
  const double first_out = *std::max_element(kth + 1, sorted.end());
  const double margin = std::log(static_cast<double>(x.size()));
  double low = first_out - margin;
  double high = last_in + margin;
  double c = last_in / 2 + first_out / 2;
  while (low < c && c < high) {
    double excess = -static_cast<double>(k);
    double slope = 0;
    for (const double score : x) {
      const double p = sigmoid(score - c);
      excess += p;
      slope += p * sigmoid(c - score);
    }
    if (std::abs(excess) <= kTiltTolerance) break;
    (excess > 0 ? low : high) = c;
    const double newton = c + excess / slope;
    c = low < newton && newton < high ? newton : low / 2 + high / 2;
  }
  return c;
}

/// One row as coins: the entries that may be chosen, p = in[i], 1 - p = out[i].
struct Coins {
  std::vector<int64_t> index;
  std::vector<double> x, in, out, sorted;
  int64_t k = 0;
  double log_scale = 0;  // A(x) - log P(k come up)

  int64_t size() const { return static_cast<int64_t>(x.size()); }
  bool certain() const { return k == 0 || k == size(); }

  template <class T>
  Status read(int64_t n, const T* scores, const bool* mask, int64_t wanted) {
    if (wanted < 0 || wanted > n) return Status::kBadK;
    k = wanted;
    index.clear();
    x.clear();
    for (int64_t j = 0; j < n; ++j) {
      const auto score = static_cast<double>(scores[j]);
      if ((mask != nullptr && !mask[j]) || score == -kInf) continue;
      if (std::isnan(score) || score == kInf) return Status::kNaN;
      index.push_back(j);
      x.push_back(score);
    }
    if (size() < k) return Status::kTooFewEntries;
    toss();
    return Status::kOk;
  }

 private:
  void toss() {
    in.assign(x.size(), k == 0 ? 0.0 : 1.0);
    out.assign(x.size(), k == 0 ? 1.0 : 0.0);
    log_scale = 0;
    if (certain()) {
      for (size_t i = 0; k > 0 && i < x.size(); ++i) log_scale += x[i];
      return;
    }
    const double c = find_tilt(x, k, sorted);
    log_scale = static_cast<double>(k) * c;
    for (size_t i = 0; i < x.size(); ++i) {
      in[i] = sigmoid(x[i] - c);
      out[i] = sigmoid(c - x[i]);
      log_scale += softplus(x[i] - c);
    }
  }
};

/// One step of the programme: the counts 0 ... k after one more coin. `from` and `to` may be the
/// same array.
void add_coin(double in, double out, int64_t k, const double* from, double* to) {
  for (int64_t r = k; r > 0; --r) to[r] = out * from[r] + in * from[r - 1];
  to[0] = out * from[0];
}

/// The tangent that carries <z, v>: every way through this coin has gained v. `counts` are those
/// before the step.
void add_tangent(double in, double out, double v, int64_t k, const double* counts,
                 const double* from, double* to) {
  for (int64_t r = k; r > 0; --r) {
    to[r] = out * from[r] + in * (from[r - 1] + v * counts[r - 1]);
  }
  to[0] = out * from[0];
}

/// sum_r a(r) b(k - 1 - r)
double convolve(const double* a, const double* b, int64_t k) {
  double sum = 0;
  for (int64_t r = 0; r < k; ++r) sum += a[r] * b[k - 1 - r];
  return sum;
}

/// Rows of k + 1 counts.
class Table {
 public:
  void reset(int64_t rows, int64_t k) {
    width_ = k + 1;
    values_.assign(static_cast<size_t>(rows * width_), 0.0);
  }
  double* row(int64_t j) { return values_.data() + j * width_; }

 private:
  int64_t width_ = 0;
  std::vector<double> values_;
};

class Evaluator {
 public:
  template <class T>
  void evaluate(int64_t n, int64_t k, const DistributionRows<T>& rows, int64_t i) {
    const int64_t at = i * n;
    const Status status = coins_.read(n, rows.scores + at, rows.mask ? rows.mask + at : nullptr,
                                      rows.k ? rows.k[i] : k);
    if (status != Status::kOk) return detail::refuse(rows, n, i, status);
    rows.status[i] = status;
    if (rows.log_partition) rows.log_partition[i] = static_cast<T>(log_partition());
    if (rows.marginals || rows.covariance) marginals();
    if (rows.marginals) write(mu_, n, rows.marginals + at);
    if (rows.covariance) {
      covariance(rows.v + at);
      write(cov_, n, rows.covariance + at);
    }
  }

 private:
  double log_partition() {
    if (coins_.certain()) return coins_.log_scale;
    last_.assign(static_cast<size_t>(coins_.k) + 1, 0.0);
    last_[0] = 1;
    for (int64_t j = 0; j < coins_.size(); ++j) {
      add_coin(in(j), out(j), coins_.k, last_.data(), last_.data());
    }
    return coins_.log_scale + std::log(last_.back());
  }

  void marginals() {
    const int64_t m = coins_.size(), k = coins_.k;
    mu_.assign(static_cast<size_t>(m), k == 0 ? 0.0 : 1.0);
    if (coins_.certain()) return;
    forward_.reset(m + 1, k);
    forward_.row(0)[0] = 1;
    for (int64_t j = 0; j < m; ++j) {
      add_coin(in(j), out(j), k, forward_.row(j), forward_.row(j + 1));
    }
    const double total = forward_.row(m)[k];
    last_.assign(static_cast<size_t>(k) + 1, 0.0);
    last_[0] = 1;
    for (int64_t j = m - 1; j >= 0; --j) {
      mu_[j] = in(j)*convolve(forward_.row(j), last_.data(), k) / total;
      add_coin(in(j), out(j), k, last_.data(), last_.data());
    }
  }

  /// Needs the marginals' `forward_` and `mu_`.
  template <class T>
  void covariance(const T* v) {
    const int64_t m = coins_.size(), k = coins_.k;
    cov_.assign(static_cast<size_t>(m), 0.0);
    if (coins_.certain()) return;
    centred_.resize(static_cast<size_t>(m));
    double mean = 0;
    for (int64_t j = 0; j < m; ++j) {
      centred_[j] = static_cast<double>(v[coins_.index[j]]);
      mean += mu_[j] * centred_[j];
    }
    for (double& value : centred_) value -= mean / static_cast<double>(k);

    tangent_.reset(m + 1, k);
    for (int64_t j = 0; j < m; ++j) {
      add_tangent(in(j), out(j), centred_[j], k, forward_.row(j), tangent_.row(j),
                  tangent_.row(j + 1));
    }
    const double total = forward_.row(m)[k];
    last_.assign(static_cast<size_t>(k) + 1, 0.0);
    last_[0] = 1;
    last_tangent_.assign(static_cast<size_t>(k) + 1, 0.0);
    double left = 0;  // of E<z, v> = 0, by rounding
    for (int64_t j = m - 1; j >= 0; --j) {
      const double sum = convolve(tangent_.row(j), last_.data(), k) +
                         convolve(forward_.row(j), last_tangent_.data(), k) +
                         centred_[j] * convolve(forward_.row(j), last_.data(), k);
      cov_[j] = in(j)*sum / total;
      left += cov_[j];
      add_tangent(in(j), out(j), centred_[j], k, last_.data(), last_tangent_.data(),
                  last_tangent_.data());
      add_coin(in(j), out(j), k, last_.data(), last_.data());
    }
    left /= static_cast<double>(k);
    for (int64_t j = 0; j < m; ++j) cov_[j] -= mu_[j] * left;
  }

  template <class T>
  void write(const std::vector<double>& values, int64_t n, T* out) const {
    std::fill_n(out, n, T{0});
    for (size_t i = 0; i < values.size(); ++i) out[coins_.index[i]] = static_cast<T>(values[i]);
  }

  double in(int64_t j) const { return coins_.in[static_cast<size_t>(j)]; }
  double out(int64_t j) const { return coins_.out[static_cast<size_t>(j)]; }

  Coins coins_;
  Table forward_, tangent_;
  std::vector<double> last_, last_tangent_, mu_, cov_, centred_;
};

class Sampler {
 public:
  template <class T>
  void sample(int64_t n, int64_t k, const SampleRows<T>& rows, int64_t i) {
    const int64_t at = i * n;
    const Status status = coins_.read(n, rows.scores + at, rows.mask ? rows.mask + at : nullptr,
                                      rows.k ? rows.k[i] : k);
    if (status != Status::kOk) return detail::refuse(rows, n, i, status);
    rows.status[i] = status;
    if (!coins_.certain()) fill_backward();
    for (int64_t s = 0; s < rows.samples; ++s) {
      T* z = rows.z + (i * rows.samples + s) * n;
      std::fill_n(z, n, T{0});
      int64_t wanted = coins_.k;
      for (int64_t j = 0; wanted > 0; ++j) {
        const int64_t entry = coins_.index[static_cast<size_t>(j)];
        const bool taken = coins_.size() - j == wanted ||
                           uniform(rows.key, rows.first + i, s, entry) * backward_.row(j)[wanted] <
                               coins_.in[static_cast<size_t>(j)] * backward_.row(j + 1)[wanted - 1];
        if (!taken) continue;
        z[entry] = 1;
        --wanted;
      }
    }
  }

 private:
  void fill_backward() {
    const int64_t m = coins_.size();
    backward_.reset(m + 1, coins_.k);
    backward_.row(m)[0] = 1;
    for (int64_t j = m - 1; j >= 0; --j) {
      add_coin(coins_.in[static_cast<size_t>(j)], coins_.out[static_cast<size_t>(j)], coins_.k,
               backward_.row(j + 1), backward_.row(j));
    }
  }

  Coins coins_;
  Table backward_;
};

template <class T>
void evaluate_all(const TopK& solver, const DistributionRows<T>& rows) {
  Evaluator evaluator;
  for (int64_t i = 0; i < rows.count; ++i) evaluator.evaluate(solver.n, solver.k, rows, i);
}

template <class T>
void sample_all(const TopK& solver, const SampleRows<T>& rows) {
  Sampler sampler;
  for (int64_t i = 0; i < rows.count; ++i) sampler.sample(solver.n, solver.k, rows, i);
}

}  // namespace

void evaluate_rows(const TopK& solver, const DistributionRows<float>& rows) {
  evaluate_all(solver, rows);
}
void evaluate_rows(const TopK& solver, const DistributionRows<double>& rows) {
  evaluate_all(solver, rows);
}
void sample_rows(const TopK& solver, const SampleRows<float>& rows) { sample_all(solver, rows); }
void sample_rows(const TopK& solver, const SampleRows<double>& rows) { sample_all(solver, rows); }

}  // namespace aimle
