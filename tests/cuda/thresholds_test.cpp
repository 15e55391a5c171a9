// The device algorithms that find partners and thresholds, by threads in lockstep, find those of the
// CPU.
#include "aimle/cuda/thresholds.h"

#include <gtest/gtest.h>

#include "aimle/cuda/chain_swaps.h"
#include "aimle/cuda/lattice_path.h"
#include "aimle/estimate/lattice_swaps.h"
#include "aimle/estimate/tree_thresholds.h"
#include "tests/cuda/lockstep.h"
#include "tests/cuda/row_in_memory.h"
#include "tests/estimate/swaps.h"
#include "tests/map/argmax_instances.h"
#include "tests/map/chain_instances.h"
#include "tests/map/conformance.h"
#include "tests/map/lattice_path_instances.h"
#include "tests/map/spanning_tree_instances.h"
#include "tests/map/topk_instances.h"

namespace aimle::conformance {
namespace {

using cuda::Lockstep;

/// Partners by entry, from the device's by edge or for the whole row.
template <class T, class S>
std::vector<int64_t> partners(const S& solver, const Instance<T>& row, const Flag* z, Rng& rng) {
  const auto n = solver.size();
  cuda::RowPartners found{};
  cuda::run_in_lockstep(static_cast<int>(uniform(rng, 1, 40)), rng(), [&](Lockstep& group) {
    const auto seen = cuda::find_row_partners<T>(group, RowInMemory<T>{row.scores, n}, row.mask,
                                                 [&](int64_t j) { return z[j] != 0; });
    if (group.rank() == 0) found = seen;
  });
  std::vector<int64_t> result;
  for (int64_t j = 0; j < n; ++j) {
    const uint32_t partner = z[j] != 0 ? found.best_out : found.worst_in;
    result.push_back(partner == cuda::kNoPartner ? -1 : int64_t{partner});
  }
  return result;
}

template <class T>
std::vector<int64_t> partners(const SpanningTree& solver, const Instance<T>& row, const Flag* z,
                              Rng& rng) {
  const auto n = static_cast<int32_t>(solver.vertices);
  const bool directed = solver.layout == SpanningTree::Layout::kDirected;
  const auto entry = [&](int64_t i, int64_t j) {
    return directed ? SpanningTree::arc(i, j, n) : SpanningTree::edge(i, j, n);
  };
  const auto reverse = [&](int64_t i, int64_t j) {
    return directed ? SpanningTree::arc(j, i, n) : SpanningTree::edge(i, j, n);
  };
  using Memory = cuda::TreePartners<T>;
  std::vector<T> memory(static_cast<size_t>(Memory::bytes(n, solver.edges())) / sizeof(T) + 1,
                        T(-77));
  const Memory tree = Memory::at(memory.data(), n);
  cuda::run_in_lockstep(static_cast<int>(uniform(rng, 1, 40)), rng(), [&](Lockstep& group) {
    cuda::find_tree_partners<T>(
        group, n,
        [&](int32_t i, int32_t j) {
          const T x = row.scores[entry(i, j)];
          return directed ? x + row.scores[reverse(i, j)] : x;
        },
        [&](int32_t i, int32_t j) {
          return row.mask == nullptr || (row.mask[entry(i, j)] && row.mask[reverse(i, j)]);
        },
        [&](int32_t i, int32_t j) { return z[entry(i, j)] != 0; }, tree);
  });
  std::vector<int64_t> entries;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j) entries.push_back(entry(i, j));
  }
  std::vector<int64_t> result(static_cast<size_t>(solver.size()));
  for (int64_t i = 0, e = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j, ++e) {
      const uint32_t partner = tree.partner[e];
      result[entry(i, j)] = result[reverse(i, j)] =
          partner == cuda::kNoPartner ? -1 : entries[partner];
    }
  }
  return result;
}

