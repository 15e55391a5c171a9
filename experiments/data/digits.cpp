#include "experiments/data/digits.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "experiments/engine/randomness.h"

namespace aimle::experiments {
namespace {

struct Point {
  float x = 0, y = 0;
};

/// A curve through its points; a corner is where one stroke ends and the next begins.
using Stroke = std::vector<Point>;
using Shape = std::vector<Stroke>;

/// A curve through x, y, x, y, ... in hundredths.
Stroke curve(std::initializer_list<int> hundredths) {
  Stroke points;
  for (const int* x = hundredths.begin(); x != hundredths.end(); x += 2) {
    points.push_back({static_cast<float>(x[0]) / 100, static_cast<float>(x[1]) / 100});
  }
  return points;
}

// In a box of width and height 1, y downwards. A class may have several shapes.
const std::array<std::vector<Shape>, 10> kShapes = {{
    {{curve({50, 0, 20, 13, 7, 50, 20, 87, 50, 100, 80, 87, 93, 50, 80, 13, 50, 0})}},
    {{curve({50, 0, 50, 100})},
     {curve({28, 20, 55, 0}), curve({55, 0, 55, 100})},
     {curve({28, 20, 52, 0}), curve({52, 0, 52, 100}), curve({25, 100, 80, 100})}},
    {{curve({10, 26, 26, 5, 55, 0, 83, 15, 80, 42, 50, 70, 8, 100}), curve({8, 100, 95, 98})},
     {curve({12, 22, 45, 0, 82, 20, 65, 60, 30, 95, 10, 90, 30, 78, 60, 95, 95, 95})}},
    {{curve({13, 12, 45, 0, 80, 13, 76, 37, 40, 47}),
      curve({40, 47, 82, 57, 87, 82, 50, 100, 8, 88})},
     {curve({10, 2, 85, 2}), curve({85, 2, 42, 40}),
      curve({42, 40, 82, 52, 86, 82, 50, 100, 10, 90})}},
    {{curve({62, 0, 6, 66}), curve({6, 66, 95, 66}), curve({68, 35, 66, 100})},
     {curve({15, 0, 12, 35, 20, 50, 50, 53, 80, 45}), curve({85, 2, 78, 100})}},
    {{curve({85, 2, 25, 0}), curve({25, 0, 18, 45}),
      curve({18, 45, 55, 36, 88, 58, 78, 88, 42, 100, 8, 88})}},
    {{curve({75, 0, 40, 20, 14, 60, 25, 92, 55, 100, 84, 86, 80, 60, 50, 50, 20, 68})}},
    {{curve({8, 2, 92, 2}), curve({92, 2, 60, 45, 42, 100})},
     {curve({8, 2, 92, 2}), curve({92, 2, 60, 45, 42, 100}), curve({30, 50, 85, 50})}},
    {{curve({50, 47, 20, 30, 28, 6,  50,  0,  72, 6,  80, 30, 50,
             47, 17, 65, 20, 92, 50, 100, 80, 92, 83, 65, 50, 47})}},
    {{curve({82, 28, 68, 4, 35, 3, 14, 25, 30, 50, 60, 48, 82, 28}),
      curve({82, 28, 80, 60, 62, 100})},
     {curve({82, 28, 68, 4, 35, 3, 14, 25, 30, 50, 60, 48, 82, 28}),
      curve({82, 28, 82, 70, 55, 100, 20, 90})}},
}};

/// The random numbers of one example, in sequence.
class Random {
 public:
  Random(int64_t seed, int64_t example)
      : seed_(random_bits(static_cast<uint64_t>(seed), Purpose::kData,
                          static_cast<uint64_t>(example))) {}

  float uniform(float low, float high) {
    const uint64_t bits = random_bits(seed_, Purpose::kData, number_++) >> 40;
    return low + (high - low) * static_cast<float>(bits) * 0x1p-24F;
  }
  size_t below(size_t n) {
    return static_cast<size_t>((random_bits(seed_, Purpose::kData, number_++) >> 32) * n >> 32);
  }
  /// A sum of uniforms: bell-shaped with about this spread, never beyond three times of it.
  float bell(float spread) { return spread * (uniform(-1, 1) + uniform(-1, 1) + uniform(-1, 1)); }

 private:
  uint64_t seed_;
  uint64_t number_ = 0;
};

/// Maps the box of the shape to pixels.
struct Placement {
  float width, height, slant, turn_cos, turn_sin, x, y;

  explicit Placement(Random& random) {
    width = random.uniform(9.5F, 14.5F);
    height = random.uniform(17, 20);
    slant = .1F + random.bell(.13F);
    const float t = random.bell(.04F);  // tan of half the angle
    turn_cos = (1 - t * t) / (1 + t * t);
    turn_sin = 2 * t / (1 + t * t);
    x = 13.5F + random.bell(.7F);
    y = 13.5F + random.bell(.7F);
  }

