// Top-k on the device: the k largest scores of a row, the lower index first among equals.
//
//   n <= 32     a thread per row: the row in registers, sorted by a network; entries that exceed
//               the k-th largest are chosen, and the first of those that equal it
//   n <= 1024   a warp per row, the row in registers
//   beyond      a block per row, the row in shared memory; if it does not fit: topk_large.h
//
// Warps and blocks search the k-th largest by bisection: count the entries that reach the middle,
// halve, stop as soon as exactly k do. Comparisons are on integers with the same order as the
// scores.
#pragma once

#include <utility>

#include "aimle/base/ordered_bits.h"
#include "aimle/cuda/map_rows.cuh"
#include "aimle/map/sorting_network.h"
#include "aimle/map/topk.h"

namespace aimle::cuda {

// ---- Short rows: a thread each ------------------------------------------------------------------

template <int kSize>
inline constexpr Network<kSize> kNetwork;

template <class T>
__device__ __forceinline__ void put_larger_first(T& a, T& b) {
  const T larger = max(a, b);
  b = min(a, b);
  a = larger;
}

/// Sorts in registers, largest first: every index is a constant.
template <int kSize, class T, int... I>
__device__ __forceinline__ void sort_descending(T (&v)[kSize], std::integer_sequence<int, I...>) {
  (put_larger_first(v[std::integral_constant<int, kNetwork<kSize>.low[I]>::value],
                    v[std::integral_constant<int, kNetwork<kSize>.high[I]>::value]),
   ...);
}

/// Rows of n <= kSize <= 32 entries; kSize is a multiple of 4.
template <int kSize>
struct ThreadTopK {
  static constexpr int kRowThreads = 1;
  static constexpr int kBlockThreads = 128;
  static constexpr int kMinBlocks = kSize <= 20 ? 6 : 4;
  static constexpr int kQuads = kSize / 4;
  static constexpr const char* kName = "topk";

  int64_t k;

  template <class T>
  int64_t row_bytes(int64_t) const {
    return 0;
  }

  template <class T>
  __device__ Status solve(const Row<T>& row, uint32_t* chosen, char*) const {
    const int n = static_cast<int>(row.n());
    const int64_t wanted = row.k(k);
    if (wanted < 0 || wanted > n) return Status::kBadK;
    T x[kSize];
    row.template quads<kQuads>(0, 1, x);
    constexpr T kMasked = -static_cast<T>(INFINITY);
    if (row.has_mask()) {
#pragma unroll
      for (int j = 0; j < kSize; ++j) {
        if (j < n && !row.allowed(j)) x[j] = kMasked;
      }
    }
    bool nan = false;
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      x[j] = j < n ? x[j] : kMasked;
      nan |= x[j] != x[j];
    }
    if (nan) return Status::kNaN;
    *chosen = 0;
    if (wanted == 0) return Status::kOk;

    T sorted[kSize];
#pragma unroll
    for (int j = 0; j < kSize; ++j) sorted[j] = x[j];
    sort_descending(sorted, std::make_integer_sequence<int, kNetwork<kSize>.count>());
    // The smallest of the k largest: not by index, which would move the array to memory.
    T kth = -kMasked;
#pragma unroll
    for (int j = 0; j < kSize; ++j) kth = min(kth, j < wanted ? sorted[j] : -kMasked);
    if (kth == kMasked) return Status::kTooFewEntries;

    uint32_t reaching = 0;
#pragma unroll
    for (int j = 0; j < kSize; ++j) reaching |= x[j] >= kth ? 1u << j : 0u;
    if (__popc(reaching) > wanted) {
      uint32_t equal = 0;
#pragma unroll
      for (int j = 0; j < kSize; ++j) equal |= x[j] == kth ? 1u << j : 0u;
      for (int surplus = __popc(reaching) - static_cast<int>(wanted); surplus > 0; --surplus) {
        const uint32_t last = 0x80000000u >> __clz(equal);
        equal ^= last;
        reaching ^= last;
      }
    }
    *chosen = reaching;
    return Status::kOk;
  }
};

// ---- Longer rows --------------------------------------------------------------------------------

/// Scores as integers of the same order; 0 for entries that may not be chosen, except NaN.
template <class T>
struct OrderedKey {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, unsigned long long>;
  __device__ static Bits of(T x) {
    return x == -static_cast<T>(INFINITY) ? Bits{0} : Bits{ordered(x)};
  }
  __device__ static T value(Bits key) { return from_ordered<T>(key); }
};