/// Partners by entry as the CPU has them: by definition, or by its finder.
template <class T, class S>
std::vector<int64_t> expected_partners(const S& solver, const Instance<T>& row, const T* z) {
  int64_t worst_in = -1, best_out = -1;
  for (int64_t j = 0; j < solver.size(); ++j) {
    if (row.mask != nullptr && !row.mask[j]) continue;
    if (z[j] == T(1)) {
      if (worst_in < 0 || row.scores[j] <= row.scores[worst_in]) worst_in = j;
    } else if (best_out < 0 || row.scores[j] > row.scores[best_out]) {
      best_out = j;
    }
  }
  std::vector<int64_t> result;
  for (int64_t j = 0; j < solver.size(); ++j) result.push_back(z[j] == T(1) ? best_out : worst_in);
  return result;
}

template <class T>
std::vector<int64_t> expected_partners(const SpanningTree& solver, const Instance<T>& row,
                                       const T* z) {
  const auto size = static_cast<size_t>(solver.size());
  std::vector<uint8_t> bits((size + 7) / 8);
  for (size_t j = 0; j < size; ++j) bits[j / 8] |= static_cast<uint8_t>((z[j] == T(1)) << j % 8);
  std::vector<double> threshold(size), difference(size);
  TreeThresholds<T> finder(solver);
  finder.find({.x = row.scores, .mask = row.mask, .bits = bits.data(), .d = z}, threshold.data(),
              difference.data());
  std::vector<int64_t> result;
  for (int64_t j = 0; j < solver.size(); ++j) result.push_back(finder.partner(j));
  return result;
}

template <class S_, class T_>
struct Case {
  using S = S_;
  using T = T_;
};
using Cases = testing::Types<Case<Argmax, float>, Case<TopK, float>, Case<TopK, double>,
                             Case<SpanningTree, float>, Case<SpanningTree, double>>;

template <class C>
class PartnersInLockstep : public testing::Test {};
TYPED_TEST_SUITE(PartnersInLockstep, Cases);

