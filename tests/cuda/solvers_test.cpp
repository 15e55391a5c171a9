// The device algorithms of the solvers, by threads in lockstep, give what the CPU's solvers give.
#include <gtest/gtest.h>

#include "aimle/cuda/bernoulli.h"
#include "aimle/cuda/chain.h"
#include "aimle/cuda/graph_path.h"
#include "aimle/cuda/grid_path.h"
#include "aimle/cuda/knapsack.h"
#include "aimle/cuda/lattice_path.h"
#include "aimle/cuda/spanning_tree.h"
#include "aimle/map/arborescence_search.h"
#include "aimle/map/assignment_search.h"
#include "tests/cuda/lockstep.h"
#include "tests/cuda/row_in_memory.h"
#include "tests/map/arborescence_instances.h"
#include "tests/map/assignment_instances.h"
#include "tests/map/bernoulli_instances.h"
#include "tests/map/chain_instances.h"
#include "tests/map/conformance.h"
#include "tests/map/graph_path_instances.h"
#include "tests/map/grid_path_instances.h"
#include "tests/map/knapsack_instances.h"
#include "tests/map/lattice_path_instances.h"
#include "tests/map/spanning_tree_instances.h"

namespace aimle::conformance {
namespace {

using cuda::Lockstep;

/// What kernels do around a row: zeros before, NaN after a refusal.
template <class T, class Solve>
void solve_row_in_lockstep(int threads, uint64_t seed, int64_t size, T* z, Status* status,
                           const Solve& solve) {
  std::fill_n(z, size, T{0});
  std::vector<Status> outcomes(static_cast<size_t>(threads), Status(77));
  cuda::run_in_lockstep(threads, seed, [&](Lockstep& group) {
    outcomes[static_cast<size_t>(group.rank())] = solve(group, [z](int64_t j) {
      EXPECT_EQ(z[j], T{0}) << "entry " << j << " is chosen twice";
      z[j] = 1;
    });
  });
  for (const Status outcome : outcomes) EXPECT_EQ(outcome, outcomes[0]) << "threads disagree";
  *status = outcomes[0];
  if (*status != Status::kOk) std::fill_n(z, size, std::numeric_limits<T>::quiet_NaN());
}

/// Every row by solve(group, row, memory, chosen), with so many bytes of memory; on 32 threads or,
/// for one row in three, on any number of them up to `most_threads`.
template <class T, class Solve>
Solved<T> solve_each_row(const Batch<T>& batch, int64_t most_threads, int64_t bytes, Rng& rng,
                         const Solve& solve) {
  Solved<T> solved{.z = std::vector<T>(batch.scores.size()),
                   .status = std::vector<Status>(static_cast<size_t>(batch.count))};
  for (int64_t i = 0; i < batch.count; ++i) {
    const auto threads = static_cast<int>(one_in(rng, 3) ? uniform(rng, 1, most_threads) : 32);
    std::vector<T> memory(static_cast<size_t>(bytes) / sizeof(T) + 1, T(-77));
    const Instance<T> row = batch.instance(i);
    solve_row_in_lockstep(threads, rng(), batch.size, solved.z.data() + i * batch.size,
                          &solved.status[static_cast<size_t>(i)],
                          [&](Lockstep& group, const auto& chosen) {
                            return solve(group, row, memory.data(), chosen);
                          });
  }
  return solved;
}

template <class T>
RowInMemory<T> scores_of(const Instance<T>& row, const Batch<T>& batch) {
  return {row.scores, batch.size};
}

template <class Word, class T>
Solved<T> solve_in_lockstep(const SpanningTree& solver, const Batch<T>& batch, Rng& rng) {
  using Joining = cuda::Joining<T, Word>;
  const auto n = static_cast<int>(solver.vertices);
  const bool prefers_registers = !one_in(rng, 3);
  const int64_t bytes = n * static_cast<int64_t>(sizeof(Joining));
  return solve_each_row(
      batch, 40, bytes, rng,
      [&](Lockstep& group, const Instance<T>& row, void* memory, const auto& chosen) {
        const auto scores = [&](auto j) { return row.scores[j]; };
        const auto solve_with = [&](auto directed, const auto& vertices) {
          return cuda::solve_tree<Word, T, directed>(group, n, scores, row.mask, vertices, chosen);
        };
        const auto solve = [&](auto directed) {
          if (prefers_registers && n <= group.size()) {
            return solve_with(directed, cuda::OneVertex<T, Word>{});
          }
          return solve_with(directed, cuda::ManyVertices<T, Word>{static_cast<Joining*>(memory)});
        };
        return solver.layout == SpanningTree::Layout::kDirected ? solve(std::true_type{})
                                                                : solve(std::false_type{});
      });
}

/// In place where Word is wide.
template <class Word, class T>
Solved<T> solve_in_lockstep(const GridPath& solver, const Batch<T>& batch, Rng& rng) {
  using Scratch = cuda::GridScratch<T>;
  const cuda::GridShape grid = cuda::grid_shape(solver);
  return solve_each_row(
      batch, 70, Scratch::bytes(grid.padded), rng,
      [&](Lockstep& group, const Instance<T>& row, void* memory, const auto& chosen) {
        return cuda::solve_grid<sizeof(Word) == 8>(group, grid, scores_of(row, batch), row.mask,
                                                   Scratch::at(memory, grid.padded), chosen);
      });
}

template <class Word, class T>
Solved<T> solve_in_lockstep(const Knapsack& solver, const Batch<T>& batch, Rng& rng) {
  using Scratch = cuda::KnapsackScratch<T>;
  Knapsack sized = solver;
  sized.max_capacity = 2000;
  return solve_each_row(
      batch, 70, Scratch::bytes(sized), rng,
      [&](Lockstep& group, const Instance<T>& row, void* memory, const auto& chosen) {
        return cuda::solve_knapsack<T>(group, {.n = sized.n, .max_capacity = sized.max_capacity},
                                       scores_of(row, batch), row.mask, row.data,
                                       Scratch::at(memory, sized.n, sized.max_capacity), chosen);
      });
}

/// In place where Word is wide.
template <class Word, class T, bool kAcyclic>
Solved<T> solve_in_lockstep(const PathOverGraph<kAcyclic>& solver, const Batch<T>& batch,
                            Rng& rng) {
  using Scratch = cuda::GraphScratch<T>;
  const cuda::GraphSize size = cuda::graph_size(solver);
  return solve_each_row(
      batch, 70, Scratch::bytes(size), rng,
      [&](Lockstep& group, const Instance<T>& row, void* memory, const auto& chosen) {
        return cuda::solve_graph<kAcyclic, sizeof(Word) == 8, T>(group, size, scores_of(row, batch),
                                                                 row.mask, row.data,
                                                                 Scratch::at(memory, size), chosen);
      });
}

/// In tiles of a few rows where Word is wide.
template <class Word, class T>
Solved<T> solve_in_lockstep(const Chain& solver, const Batch<T>& batch, Rng& rng) {
  using Scratch = cuda::ChainScratch<T>;
  cuda::ChainShape chain = cuda::chain_shape(solver);
  if (sizeof(Word) == 8) {
    chain.tile_rows = static_cast<int32_t>(uniform(rng, 1, std::min<int64_t>(solver.labels, 5)));
  }
  return solve_each_row(
      batch, 70, Scratch::bytes(chain), rng,
      [&](Lockstep& group, const Instance<T>& row, void* memory, const auto& chosen) {
        return cuda::solve_chain<T>(group, chain, scores_of(row, batch), row.mask,
                                    Scratch::at(memory, chain), chosen);
      });
}

template <class Word, class T>
Solved<T> solve_in_lockstep(const Bernoulli& solver, const Batch<T>& batch, Rng& rng) {
  return solve_each_row(batch, 40, 0, rng,
                        [&](Lockstep& group, const Instance<T>& row, void*, const auto& chosen) {
                          return cuda::solve_signs<T>(group, solver.n, scores_of(row, batch),
                                                      row.mask, [&](int64_t word, uint32_t bits) {
                                                        for (int64_t j = 0; j < 32; ++j) {
                                                          if (bits >> j & 1) chosen(32 * word + j);
                                                        }
                                                      });
                        });
}

template <class Word, LatticeScores kScores, class T>
Solved<T> solve_in_lockstep(const Lattice<kScores>& solver, const Batch<T>& batch, Rng& rng) {
  return solve_each_row(batch, 40, batch.size * static_cast<int64_t>(sizeof(T)), rng,
                        [&](Lockstep& group, const Instance<T>& row, T* table, const auto& chosen) {
                          return cuda::solve_lattice<Lattice<kScores>::kPerMove>(
                              group, cuda::lattice_shape(solver), scores_of(row, batch), row.mask,
                              table, chosen);
                        });
}

template <class Word, class T>
Solved<T> solve_in_lockstep(const Assignment& solver, const Batch<T>& batch, Rng& rng) {
  using detail::AssignmentWork;
  const int64_t jobs = std::max(solver.rows, solver.columns);
  return solve_each_row(
      batch, 40, AssignmentWork::bytes(solver.ones(), jobs, jobs), rng,
      [&](Lockstep& group, const Instance<T>& row, void* memory, const auto& chosen) {
        return detail::solve_assignment(group, AssignmentWork::at(memory, solver, jobs),
                                        scores_of(row, batch), row.mask, chosen);
      });
}

template <class Word, class T>
Solved<T> solve_in_lockstep(const Arborescence& solver, const Batch<T>& batch, Rng& rng) {
  using detail::ArborescenceWork;
  return solve_each_row(
      batch, 40, ArborescenceWork::bytes(solver.vertices), rng,
      [&](Lockstep& group, const Instance<T>& row, void* memory, const auto& chosen) {
        return detail::solve_arborescence(group, ArborescenceWork::at(memory, solver.vertices),
                                          scores_of(row, batch), row.mask, solver.single_root,
                                          chosen);
      });
}

template <Conforming S_, class T_, class Word_ = uint32_t>
struct Case {
  using S = S_;
  using T = T_;
  using Word = Word_;
};

using Cases = testing::Types<
    Case<SpanningTree, float>, Case<SpanningTree, double>, Case<SpanningTree, float, uint64_t>,
    Case<SpanningTree, double, uint64_t>, Case<GridPath, float>, Case<GridPath, double>,
    Case<GridPath, float, uint64_t>, Case<GridPath, double, uint64_t>, Case<Chain, float>,
    Case<Chain, double>, Case<Chain, float, uint64_t>, Case<Chain, double, uint64_t>,
    Case<Bernoulli, float>, Case<Bernoulli, double>, Case<LatticePath, float>,
    Case<LatticePath, double>, Case<LatticeMoves, float>, Case<LatticeMoves, double>,
    Case<Assignment, float>, Case<Assignment, double>, Case<Arborescence, float>,
    Case<Arborescence, double>, Case<Knapsack, float>, Case<Knapsack, double>,
    Case<GraphPath, float>, Case<GraphPath, double>, Case<GraphPath, float, uint64_t>,
    Case<GraphPath, double, uint64_t>, Case<DagPath, float>, Case<DagPath, double>,
    Case<DagPath, float, uint64_t>, Case<DagPath, double, uint64_t>>;

struct CaseName {
  template <class C>
  static std::string GetName(int) {
    return std::string(C::S::kName) + (sizeof(typename C::T) == 4 ? "_float" : "_double") +
           (sizeof(typename C::Word) == 8 ? "_wide" : "");
  }
};

template <class C>
class InLockstep : public testing::Test {};

TYPED_TEST_SUITE(InLockstep, Cases, CaseName);

TYPED_TEST(InLockstep, GivesTheSolutionsOfTheCpu) {
  using S = typename TypeParam::S;
  using T = typename TypeParam::T;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Rng rng(seed);
    const S solver = one_in(rng, 4) ? Instances<S>::draw_small(rng) : Instances<S>::draw_any(rng);
    for (const Draw draw : {Draw::kExact, Draw::kTied, Draw::kExtreme}) {
      const auto batch =
          draw_batch<T>(solver, {.count = 3, .draw = draw, .mask = one_in(rng, 2)}, rng);
      const auto expected = solve_batch(solver, batch);
      expect_same(solver, batch, solve_in_lockstep<typename TypeParam::Word>(solver, batch, rng),
                  expected);
      if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
    }
  }
}

TEST(Lockstep, SeesAMissingSync) {
  EXPECT_THROW(cuda::run_in_lockstep(4, 1,
                                     [](Lockstep& group) {
                                       if (group.rank() != 2) group.sync();
                                     }),
               std::logic_error);
  int wrong = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<int> memory(8, 0);
    cuda::run_in_lockstep(8, seed, [&](Lockstep& group) {
      memory[static_cast<size_t>(group.rank())] = 1;
      wrong += memory[static_cast<size_t>((group.rank() + 1) % 8)] != 1;
    });
  }
  EXPECT_GT(wrong, 0);
}

}  // namespace
}  // namespace aimle::conformance