/// The key that at least k keys reach and fewer than k exceed, or one that exactly k reach.
/// `each(f)` calls f(key) for the keys of this thread; at least k of all keys are not 0, k >= 1.
template <class T, int kThreads, class Each>
__device__ typename OrderedKey<T>::Bits kth_key(int64_t k, Each each) {
  using Bits = typename OrderedKey<T>::Bits;
  using Threads = Group<kThreads>;
  Bits largest = 0, smallest = ~Bits{0};
  each([&](Bits key) {
    largest = key > largest ? key : largest;
    smallest = key != 0 && key < smallest ? key : smallest;
  });
  // As many keys as there are threads reach the smallest of their maxima.
  const Bits reached = Threads::min(largest);
  largest = Threads::max(largest);
  Bits low = Threads::min(smallest);  // at least k keys reach it
  if (k <= kThreads && reached > low) low = reached;
  Bits high = largest;  // fewer than k keys exceed it
  for (int round = 0; low < high; ++round) {
    // low < middle <= high. The middle of the values or, occasionally, of the keys, which bounds
    // the number of rounds.
    Bits middle = low + (high - low + 1) / 2;
    if (round % 4 != 3) {
      const T half = static_cast<T>(0.5);
      const Bits guess =
          OrderedKey<T>::of(half * OrderedKey<T>::value(low) + half * OrderedKey<T>::value(high));
      if (guess > low && guess <= high) middle = guess;
    }
    int count = 0;
    each([&](Bits key) { count += key >= middle; });
    count = Threads::sum(count);
    if (count == k) return middle;
    if (count > k) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

/// Keeps the first `keep` set bits of `words` [count]; executed by a warp together.
__device__ inline void keep_first_bits(uint32_t* words, int64_t count, int64_t keep) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int64_t first = 0; first < count; first += 32) {
    const bool inside = first + lane < count;
    uint32_t word = inside ? words[first + lane] : 0;
    const int own = __popc(word);
    int before = own;  // bits up to and including this word
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(kAllLanes, before, step);
      if (lane >= step) before += other;
    }
    const int total = __shfl_sync(kAllLanes, before, 31);
    int64_t left = keep - (before - own);
    while (word != 0 && __popc(word) > left) word &= ~(0x80000000u >> __clz(word));
    if (inside) words[first + lane] = word;
    keep = keep > total ? keep - total : 0;
  }
}

/// Rows of 32 < n <= 128 kQuads entries; lane l has quads l, l + 32, ...
template <int kQuads>
struct WarpTopK {
  static constexpr int kRowThreads = 32;
  static constexpr int kBlockThreads = 128;
  static constexpr int kMinBlocks = 4;
  static constexpr const char* kName = "topk";

  int64_t k;

  template <class T>
  int64_t row_bytes(int64_t n) const {
    return (n + 31) / 32 * 4;  // the entries that equal the k-th largest
  }

  template <class T>
  __device__ Status solve(const Row<T>& row, uint32_t* chosen, char* scratch) const {
    using Warp = Group<32>;
    using Bits = typename OrderedKey<T>::Bits;
    constexpr int kItems = 4 * kQuads;
    const int n = static_cast<int>(row.n());
    const int64_t wanted = row.k(k);
    const int lane = Warp::rank();
    if (wanted < 0 || wanted > n) return Status::kBadK;
    T x[kItems];
    row.template quads<kQuads>(lane, 32, x);
    const auto index = [&](int i) { return 128 * (i / 4) + 4 * lane + i % 4; };
    if (row.has_mask()) {
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        if (index(i) < n && !row.allowed(index(i))) x[i] = -static_cast<T>(INFINITY);
      }
    }
    Bits keys[kItems];
    bool nan = false;
    int choosable = 0;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (index(i) >= n) x[i] = -static_cast<T>(INFINITY);
      nan |= x[i] != x[i];
      keys[i] = OrderedKey<T>::of(x[i]);
      choosable += keys[i] != 0;
    }
    if (Warp::any(nan)) return Status::kNaN;
    if (Warp::sum(choosable) < wanted) return Status::kTooFewEntries;
    Bits kth = ~Bits{0};
    if (wanted > 0) {
      kth = kth_key<T, 32>(wanted, [&](auto visit) {
#pragma unroll
        for (int i = 0; i < kItems; ++i) visit(keys[i]);
      });
    }
    int reaching = 0;
