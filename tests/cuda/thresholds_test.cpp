// The device algorithm that finds partners, by threads in lockstep, finds those of the CPU.
#include "aimle/cuda/thresholds.h"

#include <gtest/gtest.h>

#include "tests/cuda/lockstep.h"
#include "tests/cuda/row_in_memory.h"
#include "tests/estimate/swaps.h"
#include "tests/map/argmax_instances.h"
#include "tests/map/conformance.h"
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
        const std::vector<int64_t> expected =
            cases::find_swaps<T>(solver, row.scores, row.mask, solution, solution).partner;
        ASSERT_EQ(partners<T>(solver, row, z.data(), rng), expected)
            << text(solver, batch, r) << "\nseed " << seed;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 500);
}

}  // namespace
}  // namespace aimle::conformance
