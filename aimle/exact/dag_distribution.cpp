#include "aimle/exact/dag_distribution.h"

#include <cmath>
#include <limits>
#include <vector>

#include "aimle/exact/define_distribution.h"
#include "aimle/exact/masked_scores.h"
#include "aimle/exact/uniform.h"
#include "aimle/map/graph.h"

namespace aimle {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// log F of every vertex, and q of every arc.
class Sums {
 public:
  explicit Sums(const DagPath& solver) : solver_(solver) {}

  /// Consecutive rows often share their data.
  template <class T>
  Status read(const T* scores, const bool* mask, const int64_t* data) {
    Status status = read_scores(scores, mask);
    if (data != data_) state_ = graph.read(solver_, data);
    data_ = data;
    if (status == Status::kOk) status = state_;
    if (status != Status::kOk) return status;
    fill();
    return log_partition() > -kInf ? Status::kOk : Status::kDisconnected;
  }

  double log_partition() const { return log_sum_[graph.target]; }

  detail::Graph graph;
  std::vector<double> q;  // of the arcs in the order of graph.tail

 private:
  template <class T>
  Status read_scores(const T* scores, const bool* mask) {
    x_.resize(static_cast<size_t>(solver_.edges));
    bool good = true;
    for (size_t j = 0; j < x_.size(); ++j) {
      x_[j] = MaskedScores<T>{scores, mask}(static_cast<int64_t>(j));
      good &= x_[j] < kInf;
    }
    return good ? Status::kOk : Status::kNaN;
  }

  void fill() {
    q.assign(graph.tail.size(), 0);
    log_sum_.assign(static_cast<size_t>(graph.vertices), -kInf);
    log_sum_[graph.source] = 0;
    for (int32_t v = graph.source + 1; v < graph.vertices; ++v) {
      const int32_t begin = graph.first_in[v], end = graph.first_in[v + 1];
      double largest = -kInf, sum = 0;
      for (int32_t a = begin; a < end; ++a) {
        q[a] = log_sum_[graph.tail[a]] + x_[graph.entry_in[a]];
        largest = std::max(largest, q[a]);
      }
      for (int32_t a = begin; a < end; ++a) {
        q[a] = largest > -kInf ? std::exp(q[a] - largest) : 0;
        sum += q[a];
      }
      if (sum == 0) continue;
      log_sum_[v] = largest + std::log(sum);
      for (int32_t a = begin; a < end; ++a) q[a] /= sum;
    }
  }

  const DagPath& solver_;
  const int64_t* data_ = nullptr;
  Status state_ = Status::kOk;
  std::vector<double> x_, log_sum_;
};

/// Marginals and, if v is given, Cov(z) v, by entries.
class Walk {
 public:
  Walk(const Sums& sums, int64_t edges, const std::vector<double>& v)
      : marginals(static_cast<size_t>(edges)), covariance(v.empty() ? 0 : marginals.size()) {
    const detail::Graph& graph = sums.graph;
    const auto vertices = static_cast<size_t>(graph.vertices);
    std::vector<double> through(vertices);  // P
    std::vector<double> before(vertices);   // the mean of <z, v> from the source to here
    std::vector<double> after(vertices);    // P times the mean from here to the target
    const bool wants_covariance = !v.empty();
    const auto for_arcs = [&](int32_t head, const auto& body) {
      for (int32_t a = graph.first_in[head]; a < graph.first_in[head + 1]; ++a) {
        if (sums.q[a] > 0) body(sums.q[a], graph.tail[a], static_cast<size_t>(graph.entry_in[a]));
      }
    };
    for (int32_t head = graph.source + 1; wants_covariance && head <= graph.target; ++head) {
      for_arcs(head, [&](double q, int32_t tail, size_t entry) {
        before[head] += q * (before[tail] + v[entry]);
      });
    }
    through[graph.target] = 1;
    const double mean = before[graph.target];
    for (int32_t head = graph.target; head > graph.source; --head) {
      if (through[head] == 0) continue;
      for_arcs(head, [&](double q, int32_t tail, size_t entry) {
        marginals[entry] += q * through[head];
        through[tail] += q * through[head];
        if (!wants_covariance) return;
        after[tail] += q * (after[head] + through[head] * v[entry]);
        covariance[entry] += q * (through[head] * (before[tail] + v[entry] - mean) + after[head]);
      });
    }
  }

  std::vector<double> marginals, covariance;
};

/// Calls body(sums, i) for every row i that has a path.
template <class Rows, class Body>
void for_each_graph(const DagPath& solver, const Rows& rows, const Body& body) {
  Sums sums(solver);
  detail::for_each_row(
      rows, solver.size(),
      [&](const auto* scores, const bool* mask, int64_t i) {
        return sums.read(scores, mask, rows.data.of(i));
      },
      [&](int64_t i) { body(sums, i); });
}

template <class T>
void evaluate_all(const DagPath& solver, const DistributionRows<T>& rows) {
  const int64_t n = solver.size();
  std::vector<double> v;
  for_each_graph(solver, rows, [&](const Sums& sums, int64_t i) {
    if (rows.log_partition) rows.log_partition[i] = static_cast<T>(sums.log_partition());
    if (!rows.marginals && !rows.covariance) return;
    if (rows.covariance) v.assign(rows.v + i * n, rows.v + (i + 1) * n);
    const Walk walk(sums, n, v);
    if (rows.marginals) {
      std::copy(walk.marginals.begin(), walk.marginals.end(), rows.marginals + i * n);
    }
    if (rows.covariance) {
      std::copy(walk.covariance.begin(), walk.covariance.end(), rows.covariance + i * n);
    }
  });
}

template <class T>
void sample_path(const Sums& sums, const SampleRows<T>& rows, int64_t i, int64_t s, T* z) {
  const detail::Graph& graph = sums.graph;
  for (int32_t at = graph.target; at != graph.source;) {
    const double number = uniform(rows.key, rows.first + i, s, at);
    double sum = 0;
    int32_t chosen = -1;  // the last with a weight, in case rounding leaves the sum short
    for (int32_t a = graph.first_in[at]; a < graph.first_in[at + 1] && sum <= number; ++a) {
      if (sums.q[a] > 0) chosen = a;
      sum += sums.q[a];
    }
    z[graph.entry_in[chosen]] = T(1);
    at = graph.tail[chosen];
  }
}

template <class T>
void sample_all(const DagPath& solver, const SampleRows<T>& rows) {
  const int64_t n = solver.size();
  for_each_graph(solver, rows, [&](const Sums& sums, int64_t i) {
    for (int64_t s = 0; s < rows.samples; ++s) {
      T* z = rows.z + (i * rows.samples + s) * n;
      std::fill_n(z, n, T(0));
      sample_path(sums, rows, i, s, z);
    }
  });
}

}  // namespace

AIMLE_DEFINE_DISTRIBUTION(DagPath)

}  // namespace aimle
