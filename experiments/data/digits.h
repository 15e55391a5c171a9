// Digits drawn by the program: 28 x 28 grey values like MNIST's, for runs without any file.
//
// A digit consists of a few strokes, curves through given points (Catmull–Rom). Every example
// jitters, scales, slants, turns and shifts them, and draws them with a pen of its own thickness
// and softness. Example i is a pure function of (seed, i): the same on every machine and for any
// thread count (only sums, products and square roots). 60,000 take a few seconds.
#pragma once

#include <cstdint>

#include "experiments/data/images.h"

namespace aimle::experiments {

inline constexpr int64_t kDigitSide = 28;

/// Examples first ... first + count - 1; the classes are in random order.
Images draw_digits(int64_t seed, int64_t first, int64_t count);

}  // namespace aimle::experiments