#pragma unroll
    for (int i = 0; i < kItems; ++i) reaching += keys[i] >= kth;
    reaching = Warp::sum(reaching);
    const bool tie = reaching > wanted;
    write_words<T>(keys, n, chosen, [&](Bits key) { return tie ? key > kth : key >= kth; });
    if (tie) {
      int above = 0;
#pragma unroll
      for (int i = 0; i < kItems; ++i) above += keys[i] > kth;
      above = Warp::sum(above);
      auto* equal = reinterpret_cast<uint32_t*>(scratch);
      write_words<T>(keys, n, equal, [&](Bits key) { return key == kth; });
      __syncwarp();
      const int64_t words = (n + 31) / 32;
      keep_first_bits(equal, words, wanted - above);
      __syncwarp();
      for (int64_t w = lane; w < words; w += 32) chosen[w] |= equal[w];
    }
    return Status::kOk;
  }

 private:
  /// Four bits of each lane, eight lanes to a word.
  template <class T, class Choose>
  __device__ static void write_words(const typename OrderedKey<T>::Bits (&keys)[4 * kQuads],
                                     int64_t n, uint32_t* words, Choose choose) {
    const int lane = Group<32>::rank();
#pragma unroll
    for (int q = 0; q < kQuads; ++q) {
      uint32_t word = 0;
#pragma unroll
      for (int c = 0; c < 4; ++c) word |= static_cast<uint32_t>(choose(keys[4 * q + c])) << c;
      word <<= 4 * (lane % 8);
#pragma unroll
      for (int step = 1; step < 8; step *= 2) word |= __shfl_xor_sync(kAllLanes, word, step);
      const int64_t at = 4 * q + lane / 8;
      if (lane % 8 == 0 && 32 * at < n) words[at] = word;
    }
  }
};

/// Longer rows, by a block of kThreads, the keys in shared memory.
template <int kThreads>
struct BlockTopK {
  static constexpr int kRowThreads = kThreads;
  static constexpr int kBlockThreads = kThreads;
  static constexpr const char* kName = "topk";

  int64_t k;

  template <class T>
  static int64_t key_bytes(int64_t n) {
    return align_up(n * static_cast<int64_t>(sizeof(T)));
  }
  template <class T>
  int64_t row_bytes(int64_t n) const {
    return key_bytes<T>(n) + (n + 31) / 32 * 4;
  }

  template <class T>
  __device__ Status solve(const Row<T>& row, uint32_t* chosen, char* scratch) const {
    using Threads = Group<kThreads>;
    using Bits = typename OrderedKey<T>::Bits;
    const int64_t n = row.n(), wanted = row.k(k), words = (n + 31) / 32;
    const int rank = Threads::rank();
    if (wanted < 0 || wanted > n) return Status::kBadK;
    auto* keys = reinterpret_cast<Bits*>(scratch);
    auto* equal =
        reinterpret_cast<uint32_t*>(scratch + (n * static_cast<int64_t>(sizeof(T)) + 15) / 16 * 16);
    bool nan = false;
    int choosable = 0;
    for (int64_t q = rank; 4 * q < n; q += kThreads) {
      T x[4];
      row.quad(q, x);
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int64_t j = 4 * q + c;
        if (j >= n) break;
        const bool in = row.allowed(j);
        nan |= in && x[c] != x[c];
        keys[j] = in ? OrderedKey<T>::of(x[c]) : 0;
        choosable += keys[j] != 0;
      }
    }
    if (Threads::any(nan)) return Status::kNaN;
    if (Threads::sum(choosable) < wanted) return Status::kTooFewEntries;
    Bits kth = ~Bits{0};
    if (wanted > 0) {
      kth = kth_key<T, kThreads>(wanted, [&](auto visit) {
        for (int64_t j = rank; j < n; j += kThreads) visit(keys[j]);
      });
    }
    int above = 0, reaching = 0;
    for (int64_t j = rank; j < n; j += kThreads) {
      above += keys[j] > kth;
      reaching += keys[j] >= kth;
    }
    above = Threads::sum(above);
    reaching = Threads::sum(reaching);
    const bool tie = reaching > wanted;
    for (int64_t first = rank / 32 * 32; first < n; first += kThreads) {
      const int64_t j = first + rank % 32;
      const Bits key = j < n ? keys[j] : 0;
      const uint32_t over = __ballot_sync(kAllLanes, key > kth);
      const uint32_t same = __ballot_sync(kAllLanes, key == kth && key != 0);
      if (rank % 32 == 0) {
        chosen[first / 32] = tie ? over : over | same;
        equal[first / 32] = same;
      }
    }
    if (tie) {
      __syncthreads();
      if (rank < 32) keep_first_bits(equal, words, wanted - above);
      __syncthreads();
      for (int64_t w = rank; w < words; w += kThreads) chosen[w] |= equal[w];
    }
    return Status::kOk;
  }
};

}  // namespace aimle::cuda
