#include "aimle/map/spanning_tree.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "aimle/base/isa.h"
#include "tests/map/kruskal.h"

namespace aimle {
namespace {

using Layout = SpanningTree::Layout;
constexpr Layout kLayouts[] = {Layout::kUndirected, Layout::kDirected};

std::vector<Isa> instruction_sets() {
  if (processor_has_avx2()) return {Isa::kPortable, Isa::kAvx2};
  return {Isa::kPortable};
}

/// Restores the instruction set that a test overrides.
class SpanningTreeTest : public ::testing::Test {
 protected:
  void TearDown() override { use_isa(before_); }

 private:
  Isa before_ = isa();
};

template <class T>
struct Solved {
  std::vector<T> z;
  std::vector<Status> status;
};

template <class T>
Solved<T> solve_all(const SpanningTree& solver, int64_t count, const std::vector<T>& x,
                    const bool* mask = nullptr) {
  Solved<T> out{std::vector<T>(x.size(), T{-7}),
                std::vector<Status>(static_cast<size_t>(count), Status::kBadK)};
  solve(solver, Rows<T>{.count = count,
                        .scores = x.data(),
                        .mask = mask,
                        .z = out.z.data(),
                        .status = out.status.data()});
  return out;
}

/// The chosen edges of one undirected row as "01 23".
template <class T>
std::string edges_of(int64_t n, const std::vector<T>& z) {
  std::ostringstream text;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j) {
      if (z[static_cast<size_t>(SpanningTree::edge(i, j, n))] != 1) continue;
      if (!text.str().empty()) text << ' ';
      text << i << j;
    }
  }
  return text.str();
}

template <class T>
std::string show(const T* x, const bool* mask, int64_t size) {
  std::ostringstream text;
  text.precision(std::numeric_limits<T>::max_digits10);
  for (int64_t e = 0; e < size; ++e) text << x[e] << (mask && !mask[e] ? "(masked) " : " ");
  return text.str();
}

template <class T>
bool same_bits(const T* a, const T* b, int64_t size) {
  return size == 0 || std::memcmp(a, b, static_cast<size_t>(size) * sizeof(T)) == 0;
}

/// Every row against Kruskal, on both instruction sets.
template <class T>
void expect_kruskal(const SpanningTree& solver, int64_t count, const std::vector<T>& x,
                    const bool* mask, const std::string& label) {
  const int64_t size = solver.size();
  for (const Isa which : instruction_sets()) {
    use_isa(which);
    const Solved<T> got = solve_all(solver, count, x, mask);
    for (int64_t r = 0; r < count; ++r) {
      const bool* row_mask = mask ? mask + r * size : nullptr;
      const auto want = testing::kruskal(solver, x.data() + r * size, row_mask);
      ASSERT_EQ(got.status[static_cast<size_t>(r)], want.status)
          << label << " " << name(which) << " row " << r << "\n"
          << show(x.data() + r * size, row_mask, size);
      ASSERT_TRUE(same_bits(got.z.data() + r * size, want.z.data(), size))
          << label << " " << name(which) << " row " << r << "\n"
          << show(x.data() + r * size, row_mask, size) << "\n"
          << show(got.z.data() + r * size, nullptr, size) << "\n"
          << show(want.z.data(), nullptr, size);
    }
  }
}

