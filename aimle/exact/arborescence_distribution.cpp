#include "aimle/exact/arborescence_distribution.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "aimle/exact/directed_network.h"
#include "aimle/exact/network.h"
#include "aimle/exact/uniform.h"

namespace aimle {
namespace {

using detail::AllPairs;
using detail::DirectedNetwork;
using detail::Linear;
using detail::Logarithmic;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNegligible = 40;  // e^-40 is less than the roundings of float64

/// One row as a graph: logits of arcs and roots, -inf for missing ones.
class Graph {
 public:
  template <class T>
  Status read(const Arborescence& solver, const T* scores, const bool* mask) {
    n_ = solver.vertices;
    x_.resize(static_cast<size_t>(n_ * n_));
    for (int64_t e = 0; e < n_ * n_; ++e) {
      const double x = mask == nullptr || mask[e] ? static_cast<double>(scores[e]) : -kInf;
      if (std::isnan(x) || x == kInf) return Status::kNaN;
      x_[static_cast<size_t>(e)] = x;
    }
    if (!is_connected(solver.single_root)) return Status::kDisconnected;
    measure(solver.single_root);
    return Status::kOk;
  }

  int64_t vertices() const { return n_; }
  /// Of the arc h -> d, or of root d if h = d.
  double logit(int64_t h, int64_t d) const { return x_[static_cast<size_t>(h * n_ + d)]; }
  bool has(int64_t h, int64_t d) const { return logit(h, d) > -kInf; }
  /// Its weight, scaled so that the largest logit has 1, with roots reduced for a single root.
  template <class Number>
  double weight(int64_t h, int64_t d) const {
    return has(h, d) ? Number::from_log(logit(h, d) - largest_ - (h == d ? lowered_ : 0))
                     : Number::zero();
  }
  /// The part of the log-partition that is not in the weights.
  double offset() const { return static_cast<double>(n_) * largest_ + lowered_; }
  bool linear() const { return linear_; }
  /// All weights, [n, n].
  template <class Number>
  std::vector<double> weights() const {
    std::vector<double> all;
    for (int64_t h = 0; h < n_; ++h) {
      for (int64_t d = 0; d < n_; ++d) all.push_back(weight<Number>(h, d));
    }
    return all;
  }

 private:
  /// Whether arcs lead from the roots, or from a single one, to all vertices. With a single root,
  /// removes arcs that are in no arborescence.
  bool is_connected(bool single_root) {
    const auto is_root = [&](int64_t v) { return has(v, v); };
    if (!single_root) return reach(is_root, kNobody) == n_;
    if (std::find(x_.begin(), x_.end(), -kInf) == x_.end()) return true;
    bool any = false;
    for (int64_t root = 0; root < n_; ++root) {
      if (!has(root, root)) continue;
      const bool reaches_all = reach([&](int64_t v) { return v == root; }, kNobody) == n_;
      if (!reaches_all) leave_out(root, root);
      any |= reaches_all;
    }
    for (int64_t d = 0; any && d < n_; ++d) {
      reach(is_root, d);
      for (int64_t h = 0; h < n_; ++h) {
        if (h != d && !reached_[static_cast<size_t>(h)]) leave_out(h, d);
      }
    }
    return any;
  }
  void leave_out(int64_t h, int64_t d) { x_[static_cast<size_t>(h * n_ + d)] = -kInf; }

  static constexpr int64_t kNobody = -1;

  /// The number of vertices reachable from these roots on paths that avoid one vertex.
  template <class IsRoot>
  int64_t reach(const IsRoot& is_root, int64_t avoided) {
    reached_.assign(static_cast<size_t>(n_), 0);
    waiting_.clear();
    const auto arrive = [&](int64_t v) {
      if (v == avoided || reached_[static_cast<size_t>(v)]) return;
      reached_[static_cast<size_t>(v)] = 1;
      waiting_.push_back(v);
    };
    for (int64_t v = 0; v < n_; ++v) {
      if (is_root(v)) arrive(v);
    }
    for (size_t i = 0; i < waiting_.size(); ++i) {
      for (int64_t d = 0; d < n_; ++d) {
        if (has(waiting_[i], d)) arrive(d);
      }
    }
    return static_cast<int64_t>(waiting_.size());
  }

