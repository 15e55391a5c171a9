#include "aimle/map/spanning_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "aimle/map/spanning_tree_avx2.h"
#include "tests/map/conformance.h"
#include "tests/map/spanning_tree_instances.h"

namespace aimle {
namespace {

using conformance::Batch;
using conformance::Draw;
using conformance::Rng;
using conformance::Solved;
using Layout = SpanningTree::Layout;

/// Runs each test of a type with every instruction set.
template <class T>
class SpanningTreeOf : public testing::Test {
 protected:
  template <class Body>
  void with_every_isa(const Body& body) {
    for (const Isa isa : conformance::instruction_sets()) {
      SCOPED_TRACE(name(isa));
      const conformance::WithIsa with(isa);
      body();
    }
  }
};

using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(SpanningTreeOf, Scalars);

/// Nine copies of one row, so that the kernels which solve several rows at once take part; all
/// must come out alike, and the first is returned.
template <class T>
Solved<T> solve_row(const SpanningTree& solver, const std::vector<T>& x,
                    const std::vector<bool>& mask = {}) {
  Batch<T> batch{.count = 9, .size = solver.size()};
  batch.mask.resize(mask.empty() ? 0 : 9 * mask.size());
  for (size_t r = 0; r < 9; ++r) {
    batch.scores.insert(batch.scores.end(), x.begin(), x.end());
    for (size_t e = 0; e < mask.size(); ++e) batch.mask[r * mask.size() + e] = mask[e];
  }
  Solved<T> solved = conformance::solve_batch(solver, batch);
  for (size_t r = 0; r < 9; ++r) {
    EXPECT_EQ(solved.status[r], solved.status[0]);
    for (size_t e = 0; e < x.size(); ++e) {
      const T a = solved.z[r * x.size() + e], b = solved.z[e];
      EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << "row " << r << " entry " << e;
    }
  }
  solved.z.resize(x.size());
  return solved;
}

/// The chosen edges of an undirected row as "01 23 ".
template <class T>
std::string edges(int64_t n, const Solved<T>& solved) {
  std::ostringstream text;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j) {
      if (solved.z[static_cast<size_t>(SpanningTree::edge(i, j, n))] == 1) text << i << j << ' ';
    }
  }
  return text.str();
}

template <class T>
void expect_refused(const Solved<T>& solved, Status status) {
  EXPECT_EQ(solved.status[0], status);
  for (const T z : solved.z) EXPECT_TRUE(std::isnan(z));
}

TYPED_TEST(SpanningTreeOf, FourVertices) {
  const std::vector<TypeParam> x = {TypeParam(.7601),  TypeParam(-.2046),  TypeParam(-.4689),
                                    TypeParam(-.5127), TypeParam(-1.9023), TypeParam(1.1506)};
  this->with_every_isa([&] {
    const auto solved = solve_row(SpanningTree{.vertices = 4}, x);
    EXPECT_EQ(solved.status[0], Status::kOk);
    EXPECT_EQ(edges(4, solved), "01 02 23 ");
  });
}

TYPED_TEST(SpanningTreeOf, FiveVerticesOfTotal44) {
  const std::vector<TypeParam> x = {8, 5, 0, 0, 9, 11, 0, 15, 10, 7};
  this->with_every_isa([&] {
    const auto solved = solve_row(SpanningTree{.vertices = 5}, x);
    EXPECT_EQ(edges(5, solved), "01 13 23 24 ");
    TypeParam total = 0;
    for (size_t e = 0; e < x.size(); ++e) total += x[e] * solved.z[e];
    EXPECT_EQ(total, 44);
  });
}

TYPED_TEST(SpanningTreeOf, EqualWeightsGiveTheStarOfVertexZero) {
  this->with_every_isa([&] {
    for (const TypeParam w : {TypeParam(0), TypeParam(2), TypeParam(-INFINITY)}) {
      for (const int64_t n : {6, 20}) {
        const SpanningTree solver{.vertices = n};
        const auto solved =
            solve_row(solver, std::vector<TypeParam>(static_cast<size_t>(solver.edges()), w));
        for (int64_t e = 0; e < solver.edges(); ++e) {
          EXPECT_EQ(solved.z[static_cast<size_t>(e)], e < n - 1 ? 1 : 0) << "w=" << w;
        }
      }
    }
  });
}

