#include "experiments/l2x/selector_kernel.h"

#include "aimle/cuda/launch.cuh"
#include "aimle/cuda/row.cuh"
#include "aimle/noise/gumbel.h"

namespace aimle::experiments::l2x {
namespace {

constexpr int kThreads = 256;
constexpr int kColumns = 32, kRowsAtOnce = kThreads / kColumns;  // of a block that sums columns

__device__ int64_t thread_of_grid() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

// Kernels with a thread per entry take four floats as one entry if the number of columns allows it;
// sizes are then in entries.

__device__ void add(float& sum, float x) { sum += x; }
__device__ void add(float4& sum, float4 x) {
  sum = make_float4(sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w);
}

/// Calls run(entry, sizes) with an entry of that type.
template <class Run>
void with_entries(const WordSizes& sizes, const Run& run) {
  if (sizes.columns % 4 != 0) return run(float{}, sizes);
  run(float4{},
      WordSizes{.reviews = sizes.reviews, .words = sizes.words, .columns = sizes.columns / 4});
}

template <class Entry>
const Entry* entries(const float* x) {
  return reinterpret_cast<const Entry*>(x);
}
template <class Entry>
Entry* entries(float* x) {
  return reinterpret_cast<Entry*>(x);
}

/// A word's entry, 0 if there is no such word or it is not real.
template <class Entry>
__device__ Entry entry_of(const WordSizes& sizes, const Entry* __restrict__ x,
                          const bool* __restrict__ real, int64_t review, int64_t word,
                          int64_t column) {
  if (word < 0 || word >= sizes.words) return Entry{};
  const int64_t row = review * sizes.words + word;
  return real == nullptr || real[row] ? x[row * sizes.columns + column] : Entry{};
}

/// A thread per entry of seen.
template <class Entry>
__global__ void __launch_bounds__(kThreads)
    see_neighbours_kernel(WordSizes sizes, const Entry* __restrict__ x,
                          const bool* __restrict__ real, Entry* __restrict__ seen) {
  const int64_t i = thread_of_grid();
  if (i >= sizes.rows * 3 * sizes.columns) return;
  const cuda::Split of_part = cuda::split(i, sizes.columns);
  const cuda::Split of_row = cuda::split(of_part.quotient, 3);
  const cuda::Split of_review = cuda::split(of_row.quotient, sizes.words);
  seen[i] =
      entry_of(sizes, x, real, of_review.quotient, of_review.rest + of_row.rest - 1, of_part.rest);
}

/// What a thread of a block that goes through all words of some columns takes.
struct Strip {
  int64_t review, column;
  int first;  // word; kRowsAtOnce further is the next