template <class T>
class SpanningTreeOf : public SpanningTreeTest {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(SpanningTreeOf, Scalars);

TYPED_TEST(SpanningTreeOf, FourVertices) {
  const std::vector<TypeParam> x = {TypeParam(.7601),  TypeParam(-.2046),  TypeParam(-.4689),
                                    TypeParam(-.5127), TypeParam(-1.9023), TypeParam(1.1506)};
  for (const Isa which : instruction_sets()) {
    use_isa(which);
    const auto got = solve_all(SpanningTree{.vertices = 4}, 1, x);
    EXPECT_EQ(got.status[0], Status::kOk);
    EXPECT_EQ(edges_of(4, got.z), "01 02 23");
  }
}

TYPED_TEST(SpanningTreeOf, FiveVerticesOfTotal44) {
  const std::vector<TypeParam> x = {8, 5, 0, 0, 9, 11, 0, 15, 10, 7};
  for (const Isa which : instruction_sets()) {
    use_isa(which);
    const auto got = solve_all(SpanningTree{.vertices = 5}, 1, x);
    EXPECT_EQ(edges_of(5, got.z), "01 13 23 24");
    TypeParam total = 0;
    for (size_t e = 0; e < x.size(); ++e) total += x[e] * got.z[e];
    EXPECT_EQ(total, 44);
  }
}

TYPED_TEST(SpanningTreeOf, EqualWeightsGiveTheStarOfVertexZero) {
  for (const Isa which : instruction_sets()) {
    use_isa(which);
    for (const TypeParam w : {TypeParam(0), TypeParam(2), TypeParam(-INFINITY)}) {
      const auto got = solve_all(SpanningTree{.vertices = 6}, 1, std::vector<TypeParam>(15, w));
      EXPECT_EQ(edges_of(6, got.z), "01 02 03 04 05") << "w=" << w;
    }
  }
}

TYPED_TEST(SpanningTreeOf, NegativeZeroTiesWithZero) {
  for (const Isa which : instruction_sets()) {
    use_isa(which);
    const auto got = solve_all<TypeParam>(SpanningTree{.vertices = 3}, 1, {-0.0, -0.0, 0.0});
    EXPECT_EQ(edges_of(3, got.z), "01 02");
  }
}

TYPED_TEST(SpanningTreeOf, DirectedWeightIsTheSumOfBothDirections) {
  // Receiver-major: row 0 = senders 1, 2; row 1 = senders 0, 2; row 2 = senders 0, 1.
  const std::vector<TypeParam> x = {5, 1, -4, 2, 1, 2};  // {0,1}: 1, {0,2}: 2, {1,2}: 4
  for (const Isa which : instruction_sets()) {
    use_isa(which);
    const auto got = solve_all(SpanningTree{.vertices = 3, .layout = Layout::kDirected}, 1, x);
    EXPECT_EQ(got.z, (std::vector<TypeParam>{0, 1, 0, 1, 1, 1}));
  }
}

TYPED_TEST(SpanningTreeOf, DirectedSumOfOppositeInfinitiesIsNaN) {
  const TypeParam inf = std::numeric_limits<TypeParam>::infinity();
  const std::vector<TypeParam> x = {inf, 1, -inf, 2, 1, 2};
  for (const Isa which : instruction_sets()) {
    use_isa(which);
    const auto got = solve_all(SpanningTree{.vertices = 3, .layout = Layout::kDirected}, 1, x);
    EXPECT_EQ(got.status[0], Status::kNaN);
    for (const TypeParam z : got.z) EXPECT_TRUE(std::isnan(z));
  }
}

TYPED_TEST(SpanningTreeOf, OneVertexHasAnEmptyTree) {
  for (const Layout layout : kLayouts) {
    const auto got =
        solve_all(SpanningTree{.vertices = 1, .layout = layout}, 3, std::vector<TypeParam>{});
    EXPECT_EQ(got.status, std::vector<Status>(3, Status::kOk));
  }
}

TYPED_TEST(SpanningTreeOf, MaskThatPartsTheGraphIsDisconnected) {
  const std::vector<TypeParam> x = {1, 2, 3, 4, 5, 6};
  const bool only_01_and_23[] = {true, false, false, false, false, true};
  const bool path_0_1_2_3[] = {true, false, false, true, false, true};
  for (const Isa which : instruction_sets()) {
    use_isa(which);
    const SpanningTree solver{.vertices = 4};
    const auto parted = solve_all(solver, 1, x, only_01_and_23);
    EXPECT_EQ(parted.status[0], Status::kDisconnected);
    for (const TypeParam z : parted.z) EXPECT_TRUE(std::isnan(z));
    const auto path = solve_all(solver, 1, x, path_0_1_2_3);
    EXPECT_EQ(path.status[0], Status::kOk);
    EXPECT_EQ(edges_of(4, path.z), "01 12 23");
  }
}

TYPED_TEST(SpanningTreeOf, NaNCountsOnlyWhereUnmaskedAndComesFirst) {
  const TypeParam nan = std::numeric_limits<TypeParam>::quiet_NaN();
  const bool without_02[] = {true, false, true};
  const bool only_12[] = {false, false, true};
  for (const Isa which : instruction_sets()) {
    use_isa(which);
    const SpanningTree solver{.vertices = 3};
    EXPECT_EQ(solve_all<TypeParam>(solver, 1, {1, nan, 3}).status[0], Status::kNaN);
    const auto masked = solve_all<TypeParam>(solver, 1, {1, nan, 3}, without_02);
    EXPECT_EQ(edges_of(3, masked.z), "01 12");
    EXPECT_EQ(solve_all<TypeParam>(solver, 1, {1, 2, nan}, only_12).status[0], Status::kNaN);
  }
}

/// Scores that make trouble: `kind` 0 normal, 1 a few small integers (ties and both zeros),
/// 2 subnormals, 3 infinities among ties, 4 a rare NaN.
template <class T>
std::vector<T> scores(std::mt19937_64& random, int64_t size, int kind) {
  constexpr T kInf = std::numeric_limits<T>::infinity();
  std::normal_distribution<T> normal;
  std::uniform_int_distribution<int> small(-3, 3), percent(0, 99);
  std::vector<T> x(static_cast<size_t>(size));
  for (T& value : x) {
    value = normal(random);
    if (kind == 1) value = std::copysign(std::abs(T(small(random))), value);
    if (kind == 2) value = std::numeric_limits<T>::denorm_min() * T(small(random));
    if (kind == 3 && percent(random) < 20) value = percent(random) < 50 ? kInf : -kInf;
    if (kind == 4 && percent(random) < 1) value = std::numeric_limits<T>::quiet_NaN();
  }
  return x;
}

constexpr int kKinds = 5;

TYPED_TEST(SpanningTreeOf, AgreesWithKruskalOnEverySmallSize) {
  for (const Layout layout : kLayouts) {
    for (int64_t n = 1; n <= 40; ++n) {
      const SpanningTree solver{.vertices = n, .layout = layout};
      for (int kind = 0; kind < kKinds; ++kind) {
        const uint64_t seed = static_cast<uint64_t>(n * 10 + kind);
        std::mt19937_64 random(seed);
        const int64_t count = n <= 16 ? 83 : 21;
        const auto x = scores<TypeParam>(random, count * solver.size(), kind);
        expect_kruskal(solver, count, x, nullptr,
                       "n=" + std::to_string(n) + " seed=" + std::to_string(seed));
      }
    }
  }
}

TYPED_TEST(SpanningTreeOf, AgreesWithKruskalUnderMasks) {
  for (const Layout layout : kLayouts) {
    for (const int64_t n : {2, 3, 5, 10, 17, 30}) {
      const SpanningTree solver{.vertices = n, .layout = layout};
      for (int kind = 0; kind < kKinds; ++kind) {
        const uint64_t seed = static_cast<uint64_t>(n * 10 + kind);
        std::mt19937_64 random(seed);
        const int64_t count = 60;
        const auto x = scores<TypeParam>(random, count * solver.size(), kind);
        const auto mask = std::make_unique<bool[]>(x.size());
        for (size_t r = 0; r < static_cast<size_t>(count); ++r) {
          std::bernoulli_distribution keep(double(r % 20 + 1) / 20);
          const auto size = static_cast<size_t>(solver.size());
          for (size_t e = 0; e < size; ++e) mask[r * size + e] = keep(random);
        }
        expect_kruskal(solver, count, x, mask.get(),
                       "n=" + std::to_string(n) + " seed=" + std::to_string(seed));
      }
    }
  }
}

TYPED_TEST(SpanningTreeOf, ThreeHundredVertices) {
  for (const Layout layout : kLayouts) {
    const SpanningTree solver{.vertices = 300, .layout = layout};
    for (int kind = 0; kind < 4; ++kind) {
      std::mt19937_64 random(static_cast<uint64_t>(kind));
      const auto x = scores<TypeParam>(random, solver.size(), kind);
      expect_kruskal(solver, 1, x, nullptr, "kind=" + std::to_string(kind));
    }
  }
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

TEST_F(SpanningTreeTest, BadSettingsAreNamed) {
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
