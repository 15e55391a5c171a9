// One row of scores on the device, computed on request.
//
// Philox returns four words at a time, so scores are computed in quads: entries 4q ... 4q + 3. The
// formulas, and therefore the bits, are those of the host (aimle/noise, aimle/estimate/perturb.h).
#pragma once

#include <cstdint>
#include <type_traits>

#include "aimle/cuda/device_rows.h"
#include "aimle/noise/gumbel.h"
#include "aimle/noise/logistic.h"
#include "aimle/noise/normal.h"
#include "aimle/noise/philox.h"
#include "aimle/noise/quantile_table.h"

namespace aimle::cuda {

template <NoiseKind kind>
__device__ __forceinline__ float noise_of(const float* table, uint32_t word) {
  if constexpr (kind == NoiseKind::kGumbel) return gumbel(word);
  if constexpr (kind == NoiseKind::kNormal) return normal(word);
  if constexpr (kind == NoiseKind::kLogistic) return logistic(word);
  if constexpr (kind == NoiseKind::kSumOfGamma) {
    // look_up_quantile with one load for the four coefficients.
    const QuantileCell cell = quantile_cell(word);
    const float4 c = __ldg(reinterpret_cast<const float4*>(table) + cell.index);
    return fma(fma(fma(c.w, cell.t, c.z), cell.t, c.y), cell.t, c.x);
  }
  return 0.0f;
}

/// Calls body(std::integral_constant<NoiseKind, kind>).
template <class Body>
__device__ __forceinline__ void with_noise_kind(NoiseKind kind, Body body) {
  using K = NoiseKind;
  switch (kind) {
    case K::kNone:
      return body(std::integral_constant<K, K::kNone>{});
    case K::kGumbel:
      return body(std::integral_constant<K, K::kGumbel>{});
    case K::kNormal:
      return body(std::integral_constant<K, K::kNormal>{});
    case K::kLogistic:
      return body(std::integral_constant<K, K::kLogistic>{});
    case K::kSumOfGamma:
      return body(std::integral_constant<K, K::kSumOfGamma>{});
  }
}

__device__ __forceinline__ Key load_key(const DeviceKey& key) {
  if (key.words == nullptr) return key.value;
  const auto* words = reinterpret_cast<const long long*>(key.words);
  return {.seed = static_cast<uint64_t>(__ldg(words)),
          .stream = static_cast<uint64_t>(__ldg(words + 1)),
          .first = key.has_first ? static_cast<uint64_t>(__ldg(words + 2)) : 0};
}

/// a / b and a % b, in 32 bits if both fit, which is several times faster.
struct Split {
  int64_t quotient;
  int64_t rest;
};
__device__ __forceinline__ Split split(int64_t a, int64_t b) {
  if (((a | b) >> 32) == 0) {
    const auto x = static_cast<uint32_t>(a), y = static_cast<uint32_t>(b);
    return {x / y, x % y};
  }
  return {a / b, a % b};
}

template <class T>
__device__ __forceinline__ bool is_infinite(T x) {
  return x == static_cast<T>(INFINITY) || x == -static_cast<T>(INFINITY);
}

/// Entries 4q ... 4q + 3 of a row of n, zeros past its end. `aligned`: four at a time.
template <class T>
__device__ __forceinline__ void load_quad(const T* row, int64_t q, int64_t n, bool aligned,
                                          T (&out)[4]) {
  const T* at = row + 4 * q;
  if (aligned) {
    if constexpr (sizeof(T) == 4) {
      const float4 v = __ldg(reinterpret_cast<const float4*>(at));
      out[0] = v.x, out[1] = v.y, out[2] = v.z, out[3] = v.w;
    } else {
      const double2 v = __ldg(reinterpret_cast<const double2*>(at));
      const double2 w = __ldg(reinterpret_cast<const double2*>(at) + 1);
      out[0] = v.x, out[1] = v.y, out[2] = w.x, out[3] = w.y;
    }
    return;
  }
#pragma unroll
  for (int c = 0; c < 4; ++c) out[c] = 4 * q + c < n ? __ldg(at + c) : T(0);
}

/// Whether every row of n entries at `rows` can be read four entries at a time.
template <class T>
__device__ __forceinline__ bool quads_aligned(const T* rows, int64_t n) {
  return n % 4 == 0 && reinterpret_cast<uintptr_t>(rows) % 16 == 0;
}

template <class T>
class Row {
 public:
  __device__ Row(const RowSource<T>& source, int64_t r) : source_(source) {
    const int64_t per_side = source.examples.count * source.samples;
    const int side = r >= per_side;
    const Split place = split(r - side * per_side, source.samples);
    const double* steps = source.lambda == nullptr
                              ? nullptr
                              : source.lambda + place.quotient * (source.gradients + 2);
    begin(side, place.quotient, place.rest, steps);
  }

  /// Sample s of example b, whose step sizes are `steps` [gradients].
  __device__ Row(const RowSource<T>& source, int side, int64_t b, int64_t s, const double* steps)
      : source_(source) {
    begin(side, b, s, steps);
  }

