// The conformance test that every solver passes, in float and double, with every instruction set.
#include "tests/map/conformance.h"

#include <gtest/gtest.h>

#include "tests/map/arborescence_instances.h"
#include "tests/map/argmax_instances.h"
#include "tests/map/assignment_instances.h"
#include "tests/map/bernoulli_instances.h"
#include "tests/map/chain_instances.h"
#include "tests/map/graph_path_instances.h"
#include "tests/map/grid_path_instances.h"
#include "tests/map/knapsack_instances.h"
#include "tests/map/lattice_path_instances.h"
#include "tests/map/spanning_tree_instances.h"
#include "tests/map/topk_instances.h"

namespace aimle::conformance {
namespace {

template <Conforming S_, class T_>
struct Case {
  using S = S_;
  using T = T_;
};

using Cases = testing::Types<  //
    Case<Argmax, float>, Case<Argmax, double>, Case<TopK, float>, Case<TopK, double>,
    Case<SpanningTree, float>, Case<SpanningTree, double>, Case<GridPath, float>,
    Case<GridPath, double>, Case<Assignment, float>, Case<Assignment, double>,
    Case<Arborescence, float>, Case<Arborescence, double>, Case<Bernoulli, float>,
    Case<Bernoulli, double>, Case<Chain, float>, Case<Chain, double>, Case<LatticePath, float>,
    Case<LatticePath, double>, Case<LatticeMoves, float>, Case<LatticeMoves, double>,
    Case<Knapsack, float>, Case<Knapsack, double>, Case<GraphPath, float>, Case<GraphPath, double>,
    Case<DagPath, float>, Case<DagPath, double>>;

struct CaseName {
  template <class C>
  static std::string GetName(int) {
    return std::string(C::S::kName) + (sizeof(typename C::T) == 4 ? "_float" : "_double");
  }
};

template <class C>
class SolverConformance : public testing::Test {
 protected:
  using S = typename C::S;
  using T = typename C::T;

