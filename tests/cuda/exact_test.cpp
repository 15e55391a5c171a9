// The device algorithms of the exact distributions, by threads in lockstep, agree with the CPU's.
#include "aimle/registry/library_solvers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "aimle/cuda/arborescence_distribution.h"
#include "aimle/cuda/chain_distribution.h"
#include "aimle/cuda/dag_distribution.h"
#include "aimle/cuda/knapsack_distribution.h"
#include "aimle/cuda/lattice_path.h"
#include "aimle/cuda/tree_distribution.h"
#include "aimle/exact/categorical_row.h"
#include "aimle/exact/k_subset_row.h"
#include "aimle/exact/lattice_row.h"
#include "tests/cuda/lockstep.h"
#include "tests/exact/listed.h"
#include "tests/map/graph_path_instances.h"

namespace aimle::cuda {
namespace {

using namespace exact_row;  // NOLINT(google-build-using-namespace): the texts for both devices

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

/// One row, what it is asked for, and the answers.
struct Row {
  std::vector<double> scores, v;
  std::unique_ptr<bool[]> mask;

  Row(int64_t n, std::mt19937_64& rng) : scores(static_cast<size_t>(n)), v(scores.size()) {
    const double spread = std::vector<double>{0.1, 3, 60, 900}[rng() % 4];
    std::uniform_real_distribution<double> any(-spread, spread);
    for (size_t j = 0; j < scores.size(); ++j) {
      scores[j] = any(rng);
      v[j] = any(rng) / spread;
      if (rng() % 40 == 0) scores[j] = -kInf;
      if (rng() % 1000 == 0) scores[j] = rng() % 2 ? kNaN : kInf;
    }
    if (rng() % 2) return;
    mask = std::make_unique<bool[]>(scores.size());
    for (size_t j = 0; j < scores.size(); ++j) {
      mask[j] = rng() % 6 != 0;
      if (!mask[j] && rng() % 4 == 0) v[j] = scores[j] = kNaN;
    }
  }
};

struct Answer {
  Status status = Status(77);
  double log_partition = kNaN;
  std::vector<double> marginals, covariance;

  explicit Answer(int64_t n) : marginals(static_cast<size_t>(n), kNaN), covariance(marginals) {}
};

template <class S>
Answer on_cpu(const S& solver, const Row& row) {
  Answer answer(solver.size());
  evaluate(solver, DistributionRows<double>{.count = 1,
                                            .scores = row.scores.data(),
                                            .mask = row.mask.get(),
                                            .v = row.v.data(),
                                            .status = &answer.status,
                                            .log_partition = &answer.log_partition,
                                            .marginals = answer.marginals.data(),
                                            .covariance = answer.covariance.data()});
  return answer;
}

constexpr double kNearly = 1e-9, kSameBits = 0;  // tolerances

void expect_near(double a, double b, double tolerance, const std::string& what) {
  EXPECT_TRUE((std::isnan(a) && std::isnan(b)) ||
              std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b)))
      << what << ": " << a << ", expected " << b << ", difference " << a - b;
}

void expect_same(const Answer& answer, const Answer& expected, uint64_t seed,
                 double tolerance = kNearly) {
  ASSERT_EQ(answer.status, expected.status) << "seed " << seed;
  expect_near(answer.log_partition, expected.log_partition, tolerance, "log_partition");
  for (size_t j = 0; j < answer.marginals.size(); ++j) {
    const std::string entry = std::to_string(j);
    expect_near(answer.marginals[j], expected.marginals[j], tolerance, "marginals " + entry);
    expect_near(answer.covariance[j], expected.covariance[j], tolerance, "covariance " + entry);
  }
  if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
}

