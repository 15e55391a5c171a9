// The rows of dy, in any layout.
//
// dy [B, R, n] (R = S, or 1 if all samples share one row) is often not contiguous: the gradient of
// a sum or a mean over the samples repeats one row R times, with stride 0, and a layer in half
// precision gets half-precision rows. Reading row by row avoids a copy of all of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace aimle {

/// Rows of n entries, each contiguous, at any distance from each other, and of any type that
/// `widen` can read.
template <class T>
struct GradientRows {
  const void* data = nullptr;
  int64_t example_stride = 0;  // in bytes
  int64_t sample_stride = 0;   // in bytes
  /// out[j] = row[j], for j < n; null if the entries have type T.
  void (*widen)(const void* row, int64_t n, T* out) = nullptr;

  /// The usual layout of dy: [B, R, n], contiguous.
  static GradientRows packed(const T* dy, int64_t rows_per_example, int64_t n) {
    const auto row = static_cast<int64_t>(sizeof(T)) * n;
    return {.data = dy, .example_stride = rows_per_example * row, .sample_stride = row};
  }

  /// Row s of example b; `buffer` has space for n entries, and the result may be stored there.
  const T* row(int64_t b, int64_t s, int64_t n, T* buffer) const {
    const auto* at = static_cast<const std::byte*>(data) + b * example_stride + s * sample_stride;
    if (widen == nullptr) return reinterpret_cast<const T*>(at);
    widen(at, n, buffer);
    return buffer;
  }

  /// True if the rows are contiguous.
  bool is_packed(int64_t rows_per_example, int64_t n) const {
    const GradientRows expected = packed(nullptr, rows_per_example, n);
    return widen == nullptr && example_stride == expected.example_stride &&
           (rows_per_example == 1 || sample_stride == expected.sample_stride);
  }
};

}  // namespace aimle
