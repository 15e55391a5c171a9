#include "aimle/exact/tree_distribution.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "aimle/exact/network.h"
#include "aimle/exact/uniform.h"
#include "aimle/exact/wilson.h"

namespace aimle {
namespace {

using detail::AllPairs;
using detail::Linear;
using detail::Logarithmic;
using detail::Network;

constexpr double kInf = std::numeric_limits<double>::infinity();

class Components {
 public:
  explicit Components(int64_t n = 0) : parent_(static_cast<size_t>(n)) {
    std::iota(parent_.begin(), parent_.end(), int64_t{0});
  }
  int64_t find(int64_t i) {
    while (parent_[static_cast<size_t>(i)] != i) {
      i = parent_[static_cast<size_t>(i)] =
          parent_[static_cast<size_t>(parent_[static_cast<size_t>(i)])];
    }
    return i;
  }
  /// False if they were already connected.
  bool join(int64_t i, int64_t j) {
    i = find(i);
    j = find(j);
    parent_[static_cast<size_t>(std::max(i, j))] = std::min(i, j);
    return i != j;
  }

 private:
  std::vector<int64_t> parent_;
};

struct Edge {
  int64_t i, j;    // i < j
  int64_t first;   // the positions in the row that hold it
  int64_t second;  // the same as first if undirected
  int64_t index;   // in the undirected order
  double x;        // its logit

  /// The combined value of the row at its positions: v along the edge.
  template <class T>
  double read(const T* row) const {
    const auto value = static_cast<double>(row[first]);
    return second == first ? value : value + static_cast<double>(row[second]);
  }
  template <class T>
  void write(double value, T* row) const {
    row[first] = row[second] = static_cast<T>(value);
  }
};

/// One row as a graph: the edges that may be chosen.
struct Graph {
  int64_t n = 0;
  std::vector<Edge> edges;
  double largest = -kInf, smallest = kInf;

  bool linear() const { return edges.empty() || largest - smallest <= detail::kLinearSpread; }
  bool walkable() const {
    return n > 2 && static_cast<int64_t>(edges.size()) == n * (n - 1) / 2 &&
           largest - smallest <= detail::kWalkSpread;
  }

  template <class T>
  Status read(const SpanningTree& solver, const T* scores, const bool* mask) {
    n = solver.vertices;
    edges.clear();
    largest = -kInf;
    smallest = kInf;
    const bool directed = solver.layout == SpanningTree::Layout::kDirected;
    Components components(n);
    int64_t parts = n;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = i + 1; j < n; ++j) {
        Edge edge{.i = i, .j = j, .index = SpanningTree::edge(i, j, n)};
        edge.first = directed ? SpanningTree::arc(i, j, n) : edge.index;
        edge.second = directed ? SpanningTree::arc(j, i, n) : edge.index;
        if (mask != nullptr && !(mask[edge.first] && mask[edge.second])) continue;
        edge.x = edge.read(scores);
        if (std::isnan(edge.x) || edge.x == kInf) return Status::kNaN;
        if (edge.x == -kInf) continue;
        edges.push_back(edge);
        largest = std::max(largest, edge.x);
        smallest = std::min(smallest, edge.x);
        parts -= components.join(i, j);
      }
    }
    return parts == 1 ? Status::kOk : Status::kDisconnected;
  }

  /// The conductance of an edge, scaled so that the largest is 1.
  template <class Number>
  double conductance(const Edge& edge) const {
    return Number::from_log(edge.x - largest);
  }
};

template <class Number>
class Evaluator {
 public:
  double log_partition(const Graph& graph) {
    if (graph.n == 1) return 0;
    load(graph);
    double sum = static_cast<double>(graph.n - 1) * graph.largest;
    while (network_.vertices() > 1) sum += Number::log(network_.eliminate_last());
    return sum;
  }

  template <class T>
  void marginals(const Graph& graph, const T* v, T* mu, T* covariance) {
    load(graph);
    if (covariance) {
      along_.assign(network_pairs(graph), 0.0);
      network_.start_tangents();
      for (const Edge& edge : graph.edges) network_.t(edge.j, edge.i) = edge.read(v);
    }
    between_.assign(network_pairs(graph), Number::zero());
    pairs_.run(network_, [&](int64_t i, int64_t j, Network<Number>& two) {
      const auto pair = static_cast<size_t>(SpanningTree::edge(j, i, graph.n));
      between_[pair] = two.w(1, 0);
      if (covariance) along_[pair] = two.t(1, 0);
    });
    for (const Edge& edge : graph.edges) {
      const auto pair = static_cast<size_t>(edge.index);
      const double p =
          std::min(Number::ratio(graph.conductance<Number>(edge), between_[pair]), 1.0);
      if (mu) edge.write(p, mu);
      if (covariance) edge.write(p * (edge.read(v) - along_[pair]), covariance);
    }
  }

 private:
  static size_t network_pairs(const Graph& graph) {
    return static_cast<size_t>(graph.n * (graph.n - 1) / 2);
  }

  void load(const Graph& graph) {
    network_.reset(graph.n);
    for (const Edge& edge : graph.edges) {
      network_.w(edge.j, edge.i) = graph.conductance<Number>(edge);
    }
  }

  Network<Number> network_;
  AllPairs<Network<Number>> pairs_;
  std::vector<double> between_, along_;
};

