// Words and floats in the lanes of several vectors at once, with the operations of math.h.
//
// Every operation works on kVectors vectors in turn: a polynomial is one long chain of dependent
// steps, and several chains side by side keep the processor busy where one would wait. `Machine`
// names the instructions. For inclusion in one source file per instruction set: everything has
// internal linkage.
//
//   struct Machine {
//     static constexpr int kVectors, kLanes;  // lanes of a vector
//     fma(a, b, c) for vectors of floats
//   };
#pragma once

#include <cstdint>

#include "aimle/noise/math.h"

namespace aimle {
namespace {

#define AIMLE_LANES [[gnu::always_inline]] inline

template <class Machine>
struct Words {
  using Vector [[gnu::vector_size(4 * Machine::kLanes)]] = uint32_t;
  Vector v[Machine::kVectors];

  Words() = default;
  AIMLE_LANES explicit Words(uint32_t value) {
    for (Vector& x : v) x = Vector{} + value;
  }
};

template <class Machine>
struct Floats {
  using Vector [[gnu::vector_size(4 * Machine::kLanes)]] = float;
  Vector v[Machine::kVectors];

  Floats() = default;
  AIMLE_LANES Floats(float value) {  // NOLINT(google-explicit-constructor): as plain floats do
    for (Vector& x : v) x = Vector{} + value;
  }
};

/// result.v[i] = operation(i) for every vector.
template <class Result, class Operation>
AIMLE_LANES Result each(Operation operation) {
  Result result;
#pragma GCC unroll 8
  for (int i = 0; i < static_cast<int>(sizeof(result.v) / sizeof(result.v[0])); ++i) {
    result.v[i] = operation(i);
  }
  return result;
}

template <class M>
AIMLE_LANES Words<M> operator&(const Words<M>& a, const Words<M>& b) {
  return each<Words<M>>([&](int i) { return a.v[i] & b.v[i]; });
}
template <class M>
AIMLE_LANES Words<M> operator|(const Words<M>& a, const Words<M>& b) {
  return each<Words<M>>([&](int i) { return a.v[i] | b.v[i]; });
}
template <class M>
AIMLE_LANES Words<M> operator-(const Words<M>& a, const Words<M>& b) {
  return each<Words<M>>([&](int i) { return a.v[i] - b.v[i]; });
}
template <class M>
AIMLE_LANES Words<M> operator~(const Words<M>& a) {
  return each<Words<M>>([&](int i) { return ~a.v[i]; });
}
template <class M>
AIMLE_LANES Words<M> operator>>(const Words<M>& a, int bits) {
  return each<Words<M>>([&](int i) { return a.v[i] >> bits; });
}

template <class M>
AIMLE_LANES Floats<M> operator+(const Floats<M>& a, float b) {
  return each<Floats<M>>([&](int i) { return a.v[i] + b; });
}
template <class M>
AIMLE_LANES Floats<M> operator-(const Floats<M>& a, const Floats<M>& b) {
  return each<Floats<M>>([&](int i) { return a.v[i] - b.v[i]; });
}
template <class M>
AIMLE_LANES Floats<M> operator-(float a, const Floats<M>& b) {
  return each<Floats<M>>([&](int i) { return a - b.v[i]; });
}
template <class M>
AIMLE_LANES Floats<M> operator*(const Floats<M>& a, const Floats<M>& b) {
  return each<Floats<M>>([&](int i) { return a.v[i] * b.v[i]; });
}
template <class M>
AIMLE_LANES Floats<M> operator*(const Floats<M>& a, float b) {
  return each<Floats<M>>([&](int i) { return a.v[i] * b; });
}
template <class M>
AIMLE_LANES Floats<M> operator*(float a, const Floats<M>& b) {
  return b * a;
}
template <class M>
AIMLE_LANES Floats<M> operator/(const Floats<M>& a, const Floats<M>& b) {
  return each<Floats<M>>([&](int i) { return a.v[i] / b.v[i]; });
}
template <class M>
AIMLE_LANES Floats<M> operator-(const Floats<M>& a) {
  return each<Floats<M>>([&](int i) { return -a.v[i]; });
}
template <class M>
AIMLE_LANES Floats<M> fma(const Floats<M>& a, const Floats<M>& b, const Floats<M>& c) {
  return each<Floats<M>>([&](int i) { return M::fma(a.v[i], b.v[i], c.v[i]); });
}

template <class M>
AIMLE_LANES Words<M> float_bits(const Floats<M>& a) {
  return each<Words<M>>([&](int i) { return (typename Words<M>::Vector)a.v[i]; });
}
template <class M>
AIMLE_LANES Floats<M> float_from_bits(const Words<M>& a) {
  return each<Floats<M>>([&](int i) { return (typename Floats<M>::Vector)a.v[i]; });
}
template <class M>
AIMLE_LANES Floats<M> float_of_int(const Words<M>& a) {
  using Signed [[gnu::vector_size(4 * M::kLanes)]] = int32_t;
  return each<Floats<M>>(
      [&](int i) { return __builtin_convertvector((Signed)a.v[i], typename Floats<M>::Vector); });
}
template <class M>
AIMLE_LANES Floats<M> select(const Words<M>& mask, const Floats<M>& yes, const Floats<M>& no) {
  return float_from_bits((float_bits(yes) & mask) | (float_bits(no) & ~mask));
}

/// values[i] = quantile(the bits of values[i]), for whole groups of kVectors * kLanes.
template <class Machine, class Quantile>
void transform(Quantile quantile, float* values, int64_t count) {
  constexpr int64_t kGroup = Machine::kVectors * Machine::kLanes;
  for (int64_t i = 0; i < count; i += kGroup) {
    Words<Machine> words;
    __builtin_memcpy(words.v, values + i, sizeof words.v);
    const Floats<Machine> noise = quantile(words);
    __builtin_memcpy(values + i, noise.v, sizeof noise.v);
  }
}

#undef AIMLE_LANES

}  // namespace
}  // namespace aimle