  __device__ int64_t n() const { return source_.examples.n; }
  __device__ int64_t example() const { return b_; }

  /// Whether entry j may be chosen according to the mask.
  __device__ bool allowed(int64_t j) const {
    return source_.examples.mask == nullptr || source_.examples.mask[b_ * n() + j];
  }
  __device__ bool has_mask() const { return source_.examples.mask != nullptr; }
  /// The row's mask [n], or null.
  __device__ const bool* mask() const {
    return has_mask() ? source_.examples.mask + b_ * n() : nullptr;
  }
  /// The row's own k, otherwise `k`.
  __device__ int64_t k(int64_t k) const {
    return source_.examples.k == nullptr ? k : source_.examples.k[b_];
  }
  /// The data of the row's instance besides its scores.
  __device__ const int64_t* data() const { return source_.examples.data.of(b_); }

  /// What is subtracted from the scores if the noise is centred.
  __device__ T centring() const {
    return aimle::centring<T>(source_.mean, source_.tau, source_.sign);
  }

  /// The scores of entries 4q ... 4q + 3; arbitrary past the end of the row.
  __device__ __forceinline__ void quad(int64_t q, T (&x)[4]) const {
    if (d_ == nullptr) {
      load<false>(q, aligned_, x);
    } else {
      load<true>(q, aligned_, x);
    }
    with_noise_kind(source_.noise.kind, [&](auto kind) { this->add_noise<kind.value>(q, x); });
  }

  /// The scores of quads first, first + stride, ..., kQuads of them, into registers; arbitrary past
  /// the end of the row. Without branches inside, so that all loads are in flight at once.
  template <int kQuads>
  __device__ __forceinline__ void quads(int64_t first, int64_t stride, T (&x)[4 * kQuads]) const {
    T four[kQuads][4];
    const auto load_all = [&](auto stepped, auto aligned) {
#pragma unroll
      for (int i = 0; i < kQuads; ++i) {
        const int64_t q = first + i * stride;
        this->load<stepped.value>(4 * q < n() ? q : 0, aligned.value, four[i]);
      }
    };
    if (d_ == nullptr) {
      aligned_ ? load_all(std::false_type{}, std::true_type{})
               : load_all(std::false_type{}, std::false_type{});
    } else {
      aligned_ ? load_all(std::true_type{}, std::true_type{})
               : load_all(std::true_type{}, std::false_type{});
    }
    with_noise_kind(source_.noise.kind, [&](auto kind) {
#pragma unroll
      for (int i = 0; i < kQuads; ++i) this->add_noise<kind.value>(first + i * stride, four[i]);
    });
#pragma unroll
    for (int i = 0; i < 4 * kQuads; ++i) x[i] = four[i / 4][i % 4];
  }

 private:
  __device__ __forceinline__ void begin(int side, int64_t b, int64_t s, const double* steps) {
    const DeviceExamples<T>& examples = source_.examples;
    b_ = b;
    s_ = s;
    theta_ = examples.theta + b_ * examples.n;
    aligned_ = quads_aligned(examples.theta, examples.n);
    tau_ = static_cast<T>(source_.tau);
    if (source_.noise.kind != NoiseKind::kNone) key_ = load_key(examples.key);
    if (source_.dy == nullptr) return;
    const int64_t g = source_.gradients == 1 ? 0 : s_;
    d_ = source_.dy + (b_ * source_.gradients + g) * examples.n;
    aligned_ = aligned_ && quads_aligned(source_.dy, examples.n);
    const int scale = source_.side_scale[side];
    if (scale != 0) lambda_ = scale * steps[g];
  }

  /// Scores without noise.
  template <bool kStepped>
  __device__ __forceinline__ void load(int64_t q, bool aligned, T (&x)[4]) const {
    T theta[4];
    load_quad(theta_, q, n(), aligned, theta);
    if constexpr (kStepped) {
      T d[4];
      load_quad(d_, q, n(), aligned, d);
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        x[c] = moved(theta[c], is_infinite(theta[c]) ? T(0) : d[c], lambda_, source_.sign);
      }
    } else {
#pragma unroll
      for (int c = 0; c < 4; ++c) x[c] = static_cast<T>(source_.sign.theta) * theta[c];
    }
  }

  template <NoiseKind kind>
  __device__ __forceinline__ void add_noise(int64_t q, T (&x)[4]) const {
    PhiloxWords words{};
    if constexpr (kind != NoiseKind::kNone) {
      words = noise_words(key_, static_cast<uint32_t>(b_), static_cast<uint32_t>(s_),
                          static_cast<uint32_t>(q));
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const float eps = noise_of<kind>(source_.noise.table, words.w[c]);
      x[c] = with_noise(x[c], eps, tau_, source_.sign);
    }
  }

  const RowSource<T>& source_;
  int64_t b_;
  int64_t s_;
  const T* theta_;
  const T* d_ = nullptr;
  bool aligned_;  // theta and d can be read four entries at a time
  double lambda_ = 0.0;
  T tau_;
  Key key_;
};

}  // namespace aimle::cuda
