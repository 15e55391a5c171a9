#include "experiments/warcraft/paint.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace aimle::experiments::warcraft {
namespace {

/// The purpose of a hash; terrain.cpp uses those below 16.
enum Field : uint32_t {
  kShift = 16,
  kSpeckle,
  kPatch,
  kPoint,
  kRipple,
  kBrightness,
};

struct Colour {
  float red;
  float green;
  float blue;
};
constexpr std::array<Colour, 5> kColours{
    {{52, 82, 11}, {106, 66, 5}, {18, 84, 9}, {6, 54, 112}, {84, 84, 84}}};
constexpr Colour kShore{44, 40, 8};

/// The nearest of random points, one in each square of side `spacing`: its offset from (x, y), in
/// units of the spacing.
struct Offset {
  float x;
  float y;
  float squared;
};
Offset nearest_point(uint64_t seed, float x, float y, float spacing) {
  const float u = x / spacing;
  const float v = y / spacing;
  const auto column = int64_t{floor_int(u)};
  const auto row = int64_t{floor_int(v)};
  Offset best{0, 0, 9};
  for (int64_t i = row - 1; i <= row + 1; ++i) {
    for (int64_t j = column - 1; j <= column + 1; ++j) {
      const Pair shift = pair(seed, kPoint, j, i);
      const float dx = static_cast<float>(j) + 0.5f + 0.4f * shift.first - u;
      const float dy = static_cast<float>(i) + 0.5f + 0.4f * shift.second - v;
      const float squared = dx * dx + dy * dy;
      if (squared < best.squared) best = {dx, dy, squared};
    }
  }
  return best;
}

class Canvas {
 public:
  Canvas(std::span<const Terrain> terrain, int64_t cells, uint64_t seed)
      : terrain_(terrain),
        cells_(cells),
        seed_(seed),
        brightness_(1.0f + 0.12f * pair(seed, kBrightness, 0, 0).first) {}

  std::array<uint8_t, kChannels> pixel(int64_t x, int64_t y) const {
    const auto u = static_cast<float>(x) + 0.5f;
    const auto v = static_cast<float>(y) + 0.5f;
    const Pair shift = smooth_noise(seed_, kShift, u / 3, v / 3);
    const float shifted_u = u + 2.4f * shift.first;
    const float shifted_v = v + 2.4f * shift.second;
    const Terrain here = at(shifted_u, shifted_v);
    Colour colour = kColours[static_cast<size_t>(here)];
    const float speckle = pair(seed_, kSpeckle, x, y).first;
    const float light = brightness_ * texture(here, u, v, speckle);
    if (const float edge = cliff(here, shifted_u, shifted_v); edge > 0) {
      colour = {colour.red + edge * (kShore.red - colour.red),
                colour.green + edge * (kShore.green - colour.green),
                colour.blue + edge * (kShore.blue - colour.blue)};
    }
    const auto level = [&](float base) {
      return static_cast<uint8_t>(std::clamp(base * light + 2.5f * speckle, 0.0f, 255.0f));
    };
    return {level(colour.red), level(colour.green), level(colour.blue)};
  }

 private:
  Terrain at(float u, float v) const {
    const auto cell = [&](float w) {
      return std::clamp<int64_t>(floor_int(w / static_cast<float>(kTile)), 0, cells_ - 1);
    };
    return terrain_[cell(v) * cells_ + cell(u)];
  }

  float texture(Terrain terrain, float u, float v, float speckle) const {
    switch (terrain) {
      case Terrain::kGrass:
        return 1.0f + 0.16f * smooth_noise(seed_, kPatch, u / 13, v / 13).first + 0.07f * speckle;
      case Terrain::kEarth:
        return 1.0f + 0.06f * smooth_noise(seed_, kPatch, u / 5, v / 5).first + 0.07f * speckle;
      case Terrain::kForest: {
        const Offset crown = nearest_point(seed_, u, v, 4.5f);
        return 1.45f - 2.6f * crown.squared + 0.35f * (crown.x + crown.y) + 0.1f * speckle;
      }
      case Terrain::kWater: {
        const float along = (u + 2 * v) / 5 + smooth_noise(seed_, kRipple, u / 6, v / 6).first;
        const float wave =
            std::fabs(along - 2 * static_cast<float>(floor_int(along / 2)) - 1) - 0.5f;
        return 1.0f + 0.14f * wave + 0.03f * speckle;
      }
      case Terrain::kRock: {
        const Offset facet = nearest_point(seed_, u + 0.5f * v, v, 4.0f);
        return 1.0f + 0.75f * (facet.x + facet.y) - 0.5f * facet.squared + 0.12f * speckle;
      }
    }
    return 1;
  }

  /// The strength of the dark rim around water and rock at this pixel.
  float cliff(Terrain here, float u, float v) const {
    const auto steep = [](Terrain t) { return t == Terrain::kWater || t == Terrain::kRock; };
    float edge = 0;
    for (const auto& [du, dv] :
         {std::pair{1.3f, 0.0f}, {-1.3f, 0.0f}, {0.0f, 1.3f}, {0.0f, -1.3f}}) {
      const Terrain there = at(u + du, v + dv);
      if (there != here && (steep(there) || steep(here))) edge += 0.35f;
    }
    return std::min(edge, 0.7f);
  }

  std::span<const Terrain> terrain_;
  int64_t cells_;
  uint64_t seed_;
  float brightness_;
};

}  // namespace

Pair smooth_noise(uint64_t seed, uint32_t what, float x, float y) {
  const int64_t j = floor_int(x);
  const int64_t i = floor_int(y);
  const auto ease = [](float t) { return t * t * (3 - 2 * t); };
  const float u = ease(x - static_cast<float>(j));
  const float v = ease(y - static_cast<float>(i));
  const auto between = [](Pair a, Pair b, float t) {
    return Pair{a.first + t * (b.first - a.first), a.second + t * (b.second - a.second)};
  };
  const Pair above = between(pair(seed, what, j, i), pair(seed, what, j + 1, i), u);
  const Pair below = between(pair(seed, what, j, i + 1), pair(seed, what, j + 1, i + 1), u);
  return between(above, below, v);
}

void paint(std::span<const Terrain> terrain, int64_t cells, uint64_t seed, uint8_t* image) {
  const Canvas canvas(terrain, cells, seed);
  for (int64_t y = 0; y < kTile * cells; ++y) {
    for (int64_t x = 0; x < kTile * cells; ++x, image += kChannels) {
      std::ranges::copy(canvas.pixel(x, y), image);
    }
  }
}

}  // namespace aimle::experiments::warcraft
