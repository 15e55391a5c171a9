#include "experiments/warcraft/terrain.h"

#include <algorithm>
#include <vector>

#include "aimle/base/check.h"
#include "aimle/noise/philox.h"
#include "experiments/warcraft/paint.h"

namespace aimle::experiments::warcraft {
namespace {

enum Field : uint32_t { kBroad, kDetail, kShare };

uint64_t map_seed(const Generate& settings, int64_t map) {
  const PhiloxWords words = noise_words({.seed = settings.seed, .stream = settings.split},
                                        static_cast<uint32_t>(map), 0, 0);
  return uint64_t{words.w[0]} << 32 | words.w[1];
}

/// A uniform share in [low, high).
float share(uint64_t seed, int64_t which, float low, float high) {
  return low + (high - low) * 0.5f * (1 + pair(seed, kShare, which, 0).first);
}

struct Fields {
  std::vector<float> height;
  std::vector<float> wetness;
};

/// One octave of broad shapes and one of details.
Fields fields(uint64_t seed, int64_t cells) {
  Fields out;
  for (int64_t i = 0; i < cells; ++i) {
    for (int64_t j = 0; j < cells; ++j) {
      const auto u = static_cast<float>(j);
      const auto v = static_cast<float>(i);
      const Pair broad = smooth_noise(seed, kBroad, u / 3.7f, v / 3.7f);
      const Pair detail = smooth_noise(seed, kDetail, u / 1.6f, v / 1.6f);
      out.height.push_back(broad.first + 0.45f * detail.first);
      out.wetness.push_back(broad.second + 0.45f * detail.second);
    }
  }
  return out;
}

float quantile(std::vector<float> values, float q) {
  const auto nth = values.begin() + static_cast<int64_t>(q * static_cast<float>(values.size() - 1));
  std::ranges::nth_element(values, nth);
  return *nth;
}

std::vector<Terrain> terrain_of(uint64_t seed, int64_t cells) {
  const auto [height, wetness] = fields(seed, cells);
  const float sea = quantile(height, share(seed, 0, 0.05f, 0.30f));
  const float cliff = quantile(height, 1 - share(seed, 1, 0.05f, 0.25f));
  const float dry = quantile(wetness, share(seed, 2, 0.25f, 0.60f));
  const float wood = quantile(wetness, 1 - share(seed, 3, 0.05f, 0.30f));
  std::vector<Terrain> terrain(height.size());
  for (size_t i = 0; i < terrain.size(); ++i) {
    if (height[i] < sea) {
      terrain[i] = Terrain::kWater;
    } else if (height[i] > cliff) {
      terrain[i] = Terrain::kRock;
    } else if (wetness[i] < dry) {
      terrain[i] = Terrain::kEarth;
    } else {
      terrain[i] = wetness[i] > wood ? Terrain::kForest : Terrain::kGrass;
    }
  }
  return terrain;
}

}  // namespace

Maps generate(const Generate& settings, const Executor& executor) {
  AIMLE_CHECK(settings.count >= 0 && settings.cells >= 2 && settings.cells <= 1000,
              "[aimle warcraft] expected count >= 0 and 2 <= cells <= 1000 but got ",
              settings.count, " and ", settings.cells);
  const int64_t area = settings.cells * settings.cells;
  Maps maps{.count = settings.count, .cells = settings.cells};
  maps.images.resize(static_cast<size_t>(maps.count * maps.image_size()));
  maps.costs.resize(static_cast<size_t>(maps.count * area));
  parallel_for(executor, maps.count, 5000.0 * static_cast<double>(area),
               [&](int64_t begin, int64_t end) {
                 for (int64_t map = begin; map < end; ++map) {
                   const uint64_t seed = map_seed(settings, map);
                   const std::vector<Terrain> terrain = terrain_of(seed, maps.cells);
                   for (int64_t i = 0; i < area; ++i) {
                     maps.costs[map * area + i] = kCosts[static_cast<size_t>(terrain[i])];
                   }
                   paint(terrain, maps.cells, seed, maps.images.data() + map * maps.image_size());
                 }
               });
  maps.paths = solve_paths(maps.costs, maps.cells, executor);
  return maps;
}

}  // namespace aimle::experiments::warcraft