TEST(ExactInLockstep, Categorical) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 rng(seed);
    const Argmax solver{.n = static_cast<int64_t>(1 + rng() % 70)};
    const Row row(solver.n, rng);
    Answer answer(solver.n);
    std::vector<double> weight(row.scores.size());
    run_in_lockstep(static_cast<int>(1 + rng() % 40), rng(), [&](Lockstep& group) {
      const CategoricalRow read =
          read_weights(group, solver.n, row.scores.data(), row.mask.get(), weight.data());
      if (group.rank() == 0) answer.status = read.status;
      if (read.status != Status::kOk) return;
      if (group.rank() == 0) answer.log_partition = read.largest + std::log(read.sum);
      evaluate_categorical(group, solver.n, read, weight.data(), row.v.data(),
                           answer.marginals.data(), answer.covariance.data());
    });
    expect_same(answer, on_cpu(solver, row), seed);
    if (HasFatalFailure()) return;
  }
}

/// Samples of both by the same uniform numbers; a difference would need a number that falls between
/// two roundings of one probability.
template <class S, class Draw>
void expect_same_samples(const S& solver, const Row& row, std::mt19937_64& rng, const Draw& draw) {
  const int64_t samples = static_cast<int64_t>(1 + rng() % 50);
  const Key key{.seed = rng(), .stream = rng()};
  std::vector<double> expected(static_cast<size_t>(samples * solver.size()), kNaN), z(expected);
  Status status{};
  sample(solver, SampleRows<double>{.first = 5,
                                    .count = 1,
                                    .samples = samples,
                                    .scores = row.scores.data(),
                                    .mask = row.mask.get(),
                                    .key = key,
                                    .status = &status,
                                    .z = expected.data()});
  if (status != Status::kOk) return;
  run_in_lockstep(static_cast<int>(1 + rng() % 40), rng(),
                  [&](Lockstep& group) { draw(group, key, samples, z.data()); });
  EXPECT_EQ(z, expected);
}

using Packed = listed::WithData<Knapsack>;