template <class T>
void evaluate_all(const SpanningTree& solver, const DistributionRows<T>& rows) {
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
    conductance_.clear();
    for (const Edge& edge : graph.edges) conductance_.push_back(graph.conductance<Number>(edge));
  }

  /// chosen(edge) for every edge of one tree; uniform(index) returns the edge's random number.
  template <class Uniform, class Chosen>
  void draw(const Graph& graph, Uniform uniform, Chosen chosen) {
    Components components(graph.n);
    int64_t parts = graph.n;
    for (size_t e = 0; parts > 1 && e < graph.edges.size(); ++e) {
      const Edge& edge = graph.edges[e];
      if (components.find(edge.i) == components.find(edge.j)) continue;
      const double p = Number::ratio(conductance_[e], between_ends(graph, e, components, parts));
      if (!(uniform(edge.index) < p)) continue;
      components.join(edge.i, edge.j);
      --parts;
      chosen(edge);
    }
  }

 private:
  /// The conductance between the ends of edge e when chosen edges are contracted and only the edges
  /// from e on are left.
  double between_ends(const Graph& graph, size_t e, Components& components, int64_t parts) {
    constexpr int64_t kNone = -1;
    vertex_.assign(static_cast<size_t>(graph.n), kNone);
    vertex_[static_cast<size_t>(components.find(graph.edges[e].i))] = 0;
    vertex_[static_cast<size_t>(components.find(graph.edges[e].j))] = 1;
    int64_t next = 2;
    for (int64_t i = 0; i < graph.n; ++i) {
      int64_t& vertex = vertex_[static_cast<size_t>(components.find(i))];
      if (vertex == kNone) vertex = next++;
    }
    network_.reset(parts);
    for (size_t later = e; later < graph.edges.size(); ++later) {
      const int64_t a = vertex_[static_cast<size_t>(components.find(graph.edges[later].i))];
      const int64_t b = vertex_[static_cast<size_t>(components.find(graph.edges[later].j))];
      if (a != b) network_.add(a, b, conductance_[later]);
    }
    while (network_.vertices() > 2) network_.eliminate_last();
    return network_.w(1, 0);
  }

  std::vector<double> conductance_;
  std::vector<int64_t> vertex_;
  Network<Number> network_;
};

/// The trees of one row: by walks if they are short, otherwise edge by edge.
class TreeSampler {
 public:
  explicit TreeSampler(const SpanningTree& solver) : solver_(solver) {}

  template <class T>
  void sample(const SampleRows<T>& rows, int64_t i) {
    const int64_t size = solver_.size();
    const Status status =
        graph_.read(solver_, rows.scores + i * size, rows.mask ? rows.mask + i * size : nullptr);
    if (status != Status::kOk) return detail::refuse(rows, size, i, status);
    rows.status[i] = status;
    start();
    for (int64_t s = 0; s < rows.samples; ++s) {
      T* z = rows.z + (i * rows.samples + s) * size;
      std::fill_n(z, size, T{0});
      draw([&](int64_t j) { return uniform(rows.key, rows.first + i, s, j); },
           [&](const Edge& edge) { edge.write(1, z); });
    }
  }

 private:
  void start() {
    by_ends_ = graph_.edges;
    std::stable_sort(graph_.edges.begin(), graph_.edges.end(),
                     [](const Edge& a, const Edge& b) { return a.x > b.x; });
    graph_.linear() ? linear_.start(graph_) : logarithmic_.start(graph_);
    if (graph_.walkable()) start_walks();
  }

  void start_walks() {
    const auto n = static_cast<size_t>(graph_.n);
    cumulative_.assign(n * n, 0.0);
    next_.resize(n);
    in_tree_.resize(n);
    walks_ = {.n = graph_.n,
              .cumulative = cumulative_.data(),
              .next = next_.data(),
              .in_tree = in_tree_.data()};
    for (const Edge& edge : graph_.edges) {
      walks_.set_edge(edge.i, edge.j, graph_.conductance<Linear>(edge));
    }
    for (int64_t i = 0; i < graph_.n; ++i) walks_.finish_row(i);
    walks_.start();
  }

  /// Number j of a sample belongs to edge j, and numbers after the last edge to the steps of walks.
  template <class Uniform, class Chosen>
  void draw(Uniform uniform, Chosen chosen) {
    const int64_t n = graph_.n;
    const bool walked =
        graph_.walkable() && walks_.draw(
                                 detail::kWalkStepsPerVertex * n,
                                 [&](int64_t step) { return uniform(n * (n - 1) / 2 + step); },
                                 [&](int64_t i, int64_t j) {
                                   const int64_t index =
                                       SpanningTree::edge(std::min(i, j), std::max(i, j), n);
                                   chosen(by_ends_[static_cast<size_t>(index)]);
                                 });
    if (walked) return;
    graph_.linear() ? linear_.draw(graph_, uniform, chosen)
                    : logarithmic_.draw(graph_, uniform, chosen);
  }

  const SpanningTree& solver_;
  Graph graph_;
  std::vector<Edge> by_ends_;  // in the undirected order, if the graph is complete
  detail::Walks walks_{};
  std::vector<double> cumulative_;  // of walks_, like the next two
  std::vector<int32_t> next_;
  std::vector<uint8_t> in_tree_;
  Sampler<Linear> linear_;
  Sampler<Logarithmic> logarithmic_;
};

template <class T>
void sample_all(const SpanningTree& solver, const SampleRows<T>& rows) {
  TreeSampler sampler(solver);
  for (int64_t i = 0; i < rows.count; ++i) sampler.sample(rows, i);
}

}  // namespace

void evaluate_rows(const SpanningTree& solver, const DistributionRows<float>& rows) {
  evaluate_all(solver, rows);
}
void evaluate_rows(const SpanningTree& solver, const DistributionRows<double>& rows) {
  evaluate_all(solver, rows);
}
void sample_rows(const SpanningTree& solver, const SampleRows<float>& rows) {
  sample_all(solver, rows);
}
void sample_rows(const SpanningTree& solver, const SampleRows<double>& rows) {
  sample_all(solver, rows);
}

}  // namespace aimle