  Point operator()(Point p) const {
    const float v = (p.y - .5F) * height;
    const float u = (p.x - .5F) * width - slant * v;
    return {x + turn_cos * u - turn_sin * v, y + turn_sin * u + turn_cos * v};
  }
};

constexpr int kPieces = 6;  // straight lines between two points of a curve

void add_curve(const Stroke& points, std::vector<Point>& line) {
  const bool closed = points.front().x == points.back().x && points.front().y == points.back().y;
  const size_t n = points.size();
  line.push_back(points[0]);
  for (size_t i = 0; i + 1 < n; ++i) {
    const Point& b = points[i];
    const Point& c = points[i + 1];
    const Point& a = i > 0 ? points[i - 1] : (closed ? points[n - 2] : b);
    const Point& d = i + 2 < n ? points[i + 2] : (closed ? points[1] : c);
    const auto at = [](float p0, float p1, float p2, float p3, float t) {
      return .5F * (2 * p1 + (p2 - p0) * t + (2 * p0 - 5 * p1 + 4 * p2 - p3) * t * t +
                    (3 * p1 - p0 - 3 * p2 + p3) * t * t * t);
    };
    for (int k = 1; k <= kPieces; ++k) {
      const float t = static_cast<float>(k) / kPieces;
      line.push_back({at(a.x, b.x, c.x, d.x, t), at(a.y, b.y, c.y, d.y, t)});
    }
  }
}

constexpr int kSide = kDigitSide;
using Canvas = std::array<float, kSide * kSide>;  // squared distance to the nearest stroke

void mark_segment(Point a, Point b, float reach, Canvas& nearest) {
  const auto bounded = [](float v) { return std::clamp(static_cast<int>(v), 0, kSide - 1); };
  const int top = bounded(std::min(a.y, b.y) - reach),
            bottom = bounded(std::max(a.y, b.y) + reach + 1);
  const int left = bounded(std::min(a.x, b.x) - reach),
            right = bounded(std::max(a.x, b.x) + reach + 1);
  const float dx = b.x - a.x, dy = b.y - a.y;
  const float length = dx * dx + dy * dy;
  const float scale = length > 0 ? 1 / length : 0;
  for (int y = top; y <= bottom; ++y) {
    for (int x = left; x <= right; ++x) {
      const float px = static_cast<float>(x) - a.x, py = static_cast<float>(y) - a.y;
      const float t = std::clamp((px * dx + py * dy) * scale, 0.0F, 1.0F);
      const float ex = px - t * dx, ey = py - t * dy;
      float& old = nearest[static_cast<size_t>(y * kSide + x)];
      old = std::min(old, ex * ex + ey * ey);
    }
  }
}

void draw(const Shape& shape, Random& random, uint8_t* pixels) {
  const Placement place(random);
  const float radius = random.uniform(.75F, 1.6F);
  const float softness = random.uniform(.8F, 1.5F);
  const float ink = random.uniform(.85F, 1);
  const float reach = radius + softness;
  Canvas nearest;
  nearest.fill(1e9F);
  for (const Stroke& stroke : shape) {
    Stroke moved;
    for (const Point& p : stroke) {
      moved.push_back(place({p.x + random.bell(.022F), p.y + random.bell(.018F)}));
    }
    const bool closed = stroke.front().x == stroke.back().x && stroke.front().y == stroke.back().y;
    if (closed) moved.back() = moved.front();
    std::vector<Point> line;
    add_curve(moved, line);
    for (size_t i = 0; i + 1 < line.size(); ++i) {
      mark_segment(line[i], line[i + 1], reach, nearest);
    }
  }
  for (size_t i = 0; i < nearest.size(); ++i) {
    const float edge = (radius + .5F * softness - std::sqrt(nearest[i])) / softness;
    pixels[i] = static_cast<uint8_t>(255 * ink * std::clamp(edge, 0.0F, 1.0F) + .5F);
  }
}

}  // namespace

Images draw_digits(int64_t seed, int64_t first, int64_t count) {
  constexpr int64_t kPixels = kDigitSide * kDigitSide;
  Images images = {.count = count, .height = kDigitSide, .width = kDigitSide};
  images.pixels.resize(static_cast<size_t>(count * kPixels));
  images.labels.resize(static_cast<size_t>(count));
  at::parallel_for(0, count, 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Random random(seed, first + i);
      const size_t label = random.below(kShapes.size());
      const std::vector<Shape>& ways = kShapes[label];
      images.labels[static_cast<size_t>(i)] = static_cast<uint8_t>(label);
      draw(ways[random.below(ways.size())], random, images.pixels.data() + i * kPixels);
    }
  });
  return images;
}

}  // namespace aimle::experiments