TEST(ExactInLockstep, Knapsacks) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 rng(seed);
    const auto n = static_cast<int64_t>(1 + rng() % 9);
    Packed solver{{.n = n, .max_capacity = 60}, {}};
    for (int64_t j = 0; j <= n; ++j) solver.data.push_back(static_cast<int64_t>(rng() % 40));
    if (rng() % 30 == 0) solver.data[0] = -1;
    const Row row(n, rng);
    Answer answer(n);
    const KnapsackShape shape{.n = n, .max_capacity = solver.max_capacity};
    std::vector<double> memory(static_cast<size_t>(KnapsackTables::doubles(
                                   n, shape.max_capacity + 1, KnapsackTables::Wanted::kCovariance)),
                               kNaN);
    const KnapsackTables tables = KnapsackTables::at(memory.data(), n, shape.max_capacity + 1);
    const auto read = [&](Lockstep& group) {
      return read_knapsack(group, shape, row.scores.data(), row.mask.get(), solver.data.data(),
                           tables);
    };
    run_in_lockstep(static_cast<int>(1 + rng() % 40), rng(), [&](Lockstep& group) {
      const KnapsackRow found = read(group);
      if (group.rank() == 0) answer.status = found.status;
      if (found.status != Status::kOk) return;
      in_its_numbers(found, tables, EveryEntry{}, [&](const auto& sums) {
        sums.fill(group);
        if (group.rank() == 0) answer.log_partition = sums.log_partition();
        sums.fill_means(group, row.v.data());
        sums.walk(group, row.v.data(), answer.marginals.data(), answer.covariance.data());
      });
    });
    expect_same(answer, on_cpu(solver, row), seed);
    if (HasFatalFailure()) return;
    expect_same_samples(solver, row, rng, [&](Lockstep& group, Key key, int64_t count, double* z) {
      const KnapsackRow found = read(group);
      if (group.rank() == 0) std::fill_n(z, count * n, 0.0);
      group.sync();
      in_its_numbers(found, tables, EveryEntry{}, [&](const auto& sums) {
        sums.fill(group);
        sums.sample(group, key, 5, count, z);
      });
    });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST(ExactInLockstep, Samples) {
  using Tables = KSubsetScratch::Tables;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 rng(seed);
    const auto n = static_cast<int64_t>(1 + rng() % 30);
    const auto k = static_cast<int64_t>(rng() % static_cast<uint64_t>(n + 1));
    const Row row(n, rng);
    std::vector<double> weight(static_cast<size_t>(n));
    expect_same_samples(
        Argmax{.n = n}, row, rng, [&](Lockstep& group, Key key, int64_t samples, double* z) {
          const CategoricalRow read =
              read_weights(group, n, row.scores.data(), row.mask.get(), weight.data());
          sample_categorical(group, n, read, weight.data(), key, 5, samples, z);
        });
    std::vector<double> memory(static_cast<size_t>(KSubsetScratch::doubles(n, k, Tables::kSample)),
                               kNaN);
    const KSubsetScratch scratch = KSubsetScratch::at(memory.data(), n, k, Tables::kSample);
    expect_same_samples(
        TopK{.n = n, .k = k}, row, rng, [&](Lockstep& group, Key key, int64_t samples, double* z) {
          const Coins coins = read_coins(group, n, k, row.scores.data(), row.mask.get(), scratch);
          sample_coins(
              group, coins, scratch, key, 5, samples, n, [](int64_t j) { return j; }, z);
        });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

SpanningTree any_trees(std::mt19937_64& rng, uint64_t most_vertices) {
  return {
      .vertices = static_cast<int64_t>(1 + rng() % most_vertices),
      .layout = rng() % 2 ? SpanningTree::Layout::kDirected : SpanningTree::Layout::kUndirected};
}

TEST(ExactInLockstep, SamplesOfSpanningTrees) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 rng(seed);
    const SpanningTree solver = any_trees(rng, seed % 20 == 0 ? 18 : 9);
    const auto n = static_cast<int32_t>(solver.vertices);
    const bool directed = solver.layout == SpanningTree::Layout::kDirected;
    Row row(solver.size(), rng);
    if (rng() % 3 == 0) {
      for (double& x : row.scores) x = std::round(x);  // so that there are ties
    }
    std::vector<double> memory(static_cast<size_t>(TreeSampleScratch::doubles(n)), kNaN);
    const TreeSampleScratch scratch = TreeSampleScratch::at(memory.data(), n);
    expect_same_samples(solver, row, rng, [&](Lockstep& group, Key key, int64_t count, double* z) {
      for (int64_t s = 0; s < count; ++s, z += solver.size()) {
        const TreeRow tree = read_tree(group, n, directed, row.scores.data(), row.mask.get(),
                                       scratch.w, scratch.state);
        for (int64_t e = group.rank(); e < solver.size(); e += group.size()) z[e] = 0;
        group.sync();
        cuda::sample_tree(group, tree, scratch, key, 5, s, z);
      }
    });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST(ExactInLockstep, KSubset) {
  using Tables = KSubsetScratch::Tables;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 rng(seed);
    const auto n = static_cast<int64_t>(1 + rng() % 40);
    const TopK solver{.n = n, .k = static_cast<int64_t>(rng() % static_cast<uint64_t>(n + 1))};
    const Row row(n, rng);
    Answer answer(n);
    std::vector<double> memory(
        static_cast<size_t>(KSubsetScratch::doubles(n, solver.k, Tables::kCovariance)), kNaN);
    const KSubsetScratch scratch =
        KSubsetScratch::at(memory.data(), n, solver.k, Tables::kCovariance);
    run_in_lockstep(static_cast<int>(1 + rng() % 40), rng(), [&](Lockstep& group) {
      const Coins coins =
          read_coins(group, n, solver.k, row.scores.data(), row.mask.get(), scratch);
      if (group.rank() == 0) answer.status = coins.status;
      if (coins.status != Status::kOk) return;
      const double log_p = coins.certain ? 0.0 : log_probability(group, coins, scratch);
      if (group.rank() == 0) answer.log_partition = coins.log_scale + log_p;
      fill_marginals(group, coins, scratch);
      for (int64_t j = group.rank(); j < n; j += group.size()) {
        answer.marginals[static_cast<size_t>(j)] = scratch.mu[j];
      }
      write_covariance(group, coins, row.v.data(), scratch, answer.covariance.data());
    });
    expect_same(answer, on_cpu(solver, row), seed);
    if (HasFatalFailure()) return;
  }
}

Chain any_chain(std::mt19937_64& rng) {
  return {.length = static_cast<int64_t>(1 + rng() % 8),
          .labels = static_cast<int64_t>(1 + rng() % 9)};
}

