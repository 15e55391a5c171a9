#include "aimle/cuda/topk_large.h"

#include "aimle/cuda/topk.cuh"

namespace aimle::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kDigit = 11;  // bits that a pass settles
constexpr int kBins = 1 << kDigit;
constexpr int kWord = 32;                 // entries of a thread in the last passes
constexpr int kChunk = kThreads * kWord;  // entries of a block
constexpr int kBinsPerThread = kBins / kThreads;

/// What is known about a row's k-th largest key: its leading digits.
template <class Bits>
struct Search {
  Bits prefix;
  unsigned long long wanted;  // which of the keys with this prefix it is, from the top
  unsigned long long choosable;
  unsigned nan;
};

/// Device memory of a call.
template <class T>
struct Room {
  using Bits = typename OrderedKey<T>::Bits;
  Search<Bits>* search;  // [rows]
  unsigned* bins;        // [rows, kBins]
  unsigned* equal;       // [rows, chunks], keys that equal the k-th largest
  int64_t rows;
  int64_t chunks;
};

/// Lowest bit of a pass's digit.
template <class Bits>
__host__ __device__ constexpr int shift_of(int pass) {
  const int shift = 8 * static_cast<int>(sizeof(Bits)) - kDigit * (pass + 1);
  return shift < 0 ? 0 : shift;
}
template <class Bits>
constexpr int kPasses = (8 * static_cast<int>(sizeof(Bits)) + kDigit - 1) / kDigit;

/// Whether the key has the same prefix as the k-th largest, as far as previous passes have found.
template <class Bits>
__device__ __forceinline__ bool in_reach(Bits key, Bits prefix, int pass) {
  return pass == 0 || key >> shift_of<Bits>(pass - 1) == prefix;
}
/// The digit of a pass; the last one may be shorter.
template <class Bits>
__device__ __forceinline__ unsigned digit_of(Bits key, int pass) {
  const int shift = shift_of<Bits>(pass);
  const int width = pass == 0 ? kDigit : shift_of<Bits>(pass - 1) - shift;
  return static_cast<unsigned>(key >> shift) & ((1u << width) - 1);
}

template <class T>
__device__ __forceinline__ typename OrderedKey<T>::Bits key_of(const Row<T>& row, int64_t j, T x) {
  return row.allowed(j) ? OrderedKey<T>::of(x) : 0;
}

template <class T>
__global__ void __launch_bounds__(kThreads) clear_kernel(const __grid_constant__ Room<T> room) {
  const int64_t threads = int64_t{gridDim.x} * kThreads;
  const int64_t thread = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  for (int64_t r = thread; r < room.rows; r += threads) room.search[r] = {};
  for (int64_t i = thread; i < room.rows * kBins; i += threads) room.bins[i] = 0;
}

/// Counts the keys with this prefix by digit.
template <class T>
__global__ void __launch_bounds__(kThreads)
    count_digits(const __grid_constant__ RowSource<T> source, const __grid_constant__ Room<T> room,
                 int pass) {
  using Bits = typename OrderedKey<T>::Bits;
  __shared__ unsigned counts[kBins];
  for (int64_t item = blockIdx.x; item < room.rows * room.chunks; item += gridDim.x) {
    const Split at = split(item, room.chunks);
    const Row<T> row(source, at.quotient);
    const int64_t n = row.n(), begin = at.rest * kChunk;
    const Bits prefix = room.search[at.quotient].prefix;
    for (int bin = threadIdx.x; bin < kBins; bin += kThreads) counts[bin] = 0;
    __syncthreads();
    unsigned choosable = 0;
    bool nan = false;
    for (int64_t q = begin / 4 + threadIdx.x; 4 * q < n && 4 * q < begin + kChunk; q += kThreads) {
      T x[4];
      row.quad(q, x);
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int64_t j = 4 * q + c;
        if (j >= n || !row.allowed(j)) continue;
        nan |= x[c] != x[c];
        const Bits key = OrderedKey<T>::of(x[c]);
        if (key == 0) continue;
        ++choosable;
        if (in_reach(key, prefix, pass)) atomicAdd(&counts[digit_of(key, pass)], 1u);
      }
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < kBins; bin += kThreads) {
      if (counts[bin] != 0) atomicAdd(&room.bins[at.quotient * kBins + bin], counts[bin]);
    }
    if (pass == 0) {
      if (choosable != 0) {
        atomicAdd(&room.search[at.quotient].choosable, static_cast<unsigned long long>(choosable));
      }
      if (nan) atomicOr(&room.search[at.quotient].nan, 1u);
    }
    __syncthreads();
  }
}