  void measure(bool single_root) {
    largest_ = -kInf;
    double smallest = kInf, smallest_arc = kInf, largest_root = -kInf;
    bool complete = true;
    for (int64_t h = 0; h < n_; ++h) {
      for (int64_t d = 0; d < n_; ++d) {
        if (!has(h, d)) {
          complete &= h == d;
          continue;
        }
        const double x = logit(h, d);
        largest_ = std::max(largest_, x);
        smallest = std::min(smallest, x);
        if (h == d) largest_root = std::max(largest_root, x);
        if (h != d) smallest_arc = std::min(smallest_arc, x);
      }
    }
    lowered_ = 0;
    if (single_root && n_ > 1) {
      // If all arcs exist, an extra root is exchanged for any arc; otherwise for up to n arcs.
      const auto n = static_cast<double>(n_);
      const double gain = complete ? std::log(n) + std::max(largest_root - smallest_arc, 0.0)
                                   : n * (std::log(n) + largest_ - smallest);
      lowered_ = kNegligible + gain;
    }
    linear_ = largest_ - smallest + lowered_ <= detail::kLinearSpread;
  }

  int64_t n_ = 0;
  std::vector<double> x_;
  double largest_ = 0;
  double lowered_ = 0;
  bool linear_ = true;
  std::vector<uint8_t> reached_;
  std::vector<int64_t> waiting_;
};

template <class Number>
class Evaluator {
 public:
  double log_partition(const Graph& graph) {
    load(graph);
    double sum = graph.offset();
    while (network_.vertices() > 0) sum += Number::log(network_.eliminate_last());
    return sum;
  }

  template <class T>
  void marginals(const Graph& graph, const T* v, T* mu, T* covariance) {
    const int64_t n = graph.vertices();
    load(graph);
    if (covariance) {
      network_.start_tangents();
      for (int64_t h = 0; h < n; ++h) {
        for (int64_t d = 0; d < n; ++d) {
          if (graph.has(h, d))
            network_.t(h == d ? kRoot : h, d) = static_cast<double>(v[h * n + d]);
        }
      }
    }
    const auto write = [&](int64_t h, int64_t d, double whole, double of_whole) {
      if (!graph.has(h, d)) return;
      const int64_t e = h * n + d;
      const double p = std::min(Number::ratio(weights_[static_cast<size_t>(e)], whole), 1.0);
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

 private:
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

  void load(const Graph& graph) {
    const int64_t n = graph.vertices();
    network_.reset(n);
    weights_ = graph.weights<Number>();
    for (int64_t h = 0; h < n; ++h) {
      for (int64_t d = 0; d < n; ++d) {
        network_.w(h == d ? kRoot : h, d) = weights_[static_cast<size_t>(h * n + d)];
      }
    }
  }

  std::vector<double> weights_;
  DirectedNetwork<Number> network_;
  AllPairs<DirectedNetwork<Number>> pairs_;
};

template <class T>
void evaluate_all(const Arborescence& solver, const DistributionRows<T>& rows) {
  const int64_t size = solver.size();
  Graph graph;
  Evaluator<Linear> linear;
  Evaluator<Logarithmic> logarithmic;
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t at = i * size;
    const Status status =
        graph.read(solver, rows.scores + at, rows.mask ? rows.mask + at : nullptr);
    if (status != Status::kOk) {
      detail::refuse(rows, size, i, status);
      continue;
    }
    rows.status[i] = status;
    const auto evaluate_with = [&](auto& evaluator) {
      if (rows.log_partition) {
        rows.log_partition[i] = static_cast<T>(evaluator.log_partition(graph));
      }
      if (!rows.marginals && !rows.covariance) return;
      T* mu = rows.marginals ? rows.marginals + at : nullptr;
      T* covariance = rows.covariance ? rows.covariance + at : nullptr;
      if (mu) std::fill_n(mu, size, T{0});
      if (covariance) std::fill_n(covariance, size, T{0});
      evaluator.marginals(graph, rows.v ? rows.v + at : nullptr, mu, covariance);
    };
    graph.linear() ? evaluate_with(linear) : evaluate_with(logarithmic);
  }
}

template <class Number>
class Sampler {
 public:
  void start(const Graph& graph) {
    n_ = graph.vertices();
    weights_ = graph.weights<Number>();
  }

  /// chosen(h, d) for the head h of every vertex d, h = d for roots; uniform(d) returns its number.
  template <class Uniform, class Chosen>
  void draw(const Uniform& uniform, const Chosen& chosen) {
    const int64_t n = n_;
    heads_.assign(static_cast<size_t>(n), kNone);
    for (int64_t d = 0; d < n; ++d) {
      find_escapes(d);
      double total = Number::zero();
      for (int64_t h = 0; h < n; ++h) total = Number::add(total, part(h, d));
      double left = uniform(d);
      for (int64_t h = 0; h < n; ++h) {
        const double weight = part(h, d);
        if (weight == Number::zero()) continue;
        heads_[static_cast<size_t>(d)] = h;  // the last possible one, in case of rounding
        left -= Number::ratio(weight, total);
        if (left < 0) break;
      }
      chosen(heads_[static_cast<size_t>(d)], d);
    }
  }