/// The mask ends the row early, now and then.
void shorten(const Chain& solver, Row& row, std::mt19937_64& rng) {
  if (!row.mask || rng() % 2) return;
  const auto steps = static_cast<int64_t>(rng() % static_cast<uint64_t>(solver.length));
  for (int64_t e = steps * solver.edges_per_step(); e < solver.size(); ++e) row.mask[e] = false;
}

TEST(ExactInLockstep, Chains) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    std::mt19937_64 rng(seed);
    const Chain solver = any_chain(rng);
    const ChainShape chain = chain_shape(solver);
    Row row(solver.size(), rng);
    shorten(solver, row, rng);
    Answer answer(solver.size());
    std::vector<double> memory(static_cast<size_t>(ChainTables::doubles(
                                   chain.steps, chain.labels, ChainTables::Wanted::kCovariance)),
                               kNaN);
    const ChainTables tables = ChainTables::at(memory.data(), chain.steps, chain.labels);
    const MaskedScores<double> x{row.scores.data(), row.mask.get()};
    run_in_lockstep(static_cast<int>(1 + rng() % 40), rng(), [&](Lockstep& group) {
      const ChainRow read = read_chain(group, chain, x, tables);
      if (group.rank() == 0) answer.status = read.status;
      if (read.status != Status::kOk) return;
      if (group.rank() == 0) answer.log_partition = read.log_partition;
      fill_backward_sums(group, chain, read, x, tables);
      write_marginals(group, chain, read, x, tables, answer.marginals.data());
      write_chain_covariance(group, chain, read, x, row.v.data(), tables, answer.covariance.data());
    });
    expect_same(answer, on_cpu(solver, row), seed);
    if (HasFatalFailure()) return;
  }
}

TEST(ExactInLockstep, SamplesOfChainsAreTheCpus) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    std::mt19937_64 rng(seed);
    const Chain solver = any_chain(rng);
    const ChainShape chain = chain_shape(solver);
    Row row(solver.size(), rng);
    shorten(solver, row, rng);
    std::vector<double> memory(static_cast<size_t>(ChainTables::doubles(
                                   chain.steps, chain.labels, ChainTables::Wanted::kForward)),
                               kNaN);
    const ChainTables tables = ChainTables::at(memory.data(), chain.steps, chain.labels);
    const MaskedScores<double> x{row.scores.data(), row.mask.get()};
    expect_same_samples(solver, row, rng,
                        [&](Lockstep& group, Key key, int64_t samples, double* z) {
                          const ChainRow read = read_chain(group, chain, x, tables);
                          sample_chain(group, chain, read, x, tables, key, 5, samples, z);
                        });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

template <LatticeScores kScores>
void check_lattices(uint64_t seed) {
  constexpr bool kPerMove = Lattice<kScores>::kPerMove;
  std::mt19937_64 rng(seed);
  using Moves = typename Lattice<kScores>::Moves;
  const Moves moves[] = {Moves::kAll, Moves::kStraight, Moves::kDiagonal};
  const Lattice<kScores> solver{.height = static_cast<int64_t>(1 + rng() % 12),
                                .width = static_cast<int64_t>(1 + rng() % 9),
                                .moves = moves[rng() % 3]};
  const LatticeShape lattice = lattice_shape(solver);
  const Row row(solver.size(), rng);
  Answer answer(solver.size());
  std::vector<double> memory(static_cast<size_t>(LatticeTables::doubles(
                                 solver.cells(), LatticeTables::Wanted::kMarginals)),
                             kNaN);
  const LatticeTables tables = LatticeTables::at(memory.data(), solver.cells());
  const auto read_in = [&](Lockstep& group) {
    const auto part = detail::part_of < kPerMove ? 3 : 1 > (group, lattice, row.mask.get());
    return read_lattice<kPerMove>(group, lattice, part, row.scores.data(), row.mask.get(), tables);
  };
  run_in_lockstep(static_cast<int>(1 + rng() % 40), rng(), [&](Lockstep& group) {
    const LatticeRow read = read_in(group);
    if (group.rank() == 0) answer.status = read.status;
    if (read.status != Status::kOk) return;
    if (group.rank() == 0) answer.log_partition = log_partition(read, tables);
    fill_marginals<kPerMove>(group, read, tables);
    write_marginals<kPerMove>(group, lattice, read, tables, answer.marginals.data());
    write_covariance<kPerMove>(group, lattice, read, tables, row.v.data(),
                               answer.covariance.data());
  });
  expect_same(answer, on_cpu(solver, row), seed);
  if (testing::Test::HasFailure()) return;
  expect_same_samples(solver, row, rng, [&](Lockstep& group, Key key, int64_t count, double* z) {
    const LatticeRow read = read_in(group);
    sample_lattice<kPerMove>(group, lattice, read, tables, key, 5, count, z);
  });
}