/// The sum of the values of lower threads, all of which add up to `total`; executed by a block.
__device__ __forceinline__ unsigned long long exclusive_sum(unsigned value,
                                                            unsigned long long& total) {
  __shared__ unsigned long long warp_sum[kThreads / 32];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  unsigned long long sum = value;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const unsigned long long other = __shfl_up_sync(kAllLanes, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == 31) warp_sum[warp] = sum;
  __syncthreads();
  unsigned long long before = 0;
  total = 0;
  for (int w = 0; w < kThreads / 32; ++w) {
    if (w < warp) before += warp_sum[w];
    total += warp_sum[w];
  }
  __syncthreads();
  return before + sum - value;
}

/// A block per row: one more digit of the k-th largest key. Resets the bins to zero.
template <class T>
__global__ void __launch_bounds__(kThreads)
    choose_digit(const __grid_constant__ RowSource<T> source, const __grid_constant__ Room<T> room,
                 int64_t k, int pass) {
  using Bits = typename OrderedKey<T>::Bits;
  for (int64_t r = blockIdx.x; r < room.rows; r += gridDim.x) {
    Search<Bits>& search = room.search[r];
    const Search<Bits> found = search;
    unsigned long long wanted = found.wanted;
    if (pass == 0) {
      const int64_t own = Row<T>(source, r).k(k);
      wanted = own > 0 ? static_cast<unsigned long long>(own) : 0;
    }
    // Thread t looks at bins from the top: kBins - 1 - kBinsPerThread t, ... downwards.
    unsigned* bins = room.bins + r * kBins;
    unsigned own[kBinsPerThread], sum = 0;
#pragma unroll
    for (int i = 0; i < kBinsPerThread; ++i) {
      const int bin = kBins - 1 - (kBinsPerThread * static_cast<int>(threadIdx.x) + i);
      own[i] = bins[bin];
      bins[bin] = 0;
      sum += own[i];
    }
    unsigned long long total;
    unsigned long long before = exclusive_sum(sum, total);
    if (wanted > 0 && before < wanted && wanted <= before + sum) {
#pragma unroll
      for (int i = 0; i < kBinsPerThread; ++i) {
        if (before < wanted && wanted <= before + own[i]) {
          const Bits bin =
              static_cast<Bits>(kBins - 1 - (kBinsPerThread * static_cast<int>(threadIdx.x) + i));
          const int width = pass == 0 ? kDigit : shift_of<Bits>(pass - 1) - shift_of<Bits>(pass);
          search.prefix = pass == 0 ? bin : found.prefix << width | bin;
          search.wanted = wanted - before;
        }
        before += own[i];
      }
    }
    __syncthreads();
  }
}

template <class Bits>
__device__ __forceinline__ Status status_of(const Search<Bits>& search, int64_t k, int64_t n) {
  if (k < 0 || k > n) return Status::kBadK;
  if (search.nan != 0) return Status::kNaN;
  return static_cast<int64_t>(search.choosable) < k ? Status::kTooFewEntries : Status::kOk;
}