TYPED_TEST(SpanningTreeOf, NegativeZeroTiesWithZero) {
  this->with_every_isa([&] {
    const auto solved = solve_row<TypeParam>(SpanningTree{.vertices = 3}, {-0.0, -0.0, 0.0});
    EXPECT_EQ(edges(3, solved), "01 02 ");
  });
}

TYPED_TEST(SpanningTreeOf, DirectedWeightIsTheSumOfBothDirections) {
  // Receiver-major: row 0 = senders 1, 2; row 1 = senders 0, 2; row 2 = senders 0, 1.
  const std::vector<TypeParam> x = {5, 1, -4, 2, 1, 2};  // {0,1}: 1, {0,2}: 2, {1,2}: 4
  this->with_every_isa([&] {
    const auto solved = solve_row(SpanningTree{.vertices = 3, .layout = Layout::kDirected}, x);
    EXPECT_EQ(solved.z, (std::vector<TypeParam>{0, 1, 0, 1, 1, 1}));
  });
}

TYPED_TEST(SpanningTreeOf, DirectedWeightIsRoundedOnceInTheTypeOfTheScores) {
  // 1 + tiny rounds to 1, so {0,1} and {0,2} tie although the exact sums differ.
  const TypeParam tiny = std::numeric_limits<TypeParam>::epsilon() / 4;
  const std::vector<TypeParam> x = {1, 1, 0, 1, tiny, 1};
  this->with_every_isa([&] {
    const auto solved = solve_row(SpanningTree{.vertices = 3, .layout = Layout::kDirected}, x);
    EXPECT_EQ(solved.z, (std::vector<TypeParam>{1, 0, 1, 1, 0, 1}));
  });
}

TYPED_TEST(SpanningTreeOf, DirectedSumOfOppositeInfinitiesIsNaN) {
  const TypeParam inf = std::numeric_limits<TypeParam>::infinity();
  this->with_every_isa([&] {
    expect_refused(solve_row<TypeParam>(SpanningTree{.vertices = 3, .layout = Layout::kDirected},
                                        {inf, 1, -inf, 2, 1, 2}),
                   Status::kNaN);
  });
}

TYPED_TEST(SpanningTreeOf, MaskThatPartsTheGraphIsDisconnected) {
  const std::vector<TypeParam> x = {1, 2, 3, 4, 5, 6};
  this->with_every_isa([&] {
    const SpanningTree solver{.vertices = 4};
    expect_refused(solve_row(solver, x, {true, false, false, false, false, true}),
                   Status::kDisconnected);
    EXPECT_EQ(edges(4, solve_row(solver, x, {true, false, false, true, false, true})), "01 12 23 ");
  });
}

TYPED_TEST(SpanningTreeOf, DirectedEdgeNeedsBothDirectionsUnmasked) {
  const std::vector<TypeParam> x = {1, 9, 1, 2, 9, 2};
  this->with_every_isa([&] {
    const SpanningTree solver{.vertices = 3, .layout = Layout::kDirected};
    const auto solved = solve_row(solver, x, {true, false, true, true, true, true});
    EXPECT_EQ(solved.z, (std::vector<TypeParam>{1, 0, 1, 1, 0, 1}));
    expect_refused(solve_row(solver, x, {true, false, false, true, true, true}),
                   Status::kDisconnected);
  });
}

TYPED_TEST(SpanningTreeOf, NaNCountsOnlyWhereUnmaskedAndComesFirst) {
  const TypeParam nan = std::numeric_limits<TypeParam>::quiet_NaN();
  this->with_every_isa([&] {
    const SpanningTree solver{.vertices = 3};
    expect_refused(solve_row<TypeParam>(solver, {1, nan, 3}), Status::kNaN);
    EXPECT_EQ(edges(3, solve_row<TypeParam>(solver, {1, nan, 3}, {true, false, true})), "01 12 ");
    expect_refused(solve_row<TypeParam>(solver, {1, 2, nan}, {false, false, true}), Status::kNaN);
  });
}

TYPED_TEST(SpanningTreeOf, TieBetweenTwoNeighboursOfAVertexGoesToTheLower) {
  this->with_every_isa([&] {
    for (const int64_t n : {12, 30, 100, 200}) {
      // 2 and n - 1 are joined early; 7 then ties between them, and all else is distinct.
      const SpanningTree solver{.vertices = n};
      std::vector<TypeParam> x;
      for (int64_t e = 0; e < solver.edges(); ++e) x.push_back(-TypeParam(e));
      const auto entry = [&](int64_t i, int64_t j) -> TypeParam& {
        return x[static_cast<size_t>(SpanningTree::edge(i, j, n))];
      };
      entry(2, n - 1) = 9;
      entry(2, 7) = entry(7, n - 1) = 5;
      const auto solved = solve_row(solver, x);
      EXPECT_EQ(solved.z[static_cast<size_t>(SpanningTree::edge(2, 7, n))], 1) << "n=" << n;
      EXPECT_EQ(solved.z[static_cast<size_t>(SpanningTree::edge(7, n - 1, n))], 0) << "n=" << n;
    }
  });
}

