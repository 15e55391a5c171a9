// Time of spanning trees on one thread: every instruction set, and a hand-written version (Kruskal
// with a sort and a union-find). All are checked against each other before timing; `ns_per_tree`
// (processor time) is the relevant figure.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "aimle/base/isa.h"
#include "aimle/map/spanning_tree.h"

namespace {

using aimle::Isa;
using aimle::Rows;
using aimle::SpanningTree;
using aimle::Status;
using Layout = SpanningTree::Layout;

struct Problem {
  SpanningTree solver;
  int64_t count;
  std::vector<float> scores;
  std::vector<float> z;
  std::vector<Status> status;

  Problem(const SpanningTree& solver, int64_t count)
      : solver(solver),
        count(count),
        scores(static_cast<size_t>(count * solver.size())),
        z(scores.size()),
        status(static_cast<size_t>(count)) {
    std::mt19937_64 rng(7);
    std::normal_distribution<float> normal;
    for (float& score : scores) score = normal(rng);
  }

  Rows<float> rows() {
    return {.count = count, .scores = scores.data(), .z = z.data(), .status = status.data()};
  }
};

void kruskal(const SpanningTree& solver, const Rows<float>& rows) {
  struct Edge {
    float weight;
    int i, j;
  };
  const int64_t n = solver.vertices;
  const bool directed = solver.layout == Layout::kDirected;
  std::vector<Edge> edges(static_cast<size_t>(solver.edges()));
  std::vector<int> parent(static_cast<size_t>(n));
  const auto root = [&](int v) {
    while (parent[static_cast<size_t>(v)] != v) {
      v = parent[static_cast<size_t>(v)] =
          parent[static_cast<size_t>(parent[static_cast<size_t>(v)])];
    }
    return v;
  };
  for (int64_t r = 0; r < rows.count; ++r) {
    const float* x = rows.scores + r * solver.size();
    float* z = rows.z + r * solver.size();
    size_t e = 0;
    for (int i = 0; i < n; ++i) {
      for (int j = i + 1; j < n; ++j, ++e) {
        const float weight =
            directed ? x[SpanningTree::arc(i, j, n)] + x[SpanningTree::arc(j, i, n)] : x[e];
        edges[e] = {weight, i, j};
      }
    }
    std::sort(edges.begin(), edges.end(),
              [](const Edge& a, const Edge& b) { return a.weight > b.weight; });
    std::iota(parent.begin(), parent.end(), 0);
    std::fill_n(z, solver.size(), 0.0f);
    for (const Edge& edge : edges) {
      const int a = root(edge.i), b = root(edge.j);
      if (a == b) continue;
      parent[static_cast<size_t>(a)] = b;
      if (directed) {
        z[SpanningTree::arc(edge.i, edge.j, n)] = z[SpanningTree::arc(edge.j, edge.i, n)] = 1;
      } else {
        z[SpanningTree::edge(edge.i, edge.j, n)] = 1;
      }
    }
    rows.status[r] = Status::kOk;
  }
}

std::vector<Isa> instruction_sets() {
  if (aimle::processor_has_avx2()) return {Isa::kPortable, Isa::kAvx2};
  return {Isa::kPortable};
}

void check(const SpanningTree& solver, int64_t count) {
  Problem expected(solver, count);
  kruskal(solver, expected.rows());
  for (const Isa isa : instruction_sets()) {
    aimle::use_isa(isa);
    Problem got(solver, count);
    solve_rows(solver, got.rows());
    if (got.z != expected.z || got.status != expected.status) {
      std::fprintf(stderr, "spanning_tree: vertices=%d, %s differs from Kruskal\n",
                   static_cast<int>(solver.vertices), std::string(aimle::name(isa)).c_str());
      std::exit(1);
    }
  }
}

template <class Body>
void time(benchmark::State& state, Problem problem, const Body& body) {
  const Rows<float> rows = problem.rows();
  const std::clock_t start = std::clock();
  for (auto _ : state) {
    body(problem.solver, rows);
    benchmark::DoNotOptimize(problem.z.data());
    benchmark::ClobberMemory();
  }
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  state.counters["ns_per_tree"] =
      1e9 * seconds / static_cast<double>(state.iterations() * problem.count);
}

}  // namespace

int main(int argc, char** argv) {
  struct Size {
    int64_t vertices, count;
  };
  for (const Size size : {Size{10, 128}, Size{30, 128}, Size{300, 4}}) {
    for (const Layout layout : {Layout::kUndirected, Layout::kDirected}) {
      const SpanningTree solver{.vertices = size.vertices, .layout = layout};
      check(solver, size.count);
      const std::string name = "spanning_tree/vertices:" + std::to_string(size.vertices) +
                               (layout == Layout::kDirected ? "/directed/" : "/undirected/");
      for (const Isa isa : instruction_sets()) {
        benchmark::RegisterBenchmark(
            (name + std::string(aimle::name(isa))).c_str(), [=](benchmark::State& state) {
              aimle::use_isa(isa);
              time(state, Problem(solver, size.count),
                   [](const SpanningTree& s, const Rows<float>& rows) { solve_rows(s, rows); });
            });
      }
      benchmark::RegisterBenchmark((name + "kruskal").c_str(), [=](benchmark::State& state) {
        time(state, Problem(solver, size.count), kruskal);
      });
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