 private:
  static constexpr int64_t kNone = -1;
  static constexpr int64_t kRoot = DirectedNetwork<Number>::kRoot;

  double weight(int64_t h, int64_t d) const { return weights_[static_cast<size_t>(h * n_ + d)]; }

  /// The probability of head h for d, up to a factor.
  double part(int64_t h, int64_t d) const {
    const double weight = this->weight(h, d);
    if (h == d || weight == Number::zero()) return weight;
    return Number::multiply(weight, escape_[static_cast<size_t>(h)]);
  }

  /// escape_[h]: the probability that a walk from h to its head, to the head of that, and so on,
  /// reaches a root before d.
  void find_escapes(int64_t d) {
    const int64_t n = n_;
    network_.reset(n);
    const auto vertex = [&](int64_t i) { return i == 0 ? d : i <= d ? i - 1 : i; };  // d first
    for (int64_t i = 1; i < n; ++i) {
      const int64_t to = vertex(i), head = heads_[static_cast<size_t>(to)];
      for (int64_t from = kRoot; from < n; ++from) {
        if (from == i) continue;
        const int64_t h = from == kRoot ? to : vertex(from);
        const bool settled = head != kNone;
        network_.w(from, i) = !settled    ? weight(h, to)
                              : h == head ? Number::from_log(0)
                                          : Number::zero();
      }
    }
    pivot_.resize(static_cast<size_t>(n));
    for (int64_t i = n - 1; i > 0; --i) pivot_[static_cast<size_t>(i)] = network_.eliminate_last();
    escape_.assign(static_cast<size_t>(n), Number::zero());
    for (int64_t i = 1; i < n; ++i) {
      double sum = network_.w(kRoot, i);
      for (int64_t from = 1; from < i; ++from) {
        const double onward = escape_[static_cast<size_t>(vertex(from))];
        if (onward == Number::zero() || network_.w(from, i) == Number::zero()) continue;
        sum = Number::add(sum, Number::multiply(network_.w(from, i), onward));
      }
      if (sum == Number::zero()) continue;
      escape_[static_cast<size_t>(vertex(i))] = Number::divide(sum, pivot_[static_cast<size_t>(i)]);
    }
  }

  int64_t n_ = 0;
  std::vector<double> weights_;
  DirectedNetwork<Number> network_;
  std::vector<double> pivot_, escape_;
  std::vector<int64_t> heads_;
};

template <class T>
void sample_all(const Arborescence& solver, const SampleRows<T>& rows) {
  const int64_t n = solver.vertices, size = solver.size();
  Graph graph;
  Sampler<Linear> linear;
  Sampler<Logarithmic> logarithmic;
  for (int64_t i = 0; i < rows.count; ++i) {
    const Status status =
        graph.read(solver, rows.scores + i * size, rows.mask ? rows.mask + i * size : nullptr);
    if (status != Status::kOk) {
      detail::refuse(rows, size, i, status);
      continue;
    }
    rows.status[i] = status;
    graph.linear() ? linear.start(graph) : logarithmic.start(graph);
    for (int64_t s = 0; s < rows.samples; ++s) {
      T* z = rows.z + (i * rows.samples + s) * size;
      std::fill_n(z, size, T{0});
      const auto number = [&](int64_t d) { return uniform(rows.key, rows.first + i, s, d); };
      const auto chosen = [&](int64_t h, int64_t d) { z[h * n + d] = 1; };
      graph.linear() ? linear.draw(number, chosen) : logarithmic.draw(number, chosen);
    }
  }
}

}  // namespace

void evaluate_rows(const Arborescence& solver, const DistributionRows<float>& rows) {
  evaluate_all(solver, rows);
}
void evaluate_rows(const Arborescence& solver, const DistributionRows<double>& rows) {
  evaluate_all(solver, rows);
}
void sample_rows(const Arborescence& solver, const SampleRows<float>& rows) {
  sample_all(solver, rows);
}
void sample_rows(const Arborescence& solver, const SampleRows<double>& rows) {
  sample_all(solver, rows);
}

}  // namespace aimle