/// Each kernel has its own range of sizes and its own remainders: none is left out.
TYPED_TEST(SpanningTreeOf, AgreesWithKruskalOnEverySmallSize) {
  this->with_every_isa([&] {
    for (int64_t n = 1; n <= 40; ++n) {
      for (const Layout layout : {Layout::kUndirected, Layout::kDirected}) {
        const SpanningTree solver{.vertices = n, .layout = layout};
        for (const Draw draw : {Draw::kExact, Draw::kTied, Draw::kExtreme}) {
          const auto seed = static_cast<uint64_t>(n);
          Rng rng(seed);
          const auto batch =
              conformance::draw_batch<TypeParam>(solver, {.count = 27, .draw = draw}, rng);
          conformance::expect_oracle(solver, batch, conformance::solve_batch(solver, batch));
          if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
        }
      }
    }
  });
}

TYPED_TEST(SpanningTreeOf, ThreeHundredVertices) {
  this->with_every_isa([&] {
    for (const Layout layout : {Layout::kUndirected, Layout::kDirected}) {
      const SpanningTree solver{.vertices = 300, .layout = layout};
      for (const Draw draw : {Draw::kExact, Draw::kTied}) {
        for (const bool mask : {false, true}) {
          Rng rng(1);
          const auto batch = conformance::draw_batch<TypeParam>(
              solver, {.count = 1, .draw = draw, .mask = mask}, rng);
          conformance::expect_oracle(solver, batch, conformance::solve_batch(solver, batch));
        }
      }
    }
  });
}

/// A row of one of the flavours that trees are sensitive to; most have a few ties, not many.
template <class T>
std::vector<T> draw_row(int64_t size, Rng& rng) {
  using Limits = std::numeric_limits<T>;
  const int64_t flavour = conformance::uniform(rng, 0, 7);
  const int64_t rarity = conformance::uniform(rng, 2, 40);
  std::vector<T> x;
  for (int64_t e = 0; e < size; ++e) {
    const T any = T(conformance::uniform(rng, -(1 << 20), 1 << 20)) / T(1 << 17);
    const bool special = conformance::one_in(rng, rarity);
    switch (flavour) {
      case 0:
        x.push_back(any);
        break;
      case 1:  // some entries repeat an earlier one
        x.push_back(special && e > 0 ? x[static_cast<size_t>(conformance::uniform(rng, 0, e - 1))]
                                     : any);
        break;
      case 2:
        x.push_back(special ? Limits::infinity() : any);
        break;
      case 3:
        x.push_back(special ? -Limits::infinity() : any);
        break;
      case 4:  // zeros of both signs and subnormals
        x.push_back(special ? std::copysign(T(0), any)
                            : Limits::denorm_min() * T(conformance::uniform(rng, -2000, 2000)));
        break;
      case 5:  // neighbours in the last place
        x.push_back(1 + Limits::epsilon() * T(conformance::uniform(rng, 0, 300)));
        break;
      case 6:  // sums that overflow
        x.push_back(special ? std::copysign(Limits::max(), any) : any);
        break;
      case 7:
        x.push_back(any);
        if (e == size - 1) {
          x[static_cast<size_t>(conformance::uniform(rng, 0, e))] = Limits::quiet_NaN();
        }
    }
  }
  return x;
}

TYPED_TEST(SpanningTreeOf, FuzzAgreesWithKruskal) {
  this->with_every_isa([&] {
    for (uint64_t seed = 0; seed < 300; ++seed) {
      Rng rng(seed);
      const SpanningTree solver{
          .vertices = conformance::one_in(rng, 8) ? conformance::uniform(rng, 25, 140)
                                                  : conformance::uniform(rng, 2, 24),
          .layout = conformance::one_in(rng, 2) ? Layout::kDirected : Layout::kUndirected};
      auto batch = conformance::draw_batch<TypeParam>(
          solver, {.count = conformance::uniform(rng, 1, 17), .mask = conformance::one_in(rng, 5)},
          rng);
      batch.scores.clear();
      for (int64_t r = 0; r < batch.count; ++r) {
        const auto row = draw_row<TypeParam>(batch.size, rng);
        batch.scores.insert(batch.scores.end(), row.begin(), row.end());
      }
      conformance::expect_oracle(solver, batch, conformance::solve_batch(solver, batch));
      if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
    }
  });
}

