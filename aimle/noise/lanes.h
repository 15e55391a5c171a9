// Words and floats in the lanes of several vectors at once, with the operations of math.h.
//
// Every operation works on kVectors vectors in turn: a polynomial is one long chain of dependent
// operations, and several independent chains hide its latency. `Machine` defines the instructions.
// For inclusion in one source file per instruction set: everything has internal linkage.
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

template <class Machine>
struct Words {
  using Vector [[gnu::vector_size(4 * Machine::kLanes)]] = uint32_t;
  static constexpr int kVectors = Machine::kVectors;
  Vector v[kVectors];

  Words() = default;
  [[gnu::always_inline]] explicit Words(uint32_t value) {
    for (Vector& x : v) x = Vector{} + value;
  }
};

template <class Machine>
struct Floats {
  using Vector [[gnu::vector_size(4 * Machine::kLanes)]] = float;
  static constexpr int kVectors = Machine::kVectors;
  Vector v[kVectors];

  Floats() = default;
  [[gnu::always_inline]] Floats(
      float value) {  // NOLINT(google-explicit-constructor): as plain floats do
    for (Vector& x : v) x = Vector{} + value;
  }
};

/// result.v[i] = operation(i) for every vector.
template <class Result, class Operation>
[[gnu::always_inline]] inline Result each(Operation operation) {
  Result result;
#pragma GCC unroll 8
  for (int i = 0; i < Result::kVectors; ++i) result.v[i] = operation(i);
  return result;
}

template <class M>
[[gnu::always_inline]] inline Words<M> operator&(const Words<M>& a, const Words<M>& b) {
  return each<Words<M>>([&](int i) { return a.v[i] & b.v[i]; });
}
template <class M>
[[gnu::always_inline]] inline Words<M> operator|(const Words<M>& a, const Words<M>& b) {
  return each<Words<M>>([&](int i) { return a.v[i] | b.v[i]; });
}
template <class M>
[[gnu::always_inline]] inline Words<M> operator-(const Words<M>& a, const Words<M>& b) {
  return each<Words<M>>([&](int i) { return a.v[i] - b.v[i]; });
}
template <class M>
[[gnu::always_inline]] inline Words<M> operator~(const Words<M>& a) {
  return each<Words<M>>([&](int i) { return ~a.v[i]; });
}
template <class M>
[[gnu::always_inline]] inline Words<M> operator>>(const Words<M>& a, int bits) {
  return each<Words<M>>([&](int i) { return a.v[i] >> bits; });
}

template <class M>
[[gnu::always_inline]] inline Floats<M> operator+(const Floats<M>& a, float b) {
  return each<Floats<M>>([&](int i) { return a.v[i] + b; });
}
template <class M>
[[gnu::always_inline]] inline Floats<M> operator-(const Floats<M>& a, const Floats<M>& b) {
  return each<Floats<M>>([&](int i) { return a.v[i] - b.v[i]; });
}
template <class M>
[[gnu::always_inline]] inline Floats<M> operator-(float a, const Floats<M>& b) {
  return each<Floats<M>>([&](int i) { return a - b.v[i]; });
}
template <class M>
[[gnu::always_inline]] inline Floats<M> operator*(const Floats<M>& a, const Floats<M>& b) {
  return each<Floats<M>>([&](int i) { return a.v[i] * b.v[i]; });
}
template <class M>
[[gnu::always_inline]] inline Floats<M> operator*(const Floats<M>& a, float b) {
  return each<Floats<M>>([&](int i) { return a.v[i] * b; });
}
template <class M>
[[gnu::always_inline]] inline Floats<M> operator*(float a, const Floats<M>& b) {
  return b * a;
}
template <class M>
[[gnu::always_inline]] inline Floats<M> operator/(const Floats<M>& a, const Floats<M>& b) {
  return each<Floats<M>>([&](int i) { return a.v[i] / b.v[i]; });
}
template <class M>
[[gnu::always_inline]] inline Floats<M> operator-(const Floats<M>& a) {
  return each<Floats<M>>([&](int i) { return -a.v[i]; });
}
template <class M>
[[gnu::always_inline]] inline Floats<M> fma(const Floats<M>& a, const Floats<M>& b,
                                            const Floats<M>& c) {
  return each<Floats<M>>([&](int i) { return M::fma(a.v[i], b.v[i], c.v[i]); });
}

template <class M>
[[gnu::always_inline]] inline Words<M> float_bits(const Floats<M>& a) {
  return each<Words<M>>([&](int i) { return (typename Words<M>::Vector)a.v[i]; });
}
template <class M>
[[gnu::always_inline]] inline Floats<M> float_from_bits(const Words<M>& a) {
  return each<Floats<M>>([&](int i) { return (typename Floats<M>::Vector)a.v[i]; });
}
template <class M>
[[gnu::always_inline]] inline Floats<M> float_of_int(const Words<M>& a) {
  using Signed [[gnu::vector_size(4 * M::kLanes)]] = int32_t;
  return each<Floats<M>>(
      [&](int i) { return __builtin_convertvector((Signed)a.v[i], typename Floats<M>::Vector); });
}
template <class M>
[[gnu::always_inline]] inline Floats<M> select(const Words<M>& mask, const Floats<M>& yes,
                                               const Floats<M>& no) {
  return float_from_bits((float_bits(yes) & mask) | (float_bits(no) & ~mask));
}

/// values[i] = Quantile::of(the bits of values[i]), for whole groups of kVectors * kLanes,
/// aligned as a vector is.
template <class Machine, class Quantile>
[[gnu::noinline]] void transform(float* values, int64_t count) {
  using WordVector = typename Words<Machine>::Vector;
  using FloatVector = typename Floats<Machine>::Vector;
  constexpr int64_t kGroup = Machine::kVectors * Machine::kLanes;
  for (int64_t i = 0; i < count; i += kGroup) {
    auto* group = reinterpret_cast<FloatVector*>(values + i);
    const auto words = each<Words<Machine>>([&](int v) { return (WordVector)group[v]; });
    const Floats<Machine> noise = Quantile::of(words);
    for (int v = 0; v < Machine::kVectors; ++v) group[v] = noise.v[v];
  }
}

}  // namespace
}  // namespace aimle
