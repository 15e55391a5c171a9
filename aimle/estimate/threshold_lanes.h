// Several entries of a row in parallel, for the threshold kernels. Private to threshold_loops.h.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <type_traits>
#include <utility>

namespace aimle {
namespace {

/// lane(0), lane(1), ... in one vector.
template <class Vector, class Lane>
[[gnu::always_inline]] inline Vector lanes_of(Lane lane) {
  Vector result = {};
  constexpr int kCount = sizeof(Vector) / sizeof(result[0]);
  for (int i = 0; i < kCount; ++i) result[i] = lane(i);
  return result;
}

/// kLanes entries, of which the first `count` exist; `count` is a Whole if all do.
template <int kLanes>
struct Lanes {
  using Reals [[gnu::vector_size(8 * kLanes)]] = double;
  using Flags [[gnu::vector_size(8 * kLanes)]] = int64_t;  // yes: all ones
  struct Whole {};

  [[gnu::always_inline]] static Reals reals(double x) { return Reals{} + x; }
  [[gnu::always_inline]] static Flags flags(int64_t x) { return Flags{} + x; }

  template <class T>
  [[gnu::always_inline]] static Reals load(const T* x, Whole) {
#if defined(__AVX512F__)
    if constexpr (kLanes == 8 && std::is_same_v<T, float>) {  // one conversion instead of two
      return (Reals)_mm512_cvtps_pd(_mm256_loadu_ps(x));
    }
#endif
    using Loaded [[gnu::vector_size(sizeof(T) * kLanes)]] = T;
    Loaded loaded;
    __builtin_memcpy(&loaded, x, sizeof loaded);
    return __builtin_convertvector(loaded, Reals);
  }
  template <class T>
  [[gnu::always_inline]] static Reals load(const T* x, int64_t count) {
    T padded[kLanes] = {};
    for (int i = 0; i < kLanes - 1 && i < count; ++i) padded[i] = x[i];
    return load(padded, Whole{});
  }
  [[gnu::always_inline]] static Flags load_flags(const uint64_t* x, Whole) {
    Flags loaded;
    __builtin_memcpy(&loaded, x, sizeof loaded);
    return loaded;
  }
  [[gnu::always_inline]] static Flags load_flags(const uint64_t* x, int64_t count) {
    uint64_t padded[kLanes] = {};
    for (int i = 0; i < kLanes - 1 && i < count; ++i) padded[i] = x[i];
    return load_flags(padded, Whole{});
  }
  [[gnu::always_inline]] static void store_flags(Flags x, uint64_t* out) {
    __builtin_memcpy(out, &x, sizeof x);
  }
  [[gnu::always_inline]] static void store(Reals x, double* out) {
    __builtin_memcpy(out, &x, sizeof x);
  }
  [[gnu::always_inline]] static Flags load_integers(const int64_t* x) {
    Flags loaded;
    __builtin_memcpy(&loaded, x, sizeof loaded);
    return loaded;
  }
  [[gnu::always_inline]] static void store_integers(Flags x, int64_t* out) {
    __builtin_memcpy(out, &x, sizeof x);
  }

  [[gnu::always_inline]] static void add(Reals x, double* sum) {
    store(load(sum, Whole{}) + x, sum);
  }

  /// Which of the entries from j on, a multiple of kLanes, are in.
  [[gnu::always_inline]] static Flags in(const uint8_t* bits, int64_t j) {
    return has(bits[j / 8] >> j % 8);
  }
  /// Which of the bits are set.
  [[gnu::always_inline]] static Flags has(int64_t bits) {
    const auto one = lanes_of<Flags>([](int i) { return int64_t{1} << i; });
    return (flags(bits) & one) != 0;
  }

  /// x if there is an entry, otherwise zero.
  template <class Vector>
  [[gnu::always_inline]] static Vector only(Vector x, Whole) {
    return x;
  }
  template <class Vector>
  [[gnu::always_inline]] static Vector only(Vector x, int64_t count) {
    return lanes_of<Flags>([](int i) { return i; }) < count ? x : Vector{};
  }

  [[gnu::always_inline]] static int64_t count(Flags flags) {
    int64_t set[kLanes], total = 0;
    __builtin_memcpy(set, &flags, sizeof set);
    for (int i = 0; i < kLanes; ++i) total -= set[i];
    return total;
  }

  /// The largest, in all lanes.
  [[gnu::always_inline]] static Reals largest(Reals x) {
    return folded<kLanes / 2>(x, [](auto a, auto b) { return a > b ? a : b; });
  }
  [[gnu::always_inline]] static Flags largest(Flags x) {
    return folded<kLanes / 2>(x, [](auto a, auto b) { return a > b ? a : b; });
  }

  /// Bit i: the flag of lane i.
  [[gnu::always_inline]] static uint32_t bits(Flags flags) {
#if defined(__AVX512F__)
    if constexpr (kLanes == 8) return _mm512_movepi64_mask((__m512i)flags);
#endif
#if defined(__AVX2__)
    if constexpr (kLanes == 4) {
      return static_cast<uint32_t>(_mm256_movemask_pd((__m256d)flags));
    }
#endif
    int64_t set[kLanes];
    __builtin_memcpy(set, &flags, sizeof set);
    uint32_t result = 0;
    for (int i = 0; i < kLanes; ++i) result |= static_cast<uint32_t>(set[i] & 1) << i;
    return result;
  }

  [[gnu::always_inline]] static Reals absolute(Reals x) {
    return (Reals)((Flags)x & ~(int64_t{1} << 63));
  }

 private:
  template <int kDistance, class Vector, class Combine>
  [[gnu::always_inline]] static Vector folded(Vector x, Combine combine) {
    const Vector other = [&]<int... i>(std::integer_sequence<int, i...>) {
      return __builtin_shufflevector(x, x, (i ^ kDistance)...);
    }
    (std::make_integer_sequence<int, kLanes>{});
    const Vector both = combine(x, other);
    if constexpr (kDistance > 1) return folded<kDistance / 2>(both, combine);
    return both;
  }
};

#if defined(__AVX512F__)
inline constexpr int kWideLanes = 8;
#else
inline constexpr int kWideLanes = 4;
#endif

/// Calls visit(Lanes<...>{}, j, count) for all of [0, n), the last ones in groups of four.
template <class Visit>
[[gnu::always_inline]] inline void for_lanes(int64_t n, Visit visit) {
  using Wide = Lanes<kWideLanes>;
  using Group = Lanes<4>;
  int64_t j = 0;
  for (; j + kWideLanes <= n; j += kWideLanes) visit(Wide{}, j, typename Wide::Whole{});
  if constexpr (kWideLanes > 4) {
    if (j + 4 <= n) {
      visit(Group{}, j, typename Group::Whole{});
      j += 4;
    }
  }
  if (j < n) visit(Group{}, j, n - j);
}

}  // namespace
}  // namespace aimle