TEST(ExactInLockstep, Lattices) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    check_lattices<LatticeScores::kCells>(seed);
    check_lattices<LatticeScores::kMoves>(seed);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

using Dag = listed::WithData<DagPath>;

Dag any_dag(std::mt19937_64& rng) {
  using Drawn = conformance::Instances<DagPath>;
  const DagPath solver = rng() % 2 ? Drawn::draw_small(rng) : Drawn::draw_any(rng);
  return {solver, Drawn::draw_data(solver, rng)};
}

TEST(ExactInLockstep, DagPaths) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    std::mt19937_64 rng(seed);
    const Dag solver = any_dag(rng);
    const GraphSize size = graph_size<true>(solver);
    const Row row(solver.size(), rng);
    Answer answer(solver.size());
    std::vector<double> memory(static_cast<size_t>(DagTables::doubles(size)), kNaN);
    const DagTables tables = DagTables::at(memory.data(), size);
    const MaskedScores<double> x{row.scores.data(), row.mask.get()};
    run_in_lockstep(static_cast<int>(1 + rng() % 40), rng(), [&](Lockstep& group) {
      const DagRow read = read_dag(group, size, x, solver.data.data(), tables);
      if (group.rank() == 0) answer.status = read.status;
      if (read.status != Status::kOk) return;
      if (group.rank() == 0) answer.log_partition = read.log_partition;
      write_dag(group, size, read, row.v.data(), tables, answer.marginals.data(),
                answer.covariance.data());
    });
    expect_same(answer, on_cpu(solver, row), seed);
    if (HasFatalFailure()) return;
  }
}

TEST(ExactInLockstep, SamplesOfDagPathsAreTheCpus) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 rng(seed);
    const Dag solver = any_dag(rng);
    const GraphSize size = graph_size<true>(solver);
    const Row row(solver.size(), rng);
    std::vector<double> memory(static_cast<size_t>(DagTables::doubles(size)), kNaN);
    const DagTables tables = DagTables::at(memory.data(), size);
    const MaskedScores<double> x{row.scores.data(), row.mask.get()};
    expect_same_samples(solver, row, rng,
                        [&](Lockstep& group, Key key, int64_t samples, double* z) {
                          const DagRow read = read_dag(group, size, x, solver.data.data(), tables);
                          sample_dag(group, size, read, tables, key, 5, samples, z);
                        });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

template <class Number>
void evaluate_tree_row(Lockstep& group, const TreeRow& tree, const Row& row,
                       const TreeScratch& scratch, Answer& answer) {
  load_network<Number>(group, tree, scratch.w);
  evaluate_tree<Number, true>(group, tree, row.v.data(), scratch, answer.marginals.data(),
                              answer.covariance.data());
  const double a = log_partition_of_tree<Number>(group, tree, scratch.w, scratch.pivot);
  if (group.rank() == 0) answer.log_partition = a;
}

