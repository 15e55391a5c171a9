#include "aimle/cuda/launch.cuh"
#include "aimle/cuda/row.cuh"

namespace aimle::cuda {
namespace {

constexpr int kThreads = 256;

/// A thread per quad of a row.
template <NoiseKind kind>
__global__ void __launch_bounds__(kThreads)
    fill_kernel(const float* table, const DeviceKey given, NoiseRows rows, float* out) {
  const Key key = load_key(given);
  const int64_t quads = (rows.n + 3) / 4, all = rows.count * quads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < all;
       i += static_cast<int64_t>(gridDim.x) * kThreads) {
    const Split row = split(i, quads);
    const Split place = split(row.quotient, rows.samples);
    const PhiloxWords words =
        noise_words(key, static_cast<uint32_t>(place.quotient), static_cast<uint32_t>(place.rest),
                    static_cast<uint32_t>(row.rest));
    float* at = out + row.quotient * rows.n + 4 * row.rest;
    float eps[4];
#pragma unroll
    for (int c = 0; c < 4; ++c) eps[c] = noise_of<kind>(table, words.w[c]);
    if (4 * row.rest + 4 <= rows.n && reinterpret_cast<uintptr_t>(at) % 16 == 0) {
      *reinterpret_cast<float4*>(at) = make_float4(eps[0], eps[1], eps[2], eps[3]);
    } else {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        if (4 * row.rest + c < rows.n) at[c] = eps[c];
      }
    }
  }
}

/// A thread per quad of scores.
template <class T>
__global__ void __launch_bounds__(kThreads)
    scores_kernel(const __grid_constant__ RowSource<T> source, int64_t rows, T* x) {
  const int64_t n = source.examples.n, quads = (n + 3) / 4;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < rows * quads;
       i += static_cast<int64_t>(gridDim.x) * kThreads) {
    const Split at = split(i, quads);
    const Row<T> row(source, at.quotient);
    T four[4];
    row.quad(at.rest, four);
    const T shift = row.centring();
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      if (4 * at.rest + c < n) x[at.quotient * n + 4 * at.rest + c] = four[c] - shift;
    }
  }
}

}  // namespace

void fill_noise(const NoiseSource& source, const DeviceKey& key, const NoiseRows& rows, float* out,
                const Context& context) {
  const int64_t quads = rows.count * ((rows.n + 3) / 4);
  if (quads == 0) return;
  const auto fill = [&](void (*kernel)(const float*, DeviceKey, NoiseRows, float*)) {
    launch("noise", kernel, blocks_for(quads, kThreads), kThreads, 0, context, source.table, key,
           rows, out);
  };
  switch (source.kind) {
    case NoiseKind::kNone:
      return check(cudaMemsetAsync(out, 0, static_cast<size_t>(rows.count * rows.n) * sizeof(float),
                                   stream_of(context)),
                   "noise");
    case NoiseKind::kGumbel:
      return fill(fill_kernel<NoiseKind::kGumbel>);
    case NoiseKind::kNormal:
      return fill(fill_kernel<NoiseKind::kNormal>);
    case NoiseKind::kLogistic:
      return fill(fill_kernel<NoiseKind::kLogistic>);
    case NoiseKind::kSumOfGamma:
      return fill(fill_kernel<NoiseKind::kSumOfGamma>);
  }
}

template <class T>
void write_scores(const RowSource<T>& source, T* x, const Context& context) {
  const int64_t quads = source.rows() * ((source.examples.n + 3) / 4);
  if (quads == 0) return;
  launch("perturb", scores_kernel<T>, blocks_for(quads, kThreads), kThreads, 0, context, source,
         source.rows(), x);
}

template void write_scores(const RowSource<float>&, float*, const Context&);
template void write_scores(const RowSource<double>&, double*, const Context&);

}  // namespace aimle::cuda