  /// Calls `body(rng)` for seeds 0 .. seeds-1 with every instruction set, and stops at the first
  /// that fails.
  template <class Body>
  void for_seeds(int seeds, const Body& body) {
    for (const Isa isa : instruction_sets()) {
      const WithIsa with(isa);
      for (int seed = 0; seed < seeds; ++seed) {
        Rng rng(static_cast<uint64_t>(seed));
        body(rng);
        if (testing::Test::HasFailure()) FAIL() << "isa " << name(isa) << ", seed " << seed;
      }
    }
  }
};

TYPED_TEST_SUITE(SolverConformance, Cases, CaseName);

TYPED_TEST(SolverConformance, IsFeasibleAndOptimal) {
  using T = typename TestFixture::T;
  this->for_seeds(300, [](Rng& rng) {
    const auto solver = Instances<typename TestFixture::S>::draw_small(rng);
    solver.validate();
    for (const Draw draw : {Draw::kExact, Draw::kTied}) {
      const auto batch = draw_batch<T>(
          solver, {.count = 8, .draw = draw, .mask = one_in(rng, 2), .k = one_in(rng, 2)}, rng);
      const auto solved = solve_batch(solver, batch);
      expect_optimal(solver, batch, solved);
      expect_oracle(solver, batch, solved);
    }
  });
}

TYPED_TEST(SolverConformance, KeepsTheTieRule) {
  using T = typename TestFixture::T;
  this->for_seeds(400, [](Rng& rng) {
    const auto solver = Instances<typename TestFixture::S>::draw_any(rng);
    const auto batch = draw_batch<T>(
        solver, {.count = 12, .draw = Draw::kTied, .mask = one_in(rng, 3), .k = one_in(rng, 3)},
        rng);
    expect_oracle(solver, batch, solve_batch(solver, batch));
  });
}

TYPED_TEST(SolverConformance, AgreesWithTheOracleOnExtremeValues) {
  using T = typename TestFixture::T;
  this->for_seeds(400, [](Rng& rng) {
    const auto solver = Instances<typename TestFixture::S>::draw_any(rng);
    const auto batch = draw_batch<T>(
        solver, {.count = 12, .draw = Draw::kExtreme, .mask = one_in(rng, 3), .k = one_in(rng, 3)},
        rng);
    expect_oracle(solver, batch, solve_batch(solver, batch));
  });
}

TYPED_TEST(SolverConformance, DoesNotDependOnTheScale) {
  using T = typename TestFixture::T;
  this->for_seeds(100, [](Rng& rng) {
    const auto solver = Instances<typename TestFixture::S>::draw_any(rng);
    auto batch = draw_batch<T>(solver, {.count = 10, .mask = one_in(rng, 2)}, rng);
    const auto solved = solve_batch(solver, batch);
    const auto scores = batch.scores;
    for (const int exponent : {-130, -20, 1, 100}) {  // -130: subnormal in float, yet exact
      for (size_t j = 0; j < scores.size(); ++j) batch.scores[j] = std::ldexp(scores[j], exponent);
      expect_same(solver, batch, solved, solve_batch(solver, batch));
    }
  });
}

TYPED_TEST(SolverConformance, SolvesABatchAsALoopOverItsRows) {
  using T = typename TestFixture::T;
  this->for_seeds(100, [](Rng& rng) {
    const auto solver = Instances<typename TestFixture::S>::draw_any(rng);
    const auto batch = draw_batch<T>(solver,
                                     {.count = uniform(rng, 1, 40),
                                      .draw = one_in(rng, 2) ? Draw::kExact : Draw::kTied,
                                      .mask = one_in(rng, 2),
                                      .k = one_in(rng, 2)},
                                     rng);
    const auto by_row = [](int64_t count, const auto& body) {
      for (int64_t i = 0; i < count; ++i) body(i, i + 1);
    };
    expect_same(solver, batch, solve_batch(solver, batch), solve_batch(solver, batch, by_row));
  });
}

TYPED_TEST(SolverConformance, DoesNotDependOnTheThreadCount) {
  using T = typename TestFixture::T;
  this->for_seeds(12, [](Rng& rng) {
    const auto solver = Instances<typename TestFixture::S>::draw_any(rng);
    const auto batch = draw_batch<T>(
        solver, {.count = 203, .draw = Draw::kTied, .mask = one_in(rng, 2), .k = one_in(rng, 2)},
        rng);
    const auto solved = solve_batch(solver, batch);
    for (int threads = 1; threads <= 8; ++threads) {
      const auto split = [&](int64_t count, const auto& body) {
        parallel_for(thread_pool(threads), count, 1e9, body);
      };
      expect_same(solver, batch, solved, solve_batch(solver, batch, split));
    }
  });
}

TYPED_TEST(SolverConformance, NaNSpoilsItsOwnRowOnly) {
  using T = typename TestFixture::T;
  this->for_seeds(200, [](Rng& rng) {
    const auto solver = Instances<typename TestFixture::S>::draw_any(rng);
    if (solver.size() == 0) return;
    auto batch = draw_batch<T>(solver, {.count = uniform(rng, 1, 20), .mask = one_in(rng, 2)}, rng);
    auto expected = solve_batch(solver, batch);
    const int64_t row = uniform(rng, 0, batch.count - 1);
    const int64_t j = uniform(rng, 0, batch.size - 1);
    const auto at = static_cast<size_t>(row * batch.size + j);
    batch.scores[at] = std::numeric_limits<T>::quiet_NaN();
    if (batch.mask.size() == 0) {
      expected.status[static_cast<size_t>(row)] = Status::kNaN;
      for (int64_t i = 0; i < batch.size; ++i) {
        expected.z[static_cast<size_t>(row * batch.size + i)] = std::numeric_limits<T>::quiet_NaN();
      }
    }
    const auto solved = solve_batch(solver, batch);
    expect_oracle(solver, batch, solved);
    if (batch.mask.size() == 0 || !batch.mask[at]) expect_same(solver, batch, expected, solved);
  });
}

TYPED_TEST(SolverConformance, TakesTheSmallestSizes) {
  using T = typename TestFixture::T;
  this->for_seeds(20, [](Rng& rng) {
    for (const auto& solver : Instances<typename TestFixture::S>::smallest()) {
      solver.validate();
      for (const Draw draw : {Draw::kExact, Draw::kTied, Draw::kExtreme}) {
        const auto batch = draw_batch<T>(
            solver, {.count = uniform(rng, 0, 10), .draw = draw, .mask = one_in(rng, 3)}, rng);
        expect_oracle(solver, batch, solve_batch(solver, batch));
      }
    }
  });
}

TYPED_TEST(SolverConformance, TakesTheLargestSize) {
  using T = typename TestFixture::T;
  this->for_seeds(1, [](Rng& rng) {
    const auto solver = Instances<typename TestFixture::S>::largest();
    for (const Draw draw : {Draw::kExact, Draw::kTied}) {
      const auto batch = draw_batch<T>(solver, {.count = 1, .draw = draw}, rng);
      expect_oracle(solver, batch, solve_batch(solver, batch));
    }
  });
}

// The pointers are null: a call that read or wrote a row would crash.
TYPED_TEST(SolverConformance, TakesAnEmptyBatch) {
  using T = typename TestFixture::T;
  this->for_seeds(5, [](Rng& rng) {
    const auto solver = Instances<typename TestFixture::S>::draw_any(rng);
    solve(solver, Rows<T>{});
    solve_rows(solver, Rows<T>{});
    solve(solver, Rows<T>{}, thread_pool(4));
  });
}

}  // namespace
}  // namespace aimle::conformance
