// The swaps of one sample, entry by entry, by a warp: for each structure the score at which an
// entry enters, and the resulting change of <d, z>. Private to threshold_backward.cu.
//
// A sample is made from its row, the gradient, the solution and memory of `bytes`, if it is solved.
#pragma once

#include <cstdint>

#include "aimle/cuda/centred_rows.cuh"
#include "aimle/cuda/chain_swaps.h"
#include "aimle/cuda/direct_output.cuh"
#include "aimle/cuda/group.cuh"
#include "aimle/cuda/lattice_path.h"
#include "aimle/cuda/launch.cuh"
#include "aimle/cuda/row.cuh"
#include "aimle/cuda/thresholds.h"
#include "aimle/estimate/lattice_swaps.h"

namespace aimle::cuda {
namespace {

/// Not finite if there is none, and the change of <d, z> by the entry.
struct Threshold {
  double threshold;
  double difference;
};

/// The scores of a row, stored in memory for the following steps.
template <class T, class Scores>
__device__ const T* keep_scores(Group<32>& warp, const Scores& scores, char* memory) {
  T* x = reinterpret_cast<T*>(memory);
  scores.for_each(warp.rank(), warp.size(), [x](int64_t j, T score) { x[j] = score; });
  warp.sync();
  return x;
}
template <class T>
AIMLE_HD int64_t score_bytes(int64_t n) {
  return (n * static_cast<int64_t>(sizeof(T)) + 15) / 16 * 16;
}

/// Argmax and top-k.
template <class T>
class RowSample {
 public:
  struct Shape {
    int64_t chosen;  // ones in a solution
  };

  static int64_t bytes(const Shape&, int64_t) { return 0; }
  __device__ static bool solved(Group<32>&, const Shape& shape, const Row<T>& row, const T*,
                                int ones) {
    return ones == row.k(shape.chosen);
  }

  template <class Chosen>
  __device__ RowSample(Group<32>& warp, const Shape&, const Row<T>& row, const T* d,
                       const Chosen& chosen, char*)
      : d_(d) {
    const QuadScores<T> scores{row};
    found_ = find_row_partners<T>(warp, scores, row.mask(), chosen);
    if (found_.best_out != kNoPartner) out_ = scores(found_.best_out);
    if (found_.worst_in != kNoPartner) in_ = scores(found_.worst_in);
  }

  __device__ Threshold of(int64_t j, bool is_in) const {
    const uint32_t entry = is_in ? found_.best_out : found_.worst_in;
    if (entry == kNoPartner) return {static_cast<double>(INFINITY), 0.0};
    return {static_cast<double>(is_in ? out_ : in_),
            static_cast<double>(d_[j]) - static_cast<double>(d_[entry])};
  }

 private:
  const T* d_;
  RowPartners found_;
  T out_ = 0;
  T in_ = 0;
};

/// Spanning trees; the scores are in memory, after the partners.
template <class T, bool kDirected>
class TreeSample {
 public:
  struct Shape {
    int64_t chosen;
    int32_t vertices;
  };

  static int64_t bytes(const Shape& shape, int64_t n) {
    const int64_t vertices = shape.vertices;
    return TreePartners<T>::bytes(vertices, vertices * (vertices - 1) / 2) + score_bytes<T>(n);
  }
  __device__ static bool solved(Group<32>&, const Shape& shape, const Row<T>&, const T*, int ones) {
    return ones == shape.chosen;
  }

  template <class Chosen>
  __device__ TreeSample(Group<32>& warp, const Shape& shape, const Row<T>& row, const T* d,
                        const Chosen& chosen, char* memory)
      : n_(shape.vertices),
        x_(keep_scores<T>(warp, QuadScores<T>{row}, memory)),
        d_(d),
        tree_(TreePartners<T>::at(memory + score_bytes<T>(row.n()), n_)) {
    const bool* mask = row.mask();
    find_tree_partners<T>(
        warp, n_, [&](int32_t i, int32_t j) { return weight(i, j); },
        [&](int32_t i, int32_t j) {
          return mask == nullptr || (mask[entry(i, j)] && mask[reverse(i, j)]);
        },
        [&](int32_t i, int32_t j) { return chosen(entry(i, j)); }, tree_);
  }

  __device__ Threshold of(int64_t j, bool) const {
    const Ends own = ends_of_entry(static_cast<int32_t>(j));
    const uint32_t edge = tree_.partner[edge_of(own)];
    if (edge == kNoPartner) return {static_cast<double>(INFINITY), 0.0};
    const Ends other = ends_of_edge(static_cast<int32_t>(edge));
    const T needed = weight(other.i, other.j);
    // What this direction needs, given the other one.
    const T threshold =
        kDirected
            ? needed - x_[entry(own.i, own.j) == j ? reverse(own.i, own.j) : entry(own.i, own.j)]
            : needed;
    return {static_cast<double>(threshold), gain(own) - gain(other)};
  }

 private:
  struct Ends {
    int32_t i;
    int32_t j;  // i < j
  };

