#include "aimle/map/graph_path.h"

#include <gtest/gtest.h>

#include "tests/map/graph_path_instances.h"

namespace aimle {
namespace {

using conformance::Arc;
using conformance::Draw;
using conformance::graph_data;
using conformance::Instances;
using conformance::one_in;
using conformance::Rng;
using conformance::Structure;
using conformance::uniform;

constexpr double kInf = std::numeric_limits<double>::infinity();

/// A solver with the data of all its instances.
template <class S>
struct Problem {
  S solver;
  std::vector<int64_t> data;
};

template <class S>
Problem<S> problem(int64_t vertices, int64_t source, int64_t target, const std::vector<Arc>& arcs) {
  int64_t edges = 0;
  for (const Arc& arc : arcs) edges = std::max(edges, arc.entry + 1);
  Problem<S> made{{.vertices = vertices, .edges = edges, .arcs = std::ssize(arcs)},
                  graph_data(vertices, source, target, arcs)};
  made.solver.take_data(std::ssize(made.data), made.data.data());
  made.solver.validate();
  return made;
}

/// The answer for one row as text: its entries, or the status.
template <class S>
std::string answer(const Problem<S>& problem, const std::vector<double>& x) {
  std::vector<double> z(x.size());
  Status status{};
  solve(problem.solver, Rows<double>{.count = 1,
                                     .scores = x.data(),
                                     .data = {problem.data.data()},
                                     .z = z.data(),
                                     .status = &status});
  if (status != Status::kOk) return std::string(describe(status));
  std::string entries;
  for (size_t j = 0; j < z.size(); ++j) {
    if (z[j] == 1) entries += std::to_string(j);
  }
  return entries;
}

/// Two ways from 0 to 3: over 1 (entries 0, 1) and over 2 (entries 2, 3); entry 4 goes straight.
const std::vector<Arc> kDiamond = {{0, 1, 0}, {1, 3, 1}, {0, 2, 2}, {2, 3, 3}, {0, 3, 4}};

TEST(GraphPath, TakesTheCheapestWay) {
  const auto graph = problem<GraphPath>(4, 0, 3, kDiamond);
  EXPECT_EQ(answer(graph, {1, 1, 1, 0.5, 9}), "23");
  EXPECT_EQ(answer(graph, {1, 1, 1, 2, 1.5}), "4");
  EXPECT_EQ(answer(graph, {1, kInf, 1, 2, kInf}), "23");
  EXPECT_EQ(answer(graph, {-1, 1, 0.5, 0, 9}), "23") << "costs below zero are zero";
}

TEST(DagPath, TakesTheBestWayWhateverTheSigns) {
  const auto graph = problem<DagPath>(4, 0, 3, kDiamond);
  EXPECT_EQ(answer(graph, {1, 1, 1, 0.5, 1.75}), "01");
  EXPECT_EQ(answer(graph, {-3, 1, -1, -2, -2.5}), "01");
  EXPECT_EQ(answer(graph, {-3, -kInf, -1, -kInf, -2.5}), "4");
  EXPECT_EQ(answer(graph, {-3, kInf, kInf, 1, -2.5}), "01") << "of equals the lower entry";
}

TEST(GraphPath, TiesTakeFewestArcsThenTheLowerEntry) {
  const auto graph = problem<GraphPath>(4, 0, 3, kDiamond);
  EXPECT_EQ(answer(graph, {1, 1, 1, 1, 2}), "4");
  EXPECT_EQ(answer(graph, {1, 1, 1, 1, 3}), "01");
  EXPECT_EQ(answer(graph, {1, 1e-30, 1, 1e-31, 1}), "4") << "what rounding swallows";
  EXPECT_EQ(answer(problem<GraphPath>(2, 0, 1, {{0, 1, 2}, {0, 1, 1}, {0, 1, 0}}), {2, 1, 1}), "1");
}

TEST(GraphPath, RefusesWhatHasNoPath) {
  EXPECT_EQ(answer(problem<GraphPath>(4, 3, 0, kDiamond), {1, 1, 1, 1, 1}),
            describe(Status::kDisconnected));
  EXPECT_EQ(answer(problem<DagPath>(4, 3, 0, kDiamond), {1, 1, 1, 1, 1}),
            describe(Status::kDisconnected));
  EXPECT_EQ(answer(problem<GraphPath>(4, 2, 2, kDiamond), {1, 1, 1, 1, 1}), "");
  EXPECT_EQ(answer(problem<GraphPath>(4, 0, 4, kDiamond), {1, 1, 1, 1, 1}),
            describe(Status::kBadData));
  auto cycle = kDiamond;
  cycle.push_back({2, 1, 5});
  EXPECT_EQ(answer(problem<DagPath>(4, 0, 3, cycle), {1, 1, 1, 1, 1, 1}),
            describe(Status::kBadData));
}

TEST(GraphPath, ListsItsPaths) {
  const auto graph = problem<GraphPath>(4, 0, 3, kDiamond);
  const std::vector<uint8_t> all = {1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1};
  EXPECT_EQ(graph.solver.structures(), all);
  EXPECT_EQ(problem<DagPath>(4, 0, 3, kDiamond).solver.structures(), all);
  EXPECT_EQ(graph.solver.structure_count(), 3);
  EXPECT_TRUE(problem<GraphPath>(4, 3, 0, kDiamond).solver.structures().empty());
  EXPECT_EQ((GraphPath{.vertices = 4, .edges = 5}.structure_count()), kInf);
  std::vector<Arc> ladder;  // 2^40 paths
  for (int64_t v = 0; v < 40; ++v)
    ladder.insert(ladder.end(), {{v, v + 1, 2 * v}, {v, v + 1, 2 * v + 1}});
  EXPECT_EQ(problem<DagPath>(41, 0, 40, ladder).solver.structure_count(), 0x1p40);
  EXPECT_THROW(problem<DagPath>(41, 0, 40, ladder).solver.structures(), std::invalid_argument);
  EXPECT_EQ(problem<GraphPath>(41, 0, 40, ladder).solver.structure_count(), kInf);
}

TEST(GraphPath, BadSettingsAreNamed) {
  const auto refused = [](const GraphPath& solver) {
    try {
      solver.validate();
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refused({.edges = 3}).find("expected 1 <= vertices"), std::string::npos);
  GraphPath solver{.vertices = 4};
  solver.take_data(16, nullptr);
  solver.fit({{5}});
  EXPECT_NE(refused(solver).find("[aimle::graph_path] expected as data the source, the target, 5 "
                                 "offsets, and the tails and the entries of the arcs, 7 + 2 arcs "
                                 "numbers for vertices=4, but got 16"),
            std::string::npos)
      << refused(solver);
}

template <class C>
class RowsOfOneGraph : public testing::Test {};

template <class S_, class T_>
struct Case {
  using S = S_;
  using T = T_;
};
using Cases = testing::Types<Case<GraphPath, float>, Case<GraphPath, double>, Case<DagPath, float>,
                             Case<DagPath, double>>;
TYPED_TEST_SUITE(RowsOfOneGraph, Cases);

/// Solves a batch whose rows share the data of its first row.
template <class S, class T>
conformance::Solved<T> solve_shared(const S& solver, const conformance::Batch<T>& batch) {
  conformance::Solved<T> solved{std::vector<T>(batch.scores.size()),
                                std::vector<Status>(static_cast<size_t>(batch.count))};
  solve(solver, Rows<T>{.count = batch.count,
                        .scores = batch.scores.data(),
                        .mask = batch.mask.size() != 0 ? &batch.mask[0] : nullptr,
                        .data = {batch.data.data()},
                        .z = solved.z.data(),
                        .status = solved.status.data()});
  return solved;
}

/// The rows of a batch get the data of its first row.
template <class T>
void share_data(conformance::Batch<T>& batch) {
  const auto length = static_cast<size_t>(batch.data_length());
  for (size_t i = length; i < batch.data.size(); ++i) batch.data[i] = batch.data[i - length];
}

TYPED_TEST(RowsOfOneGraph, AreSolvedAsTheRuleSays) {
  using S = typename TypeParam::S;
  using T = typename TypeParam::T;
  for (const Isa isa : conformance::instruction_sets()) {
    const conformance::WithIsa with(isa);
    for (uint64_t seed = 0; seed < 400; ++seed) {
      Rng rng(seed);
      const S solver = Instances<S>::draw_any(rng);
      for (const Draw draw : {Draw::kExact, Draw::kTied, Draw::kExtreme}) {
        auto batch = conformance::draw_batch<T>(
            solver, {.count = uniform(rng, 1, 40), .draw = draw, .mask = one_in(rng, 3)}, rng);
        share_data(batch);
        conformance::expect_oracle(solver, batch, solve_shared(solver, batch));
      }
      if (testing::Test::HasFailure()) FAIL() << "isa " << name(isa) << ", seed " << seed;
    }
  }
}

/// The cheapest path jumps between low and high vertices, all of which have an arc from the source:
/// sweeps up and down advance it by a step each, and do not settle in time.
template <class T>
void check_a_zigzag() {
  constexpr int64_t kVertices = 1001;
  std::vector<Arc> arcs;
  conformance::Batch<T> batch{.count = 6};
  std::vector<T> costs;
  const auto add = [&](int64_t tail, int64_t head, int64_t cost) {
    arcs.push_back({tail, head, std::ssize(arcs)});
    costs.push_back(static_cast<T>(cost));
  };
  for (int64_t v = 1; v < kVertices; ++v) add(0, v, 3 * kVertices);
  int64_t at = 0;
  for (int64_t low = 1, high = kVertices - 1; low < high; ++low, --high) {
    add(at, low, 1);
    add(low, high, 1);
    at = high;
  }
  batch.size = std::ssize(arcs);
  const GraphPath solver{.vertices = kVertices, .edges = batch.size};
  const auto data = graph_data(kVertices, 0, at, arcs);
  for (int64_t i = 0; i < batch.count; ++i) {
    batch.scores.insert(batch.scores.end(), costs.begin(), costs.end());
    batch.data.insert(batch.data.end(), data.begin(), data.end());
  }
  for (const Isa isa : conformance::instruction_sets()) {
    const conformance::WithIsa with(isa);
    conformance::expect_oracle(solver, batch, solve_shared(solver, batch));
  }
}

TEST(GraphPath, SweepsThatDoNotSettleAreGivenUp) {
  check_a_zigzag<float>();
  check_a_zigzag<double>();
}

}  // namespace
}  // namespace aimle
