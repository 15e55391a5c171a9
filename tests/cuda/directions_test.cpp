// The kernels that fold and spread directed entries, run on the host (on_host/block.h), against the
// functions of the CPU.
#include "aimle/cuda/directions.h"

#include <gtest/gtest.h>

#include <vector>

#include "aimle/map/directions.h"

namespace aimle {
namespace {

TEST(DirectionsOnHost, FoldAndSpreadAsTheCpuDoes) {
  const auto no_room = [](size_t) -> void* { return nullptr; };
  const cuda::Context context{.allocate = no_room};
  for (const int64_t vertices : {1, 2, 3, 7, 40}) {
    for (const int64_t count : {0, 1, 5}) {
      const auto edges = static_cast<size_t>(count * vertices * (vertices - 1) / 2);
      std::vector<float> directed(2 * edges), folded(edges), expected(edges);
      for (size_t e = 0; e < directed.size(); ++e) directed[e] = 0.37f * static_cast<float>(e);
      fold_directions(vertices, count, directed.data(), expected.data());
      cuda::fold_directions(vertices, count, directed.data(), folded.data(), context);
      EXPECT_EQ(folded, expected) << vertices << " vertices, " << count << " rows";
      std::vector<float> spread(2 * edges), expected_spread(2 * edges);
      spread_directions(vertices, count, folded.data(), expected_spread.data());
      cuda::spread_directions(vertices, count, folded.data(), spread.data(), context);
      EXPECT_EQ(spread, expected_spread) << vertices << " vertices, " << count << " rows";
    }
  }
}

}  // namespace
}  // namespace aimle