TYPED_TEST(PartnersInLockstep, AreThoseOfTheCpu) {
  using S = typename TypeParam::S;
  using T = typename TypeParam::T;
  int64_t compared = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    Rng rng(seed);
    const S solver = Instances<S>::draw_any(rng);
    for (const Draw draw : {Draw::kExact, Draw::kTied, Draw::kExtreme}) {
      const auto batch =
          draw_batch<T>(solver, {.count = 3, .draw = draw, .mask = one_in(rng, 2)}, rng);
      const auto solved = solve_batch(solver, batch);
      for (int64_t r = 0; r < batch.count; ++r) {
        if (solved.status[static_cast<size_t>(r)] != Status::kOk || batch.size == 0) continue;
        std::vector<Flag> z(static_cast<size_t>(batch.size));
        for (int64_t j = 0; j < batch.size; ++j)
          z[j] = solved.z[r * batch.size + j] == T(1) ? ~Flag{0} : 0;
        const Instance<T> row = batch.instance(r);
        const T* solution = solved.z.data() + r * batch.size;
        ASSERT_EQ(partners<T>(solver, row, z.data(), rng),
                  expected_partners<T>(solver, row, solution))
            << text(solver, batch, r) << "\nseed " << seed;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 500);
}

// ---- Chains and lattices ------------------------------------------------------------------------

/// Threshold and difference of every entry, one after the other.
using Found = std::vector<std::pair<double, double>>;

template <class T>
Found find_in_lockstep(const Chain& solver, const Instance<T>& row, const T* z, const T* d,
                       Rng& rng) {
  using Swaps = cuda::ChainSwaps<T>;
  const cuda::ChainShape chain = cuda::chain_shape(solver);
  std::vector<double> memory(static_cast<size_t>(Swaps::numbers(chain)), -77.0);
  Found found(static_cast<size_t>(solver.size()));
  cuda::run_in_lockstep(static_cast<int>(uniform(rng, 1, 40)), rng(), [&](Lockstep& group) {
    Swaps swaps{.chain = chain,
                .steps = cuda::steps_of_mask(group, chain, row.mask),
                .x = row.scores,
                .mask = row.mask,
                .d = d};
    swaps.use(memory.data());
    swaps.find(group, [z](int64_t j) { return z[j] == T(1); });
    for (int64_t j = group.rank(); j < solver.size(); j += group.size()) {
      const auto own = swaps.of(j, z[j] == T(1));
      found[static_cast<size_t>(j)] = {own.threshold, own.difference};
    }
  });
  return found;
}

template <class T, LatticeScores kScores>
Found find_in_lockstep(const Lattice<kScores>& solver, const Instance<T>& row, const T* z,
                       const T* d, Rng& rng) {
  constexpr bool kPerMove = Lattice<kScores>::kPerMove;
  using Swaps = aimle::detail::LatticeSwaps<kPerMove, T>;
  const cuda::LatticeShape lattice = cuda::lattice_shape(solver);
  std::vector<double> memory(static_cast<size_t>(Swaps::numbers(lattice.height, lattice.width)),
                             -77.0);
  Found found(static_cast<size_t>(solver.size()));
  cuda::run_in_lockstep(static_cast<int>(uniform(rng, 1, 40)), rng(), [&](Lockstep& group) {
    const auto part = cuda::detail::part_of < kPerMove ? 3 : 1 > (group, lattice, row.mask);
    Swaps swaps{.height = part.height,
                .width = part.width,
                .pitch = part.pitch,
                .moves = lattice.moves,
                .x = row.scores,
                .mask = row.mask,
                .d = d};
    swaps.use(memory.data(), lattice.height, lattice.width);
    swaps.find(group, [z](int32_t j) { return z[j] == T(1); });
    for (int32_t j = group.rank(); j < solver.size(); j += group.size()) {
      const auto own = swaps.of(j, z[j] == T(1));
      found[static_cast<size_t>(j)] = {own.threshold, own.difference};
    }
  });
  return found;
}

template <class C>
class ThresholdsInLockstep : public testing::Test {};
using PathCases = testing::Types<Case<Chain, float>, Case<Chain, double>, Case<LatticePath, float>,
                                 Case<LatticePath, double>, Case<LatticeMoves, float>,
                                 Case<LatticeMoves, double>>;
TYPED_TEST_SUITE(ThresholdsInLockstep, PathCases);

TYPED_TEST(ThresholdsInLockstep, AreThoseOfTheCpu) {
  using S = typename TypeParam::S;
  using T = typename TypeParam::T;
  int64_t compared = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Rng rng(seed);
    const S solver = Instances<S>::draw_any(rng);
    for (const Draw draw : {Draw::kExact, Draw::kTied, Draw::kExtreme}) {
      const auto batch =
          draw_batch<T>(solver, {.count = 3, .draw = draw, .mask = one_in(rng, 2)}, rng);
      const auto solved = solve_batch(solver, batch);
      std::vector<T> d(static_cast<size_t>(batch.size));
      for (T& value : d) value = static_cast<T>(static_cast<int64_t>(rng() % 2001) - 1000) / T(64);
      for (int64_t r = 0; r < batch.count; ++r) {
        if (solved.status[static_cast<size_t>(r)] != Status::kOk || batch.size == 0) continue;
        const Instance<T> row = batch.instance(r);
        const T* z = solved.z.data() + r * batch.size;
        const auto expected = cases::find_swaps<T>(solver, row.scores, row.mask, z, d.data());
        ASSERT_TRUE(expected.solved) << text(solver, batch, r) << "\nseed " << seed;
        const Found found = find_in_lockstep<T>(solver, row, z, d.data(), rng);
        for (size_t j = 0; j < found.size(); ++j) {
          if (row.mask != nullptr && !row.mask[j]) continue;
          const auto [threshold, difference] = found[j];
          ASSERT_EQ(std::isfinite(threshold), std::isfinite(expected.threshold[j]))
              << text(solver, batch, r) << "\nseed " << seed << " entry " << j;
          if (!std::isfinite(threshold)) continue;
          ASSERT_EQ(threshold, expected.threshold[j]) << "seed " << seed << " entry " << j;
          ASSERT_EQ(difference, expected.difference[j]) << "seed " << seed << " entry " << j;
        }
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 300);
}

}  // namespace
}  // namespace aimle::conformance