TEST(ExactInLockstep, SpanningTrees) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 rng(seed);
    const SpanningTree solver = any_trees(rng, seed % 20 == 0 ? 31 : 13);
    const auto n = static_cast<int32_t>(solver.vertices);
    const bool directed = solver.layout == SpanningTree::Layout::kDirected;
    const Row row(solver.size(), rng);
    Answer answer(solver.size());
    std::vector<double> memory(static_cast<size_t>(TreeScratch::sizes(n).doubles(true)), kNaN);
    const TreeScratch scratch = TreeScratch::at(memory.data(), n, true);
    run_in_lockstep(static_cast<int>(1 + rng() % 40), rng(), [&](Lockstep& group) {
      const TreeRow tree = read_tree(group, n, directed, row.scores.data(), row.mask.get(),
                                     scratch.w, scratch.state(n));
      if (group.rank() == 0) answer.status = tree.status;
      if (tree.status != Status::kOk) return;
      if (tree.linear) {
        evaluate_tree_row<aimle::detail::Linear>(group, tree, row, scratch, answer);
      } else {
        evaluate_tree_row<aimle::detail::Logarithmic>(group, tree, row, scratch, answer);
      }
    });
    expect_same(answer, on_cpu(solver, row), seed, kSameBits);
    if (HasFatalFailure()) return;
  }
}

Arborescence any_arborescences(std::mt19937_64& rng, uint64_t most_vertices) {
  return {.vertices = static_cast<int64_t>(1 + rng() % most_vertices),
          .single_root = rng() % 2 == 0};
}

TEST(ExactInLockstep, Arborescences) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 rng(seed);
    const Arborescence solver = any_arborescences(rng, seed % 20 == 0 ? 14 : 8);
    const auto n = static_cast<int32_t>(solver.vertices);
    const Row row(solver.size(), rng);
    Answer answer(solver.size());
    std::vector<double> memory(static_cast<size_t>(ArborescenceScratch::doubles(n, true)), kNaN);
    const ArborescenceScratch scratch = ArborescenceScratch::at(memory.data(), n, true);
    for (int32_t d = 0; d < n; ++d) {
      run_in_lockstep(static_cast<int>(1 + rng() % 40), rng(), [&](Lockstep& group) {
        const ArborescenceRow read =
            read_arborescence(group, n, solver.single_root, row.scores.data(), row.mask.get(),
                              scratch.x, scratch.state);
        if (group.rank() == 0) answer.status = read.status;
        if (read.status != Status::kOk) return;
        const auto evaluate_with = [&](auto number) {
          load_weights<decltype(number)>(group, read, scratch.x);
          return evaluate_arborescence<decltype(number), true>(group, read, d, row.v.data(),
                                                               scratch, answer.marginals.data(),
                                                               answer.covariance.data());
        };
        const double a = read.linear ? evaluate_with(aimle::detail::Linear{})
                                     : evaluate_with(aimle::detail::Logarithmic{});
        if (group.rank() == 0) answer.log_partition = a;
      });
    }
    expect_same(answer, on_cpu(solver, row), seed);
    if (HasFatalFailure()) return;
  }
}

TEST(ExactInLockstep, SamplesOfArborescences) {
  for (uint64_t seed = 0; seed < 15; ++seed) {
    std::mt19937_64 rng(seed);
    const Arborescence solver = any_arborescences(rng, 8);
    const auto n = static_cast<int32_t>(solver.vertices);
    const Row row(solver.size(), rng);
    std::vector<double> memory(static_cast<size_t>(ArborescenceScratch::doubles(n, false)), kNaN);
    const ArborescenceScratch scratch = ArborescenceScratch::at(memory.data(), n, false);
    expect_same_samples(solver, row, rng, [&](Lockstep& group, Key key, int64_t count, double* z) {
      for (int64_t s = 0; s < count; ++s, z += solver.size()) {
        const ArborescenceRow read =
            read_arborescence(group, n, solver.single_root, row.scores.data(), row.mask.get(),
                              scratch.x, scratch.state);
        for (int64_t e = group.rank(); e < solver.size(); e += group.size()) z[e] = 0;
        group.sync();
        const auto sample_with = [&](auto number) {
          load_weights<decltype(number)>(group, read, scratch.x);
          sample_arborescence<decltype(number)>(group, n, scratch, key, 5, s, z);
        };
        if (read.linear) {
          sample_with(aimle::detail::Linear{});
        } else {
          sample_with(aimle::detail::Logarithmic{});
        }
      }
    });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

}  // namespace
}  // namespace aimle::cuda
