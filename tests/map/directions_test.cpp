#include "aimle/map/directions.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "aimle/map/spanning_tree.h"

namespace aimle {
namespace {

TEST(DirectionsTest, AnEdgeHasTheSumOfItsDirectionsAndGivesBothWhatItHas) {
  constexpr int64_t kVertices = 5, kRows = 3, kEdges = 10;
  std::vector<float> directed(kRows * 2 * kEdges), undirected(kRows * kEdges);
  for (size_t e = 0; e < directed.size(); ++e) directed[e] = 0.1f * static_cast<float>(e * e);
  fold_directions(kVertices, kRows, directed.data(), undirected.data());
  std::vector<float> spread(directed.size());
  spread_directions(kVertices, kRows, undirected.data(), spread.data());
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t i = 0; i < kVertices; ++i) {
      for (int64_t j = i + 1; j < kVertices; ++j) {
        const auto ij = static_cast<size_t>(r * 2 * kEdges + SpanningTree::arc(i, j, kVertices));
        const auto ji = static_cast<size_t>(r * 2 * kEdges + SpanningTree::arc(j, i, kVertices));
        const float edge =
            undirected[static_cast<size_t>(r * kEdges + SpanningTree::edge(i, j, kVertices))];
        EXPECT_EQ(edge, directed[ij] + directed[ji]);
        EXPECT_EQ(spread[ij], edge);
        EXPECT_EQ(spread[ji], edge);
      }
    }
  }
}

TEST(DirectionsTest, AnEdgeIsAllowedWhereBothDirectionsAre) {
  constexpr int64_t kVertices = 3;
  for (int bits = 0; bits < 64; ++bits) {
    bool directed[6], undirected[3];
    for (int e = 0; e < 6; ++e) directed[e] = (bits >> e) & 1;
    fold_directions(kVertices, 1, directed, undirected);
    const auto both = [&](int64_t i, int64_t j) {
      return directed[SpanningTree::arc(i, j, kVertices)] &&
             directed[SpanningTree::arc(j, i, kVertices)];
    };
    EXPECT_EQ(undirected[0], both(0, 1));
    EXPECT_EQ(undirected[1], both(0, 2));
    EXPECT_EQ(undirected[2], both(1, 2));
  }
}

}  // namespace
}  // namespace aimle