  __device__ int32_t edge_of(Ends e) const {
    return e.i * (2 * n_ - e.i - 1) / 2 + (e.j - e.i - 1);
  }
  __device__ int32_t entry(int32_t i, int32_t j) const {
    return kDirected ? i * (n_ - 1) + j - 1 : edge_of({i, j});
  }
  __device__ int32_t reverse(int32_t i, int32_t j) const {
    return kDirected ? j * (n_ - 1) + i : edge_of({i, j});
  }
  __device__ T weight(int32_t i, int32_t j) const {
    const T x = x_[entry(i, j)];
    return kDirected ? x + x_[reverse(i, j)] : x;
  }
  __device__ double gain(Ends e) const {
    const auto d = static_cast<double>(d_[entry(e.i, e.j)]);
    return kDirected ? d + static_cast<double>(d_[reverse(e.i, e.j)]) : d;
  }
  __device__ Ends ends_of_edge(int32_t edge) const {
    const int32_t back = n_ * (n_ - 1) / 2 - 1 - edge;  // counted from the last
    auto t = static_cast<int32_t>((sqrtf(8.0f * static_cast<float>(back) + 1.0f) - 1.0f) * 0.5f);
    while (t * (t + 1) / 2 > back) --t;
    while ((t + 1) * (t + 2) / 2 <= back) ++t;
    const int32_t i = n_ - 2 - t;
    return {i, edge - i * (2 * n_ - i - 1) / 2 + i + 1};
  }
  __device__ Ends ends_of_entry(int32_t j) const {
    if constexpr (!kDirected) return ends_of_edge(j);
    const int32_t receiver = j / (n_ - 1), place = j % (n_ - 1);
    const int32_t sender = place + (place >= receiver ? 1 : 0);
    return receiver < sender ? Ends{receiver, sender} : Ends{sender, receiver};
  }

  int32_t n_;
  const T* x_;
  const T* d_;
  TreePartners<T> tree_;
};

/// Bernoulli: zero, and no other entry changes. Its rows are solved unless theta is NaN.
template <class T>
class SignSample {
 public:
  struct Shape {};

  static int64_t bytes(const Shape&, int64_t) { return 0; }
  __device__ static bool solved(Group<32>& warp, const Shape&, const Row<T>& row, const T* theta,
                                int) {
    const bool* mask = row.mask();
    bool nan = false;
    for (int64_t j = warp.rank(); j < row.n(); j += warp.size()) {
      nan |= theta[j] != theta[j] && (mask == nullptr || mask[j]);
    }
    return !warp.any(nan);
  }

  template <class Chosen>
  __device__ SignSample(Group<32>&, const Shape&, const Row<T>&, const T* d, const Chosen&, char*)
      : d_(d) {}

  __device__ Threshold of(int64_t j, bool) const { return {0.0, static_cast<double>(d_[j])}; }

 private:
  const T* d_;
};

template <class T>
class ChainSample {
 public:
  using Shape = ChainShape;

  static int64_t bytes(const Shape& chain, int64_t n) {
    return score_bytes<T>(n) +
           align_up(ChainSwaps<T>::numbers(chain) * static_cast<int64_t>(sizeof(double)));
  }
  __device__ static bool solved(Group<32>& warp, const Shape& chain, const Row<T>& row, const T*,
                                int ones) {
    return ones == steps_of_mask(warp, chain, row.mask());
  }

  template <class Chosen>
  __device__ ChainSample(Group<32>& warp, const Shape& chain, const Row<T>& row, const T* d,
                         const Chosen& chosen, char* memory)
      : swaps_{.chain = chain,
               .steps = steps_of_mask(warp, chain, row.mask()),
               .x = keep_scores<T>(warp, QuadScores<T>{row}, memory),
               .mask = row.mask(),
               .d = d} {
    swaps_.use(reinterpret_cast<double*>(memory + score_bytes<T>(row.n())));
    swaps_.find(warp, chosen);
  }

  __device__ Threshold of(int64_t j, bool is_in) const {
    const auto own = swaps_.of(j, is_in);
    return {own.threshold, own.difference};
  }

 private:
  ChainSwaps<T> swaps_;
};

template <class T, bool kPerMove>
class LatticeSample {
 public:
  using Shape = LatticeShape;
  using Swaps = aimle::detail::LatticeSwaps<kPerMove, T>;

  static int64_t bytes(const Shape& lattice, int64_t n) {
    return score_bytes<T>(n) + align_up(Swaps::numbers(lattice.height, lattice.width) *
                                        static_cast<int64_t>(sizeof(double)));
  }
  /// A path has an entry, except that of moves over a single cell.
  __device__ static bool solved(Group<32>& warp, const Shape& lattice, const Row<T>& row,
                                const T* theta, int ones) {
    if (ones > 0 || !kPerMove) return ones > 0;
    const auto part = detail::part_of < kPerMove ? 3 : 1 > (warp, lattice, row.mask());
    const bool* mask = row.mask();
    bool nan = false;
    for (int m = 0; m < 3; ++m) nan |= theta[m] != theta[m] && (mask == nullptr || mask[m]);
    return part.height == 1 && part.width == 1 && !nan;
  }

  template <class Chosen>
  __device__ LatticeSample(Group<32>& warp, const Shape& lattice, const Row<T>& row, const T* d,
                           const Chosen& chosen, char* memory) {
    const T* x = keep_scores<T>(warp, CentredScores<T>{row}, memory);
    const auto part = detail::part_of < kPerMove ? 3 : 1 > (warp, lattice, row.mask());
    swaps_ = {.height = part.height,
              .width = part.width,
              .pitch = part.pitch,
              .moves = lattice.moves,
              .x = x,
              .mask = row.mask(),
              .d = d};
    swaps_.use(reinterpret_cast<double*>(memory + score_bytes<T>(row.n())), lattice.height,
               lattice.width);
    swaps_.find(warp, chosen);
  }

  __device__ Threshold of(int64_t j, bool is_in) const {
    const auto own = swaps_.of(static_cast<int32_t>(j), is_in);
    return {own.threshold, own.difference};
  }

 private:
  Swaps swaps_;
};

}  // namespace
}  // namespace aimle::cuda