TYPED_TEST(SpanningTreeOf, SymmetriseTakesTheMeanInPlaceToo) {
  const std::vector<TypeParam> x = {5, 1, -4, 2, 1, 2, 1, 1, 3, 3, 5, 5};
  const std::vector<TypeParam> want = {0.5, 1, 0.5, 2, 1, 2, 2, 3, 2, 4, 3, 4};
  std::vector<TypeParam> out(x.size());
  symmetrise(3, 2, x.data(), out.data());
  EXPECT_EQ(out, want);
  out = x;
  symmetrise(3, 2, out.data(), out.data());
  EXPECT_EQ(out, want);
  const TypeParam most = std::numeric_limits<TypeParam>::max();
  std::vector<TypeParam> pair = {most, most};
  symmetrise(2, 1, pair.data(), pair.data());
  EXPECT_EQ(pair, (std::vector<TypeParam>{most, most}));
}

/// Falling back to the portable solver is right but slow: it must not happen without ties.
TEST(SpanningTree, KernelsSolveRowsWithoutTiesThemselves) {
  if constexpr (kBuiltWithAvx2) {
    if (!processor_has_avx2()) GTEST_SKIP() << "no AVX2 on this machine";
    for (const bool directed : {false, true}) {
      for (const int64_t n : {5, 6, 10, 13, 24, 25, 32, 33, 64, 65, 130}) {
        const SpanningTree solver{.vertices = n,
                                  .layout = directed ? Layout::kDirected : Layout::kUndirected};
        constexpr int64_t kCount = 11;
        std::vector<float> x;
        Rng rng(static_cast<uint64_t>(n));
        for (int64_t e = 0; e < kCount * solver.size(); ++e) x.push_back(static_cast<float>(e));
        for (int64_t r = 0; r < kCount; ++r) {
          std::shuffle(x.begin() + r * solver.size(), x.begin() + (r + 1) * solver.size(), rng);
        }
        if (directed) {  // sums may tie, so leave one direction out
          for (int64_t e = 0; e < kCount * solver.size(); ++e) {
            const int64_t entry = e % solver.size();
            if (entry % (n - 1) < entry / (n - 1)) x[static_cast<size_t>(e)] = 0;
          }
        }
        std::vector<float> z(x.size());
        std::vector<Status> status(kCount, Status::kBadK);
        const avx2::TreeRows rows{.vertices = n,
                                  .directed = directed,
                                  .count = kCount,
                                  .scores = x.data(),
                                  .z = z.data(),
                                  .status = status.data(),
                                  .solve_one = [](const avx2::TreeRows& all, int64_t r) {
                                    all.status[r] = Status::kNaN;
                                  }};
        if (n <= avx2::kMaxClosureVertices) {
          avx2::solve_by_closure(rows);
          EXPECT_EQ(status, std::vector<Status>(kCount, Status::kOk)) << "closure n=" << n;
          status.assign(kCount, Status::kBadK);
        }
        std::vector<float> scratch(static_cast<size_t>(avx2::prim_scratch(n)));
        avx2::solve_by_prim(rows, scratch.data());
        EXPECT_EQ(status, std::vector<Status>(kCount, Status::kOk)) << "prim n=" << n;
      }
    }
  }
}

TEST(SpanningTree, BadSettingsAreNamed) {
  for (const int64_t vertices : {int64_t{0}, int64_t{-3}, SpanningTree::kMaxVertices + 1}) {
    try {
      SpanningTree{.vertices = vertices}.validate();
      FAIL() << "vertices=" << vertices;
    } catch (const std::invalid_argument& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find("[aimle::spanning_tree] expected 1 <= vertices"), std::string::npos);
      EXPECT_NE(message.find("vertices=" + std::to_string(vertices)), std::string::npos);
    }
  }
  float x[1] = {0};
  EXPECT_THROW(symmetrise<float>(0, 1, x, x), std::invalid_argument);
  EXPECT_THROW(symmetrise<float>(1, -1, x, x), std::invalid_argument);
}

}  // namespace
}  // namespace aimle