  __device__ Strip(int64_t columns) {
    const int64_t strips = (columns + kColumns - 1) / kColumns;
    review = blockIdx.x / strips;
    column = blockIdx.x % strips * kColumns + threadIdx.x % kColumns;
    first = static_cast<int>(threadIdx.x) / kColumns;
  }
};

unsigned strips_of(int64_t reviews, int64_t columns) {
  return static_cast<unsigned>(reviews * ((columns + kColumns - 1) / kColumns));
}

__global__ void __launch_bounds__(kThreads)
    highest_kernel(WordSizes sizes, const float* __restrict__ x, const bool* __restrict__ real,
                   float* __restrict__ highest, int64_t* __restrict__ place) {
  __shared__ float values[kRowsAtOnce][kColumns];
  __shared__ int words[kRowsAtOnce][kColumns];
  const Strip strip(sizes.columns);
  const int lane = static_cast<int>(threadIdx.x) % kColumns;
  const bool inside = strip.column < sizes.columns;
  float best = -INFINITY;
  int word = 0;
#pragma unroll 4
  for (int w = strip.first; w < sizes.words; w += kRowsAtOnce) {
    const float value = inside ? entry_of(sizes, x, real, strip.review, w, strip.column) : 0;
    if (value > best) {
      best = value;
      word = w;
    }
  }
  values[strip.first][lane] = best;
  words[strip.first][lane] = word;
  __syncthreads();
  if (strip.first > 0 || !inside) return;
  for (int other = 1; other < kRowsAtOnce; ++other) {
    const float value = values[other][lane];
    if (value > best || (value == best && words[other][lane] < word)) {
      best = value;
      word = words[other][lane];
    }
  }
  highest[strip.review * sizes.columns + strip.column] = best;
  place[strip.review * sizes.columns + strip.column] = word;
}

template <class Entry>
struct EntryGradients {
  const Entry* seen;
  const Entry* highest;
  const int64_t* place;
};

/// What of the gradients at `highest` belongs to word `word`.
__device__ float of_word(const float& highest, const int64_t* place, int64_t word) {
  return place[0] == word ? highest : 0;
}
__device__ float4 of_word(const float4& highest, const int64_t* place, int64_t word) {
  return make_float4(of_word(highest.x, place, word), of_word(highest.y, place + 1, word),
                     of_word(highest.z, place + 2, word), of_word(highest.w, place + 3, word));
}

/// A thread per entry of dx.
template <class Entry>
__global__ void __launch_bounds__(kThreads)
    word_gradients_kernel(WordSizes sizes, EntryGradients<Entry> gradients,
                          const bool* __restrict__ real, Entry* __restrict__ dx) {
  const int64_t i = thread_of_grid();
  if (i >= sizes.rows * sizes.columns) return;
  const cuda::Split of_row = cuda::split(i, sizes.columns);
  const int64_t row = of_row.quotient, column = of_row.rest;
  const cuda::Split of_review = cuda::split(row, sizes.words);
  const int64_t word = of_review.rest;
  const auto seen_by = [&](int64_t reader, int part) {
    return gradients.seen[(reader * 3 + part) * sizes.columns + column];
  };
  Entry sum{};
  if (real == nullptr || real[row]) {
    sum = seen_by(row, 1);
    if (word + 1 < sizes.words) add(sum, seen_by(row + 1, 0));
    if (word > 0) add(sum, seen_by(row - 1, 2));
    if (gradients.highest != nullptr) {
      constexpr int64_t kWidth = sizeof(Entry) / sizeof(float);
      const int64_t at = of_review.quotient * sizes.columns + column;
      add(sum, of_word(gradients.highest[at], gradients.place + at * kWidth, word));
    }
  }
  dx[i] = sum;
}

/// A thread per four entries of joined.
__global__ void __launch_bounds__(kThreads)
    join_kernel(WordSizes sizes, const float* __restrict__ global, const float* __restrict__ local,
                const __grid_constant__ Dropout dropout, float* __restrict__ joined,
                bool* __restrict__ kept) {
  const int64_t quads = 2 * sizes.columns / 4, i = thread_of_grid();
  if (i >= sizes.rows * quads) return;
  const cuda::Split of_row = cuda::split(i, quads);
  const int64_t row = of_row.quotient, column = 4 * of_row.rest;
  const cuda::Split of_review = cuda::split(row, sizes.words);
  const bool is_global = column < sizes.columns;
  const float* from = is_global ? global + of_review.quotient * sizes.columns + column
                                : local + row * sizes.columns + column - sizes.columns;
  const float4 four = *reinterpret_cast<const float4*>(from);
  float values[4] = {four.x, four.y, four.z, four.w};
  if (kept != nullptr) {
    const Key key = cuda::load_key(dropout.key);
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const auto j = static_cast<uint32_t>((column + c) * sizes.words + of_review.rest);
      const PhiloxWords words =
          noise_words(key, static_cast<uint32_t>(of_review.quotient), 0, j / 4);
      const uint32_t even = j % 4 < 2 ? words.w[0] : words.w[2];
      const uint32_t odd = j % 4 < 2 ? words.w[1] : words.w[3];
      const bool keep = gumbel(j % 2 == 0 ? even : odd) < dropout.bound;
      kept[4 * i + c] = keep;
      values[c] = keep ? values[c] * dropout.scale : 0.0f;
    }
  }
  reinterpret_cast<float4*>(joined)[i] = make_float4(values[0], values[1], values[2], values[3]);
}

/// The gradient of a strip of columns of joined: summed over the words in the global half.
__global__ void __launch_bounds__(kThreads)
    join_gradients_kernel(WordSizes sizes, const float* __restrict__ d_joined,
                          const bool* __restrict__ kept, float scale, float* __restrict__ d_global,
                          float* __restrict__ d_local) {
  __shared__ float sums[kRowsAtOnce][kColumns];
  const Strip strip(2 * sizes.columns);
  const int lane = static_cast<int>(threadIdx.x) % kColumns;
  const bool inside = strip.column < 2 * sizes.columns, is_global = strip.column < sizes.columns;
  float sum = 0;
#pragma unroll 4
  for (int64_t w = strip.first; w < sizes.words; w += kRowsAtOnce) {
    if (!inside) break;
    const int64_t row = strip.review * sizes.words + w;
    const int64_t i = row * 2 * sizes.columns + strip.column;
    const float d = kept == nullptr ? d_joined[i] : kept[i] ? d_joined[i] * scale : 0.0f;
    if (is_global) {
      sum += d;
    } else {
      d_local[row * sizes.columns + strip.column - sizes.columns] = d;
    }
  }
  sums[strip.first][lane] = sum;
  __syncthreads();
  if (strip.first > 0 || !is_global) return;
  for (int other = 1; other < kRowsAtOnce; ++other) sum += sums[other][lane];
  d_global[strip.review * sizes.columns + strip.column] = sum;
}

template <class... Parameters, class... Args>
void launch(void (*kernel)(Parameters...), unsigned blocks, void* stream, Args... args) {
  if (blocks == 0) return;
  cuda::start(kernel, blocks, kThreads, 0, static_cast<cudaStream_t>(stream), args...);
  cuda::check(cudaGetLastError(), "l2x");
}

unsigned blocks_of(int64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

}  // namespace

bool has_selector_kernels() { return true; }

void see_neighbours_on_device(const WordSizes& given, const float* x, const bool* real, float* seen,
                              void* stream) {
  with_entries(given, [&]<class Entry>(Entry, const WordSizes& sizes) {
    launch(see_neighbours_kernel<Entry>, blocks_of(sizes.rows * 3 * sizes.columns), stream, sizes,
           entries<Entry>(x), real, entries<Entry>(seen));
  });
}

void highest_on_device(const WordSizes& sizes, const float* x, const bool* real, float* highest,
                       int64_t* place, void* stream) {
  launch(highest_kernel, strips_of(sizes.reviews, sizes.columns), stream, sizes, x, real, highest,
         place);
}

void word_gradients_on_device(const WordSizes& given, const WordGradients& gradients,
                              const bool* real, float* dx, void* stream) {
  with_entries(given, [&]<class Entry>(Entry, const WordSizes& sizes) {
    const EntryGradients<Entry> of_entries = {entries<Entry>(gradients.seen),
                                              entries<Entry>(gradients.highest), gradients.place};
    launch(word_gradients_kernel<Entry>, blocks_of(sizes.rows * sizes.columns), stream, sizes,
           of_entries, real, entries<Entry>(dx));
  });
}

void join_on_device(const WordSizes& sizes, const float* global, const float* local,
                    const Dropout& dropout, float* joined, bool* kept, void* stream) {
  launch(join_kernel, blocks_of(sizes.rows * 2 * sizes.columns / 4), stream, sizes, global, local,
         dropout, joined, kept);
}

void join_gradients_on_device(const WordSizes& sizes, const float* d_joined, const bool* kept,
                              float scale, float* d_global, float* d_local, void* stream) {
  launch(join_gradients_kernel, strips_of(sizes.reviews, 2 * sizes.columns), stream, sizes,
         d_joined, kept, scale, d_global, d_local);
}

}  // namespace aimle::experiments::l2x
