// Generated terrain maps that resemble the public ones: the data of the experiment without files.
//
// Two fields of smooth noise over the cells, a height and a wetness, are cut at random quantiles:
// the lowest cells are water, the highest rock, and the land between them earth, grass or forest by
// wetness. The costs are those of the public maps:
//
//   grass 0.8   earth 1.2   forest 5.3   water 7.7   rock 9.2
//
// Every cell is painted as an 8 x 8 tile with its terrain's texture (crowns, facets, ripples,
// speckles), with a brightness per map; borders are ragged, and shores and cliffs are dark.
// Paths are solved by GridPath on the true costs.
//
// A map is a function of only (seed, split, its number) and `cells`: not of `count` or threads.
// 10,000 maps of 12 x 12 take seconds.
//
//   auto train = aimle::experiments::warcraft::generate({.count = 10'000, .split = 0});
#pragma once

#include <array>
#include <cstdint>

#include "experiments/warcraft/maps.h"

namespace aimle::experiments::warcraft {

enum class Terrain : uint8_t { kGrass, kEarth, kForest, kWater, kRock };
inline constexpr std::array<float, 5> kCosts{0.8f, 1.2f, 5.3f, 7.7f, 9.2f};

struct Generate {
  int64_t count = 0;
  int64_t cells = 12;
  uint64_t seed = 0;
  /// 0 train, 1 validation, 2 test.
  uint32_t split = 0;
};

Maps generate(const Generate& settings, const Executor& executor = sequential());

}  // namespace aimle::experiments::warcraft