/// Which of this thread's 32 entries exceed the k-th largest key, and which equal it.
template <class T>
__device__ __forceinline__ void compare_word(const Row<T>& row, int64_t begin,
                                             typename OrderedKey<T>::Bits kth, uint32_t& above,
                                             uint32_t& same) {
  above = same = 0;
  const int64_t n = row.n();
#pragma unroll 2
  for (int q = 0; q < kWord / 4; ++q) {
    if (begin + 4 * q >= n) break;
    T x[4];
    row.quad(begin / 4 + q, x);
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int64_t j = begin + 4 * q + c;
      if (j >= n) continue;
      const auto key = key_of(row, j, x[c]);
      above |= static_cast<uint32_t>(key > kth) << (4 * q + c);
      same |= static_cast<uint32_t>(key == kth) << (4 * q + c);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    count_equal(const __grid_constant__ RowSource<T> source, const __grid_constant__ Room<T> room,
                int64_t k) {
  for (int64_t item = blockIdx.x; item < room.rows * room.chunks; item += gridDim.x) {
    const Split at = split(item, room.chunks);
    const Row<T> row(source, at.quotient);
    const auto search = room.search[at.quotient];
    uint32_t above = 0, same = 0;
    if (row.k(k) > 0) {
      compare_word(row, at.rest * kChunk + int64_t{threadIdx.x} * kWord, search.prefix, above,
                   same);
    }
    const int equal = Group<kThreads>::sum(__popc(same));
    if (threadIdx.x == 0) room.equal[item] = static_cast<unsigned>(equal);
  }
}

/// Chooses the keys that exceed the k-th largest, and the first of those that equal it.
template <class T>
__global__ void __launch_bounds__(kThreads)
    write_chosen(const __grid_constant__ RowSource<T> source, const __grid_constant__ Room<T> room,
                 const __grid_constant__ RowSink<T> sink, int64_t k) {
  __shared__ uint32_t words[kThreads];
  for (int64_t item = blockIdx.x; item < room.rows * room.chunks; item += gridDim.x) {
    const Split at = split(item, room.chunks);
    const int64_t r = at.quotient, begin = at.rest * kChunk;
    const Row<T> row(source, r);
    const int64_t n = row.n(), wanted = row.k(k);
    const auto search = room.search[r];
    const Status status = status_of(search, wanted, n);
    const bool solved = status == Status::kOk;
    uint32_t above = 0, same = 0;
    if (solved && wanted > 0) {
      compare_word(row, begin + int64_t{threadIdx.x} * kWord, search.prefix, above, same);
    }
    long long earlier = 0;  // equal keys in the chunks before
    for (int64_t c = threadIdx.x; c < at.rest; c += kThreads) {
      earlier += room.equal[r * room.chunks + c];
    }
    earlier = Group<kThreads>::reduce(earlier, [](long long x, long long y) { return x + y; });
    unsigned long long total;
    const unsigned long long before = exclusive_sum(static_cast<unsigned>(__popc(same)), total);
    long long left =
        static_cast<long long>(search.wanted) - earlier - static_cast<long long>(before);
    left = left > 0 ? left : 0;
    while (__popc(same) > left) same &= ~(0x80000000u >> __clz(same));
    words[threadIdx.x] = above | same;
    __syncthreads();
    if (sink.status != nullptr && at.rest == 0 && threadIdx.x == 0) {
      sink.status[r] = static_cast<uint8_t>(status);
    }
    const int count = static_cast<int>(n - begin < kChunk ? n - begin : kChunk);
    if (sink.z != nullptr) {
      for (int j = threadIdx.x; j < count; j += kThreads) {
        sink.z[r * n + begin + j] = as_number<T>(words[j / kWord], j % kWord, !solved);
      }
    }
    if (sink.bits != nullptr) {
      uint8_t* bits = sink.bits + r * bytes_per_row(n) + begin / 8;
      for (int i = threadIdx.x; i < (count + 7) / 8; i += kThreads) {
        bits[i] = static_cast<uint8_t>(words[i / 4] >> (8 * (i % 4)));
      }
    }
    __syncthreads();
  }
}

}  // namespace

template <class T>
void map_large_topk(int64_t k, const RowSource<T>& source, const RowSink<T>& sink,
                    const Context& context) {
  using Bits = typename OrderedKey<T>::Bits;
  const int64_t rows = source.rows(), chunks = (source.examples.n + kChunk - 1) / kChunk;
  const Room<T> room{.search = context.array<Search<Bits>>(rows),
                     .bins = context.array<unsigned>(rows * kBins),
                     .equal = context.array<unsigned>(rows * chunks),
                     .rows = rows,
                     .chunks = chunks};
  const unsigned blocks = blocks_for(rows * chunks, 1);
  launch("topk", clear_kernel<T>, blocks_for(rows * kBins, kThreads), kThreads, 0, context, room);
  for (int pass = 0; pass < kPasses<Bits>; ++pass) {
    launch("topk", count_digits<T>, blocks, kThreads, 0, context, source, room, pass);
    launch("topk", choose_digit<T>, blocks_for(rows, 1), kThreads, 0, context, source, room, k,
           pass);
  }
  launch("topk", count_equal<T>, blocks, kThreads, 0, context, source, room, k);
  launch("topk", write_chosen<T>, blocks, kThreads, 0, context, source, room, sink, k);
}

template void map_large_topk(int64_t, const RowSource<float>&, const RowSink<float>&,
                             const Context&);
template void map_large_topk(int64_t, const RowSource<double>&, const RowSink<double>&,
                             const Context&);

}  // namespace aimle::cuda
