#include "aimle/cuda/bernoulli.h"

#include "aimle/cuda/direct_output.cuh"
#include "aimle/cuda/exact_rows.cuh"
#include "aimle/cuda/map_rows.cuh"
#include "aimle/exact/bernoulli_distribution.h"
#include "aimle/exact/masked_scores.h"
#include "aimle/exact/uniform.h"

namespace aimle::cuda {
namespace {

/// A row's scores under centred noise, a word of 32 entries at a time.
template <class T>
struct WordScores {
  const Row<T>& row;

  template <class Body>
  __device__ __forceinline__ void for_word(int64_t word, const Body& body) const {
    const int64_t n = row.n();
    const T shift = row.centring();
    for (int64_t q = 8 * word; q < 8 * word + 8 && 4 * q < n; ++q) {
      T x[4];
      row.quad(q, x);
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        if (4 * q + c < n) body(4 * q + c, x[c] - shift);
      }
    }
  }
};

template <int kThreads, int kRowsPerBlock>
struct SignPolicy {
  static constexpr int kRowThreads = kThreads;
  static constexpr int kBlockThreads = kThreads * kRowsPerBlock;
  static constexpr const char* kName = "bernoulli";

  template <class T>
  int64_t row_bytes(int64_t) const {
    return 0;
  }

  template <class T>
  __device__ __forceinline__ Status solve(const Row<T>& row, uint32_t* chosen, char*) const {
    std::conditional_t < kThreads == 1, OneThread, Group<kThreads<32 ? 32 : kThreads>> group;
    return solve_signs<T>(group, row.n(), WordScores<T>{row}, row.mask(),
                          [chosen](int64_t w, uint32_t bits) { chosen[w] = bits; });
  }
};

constexpr int kSignThreads = 512;
constexpr int64_t kSignBlocks = 1056;

/// A block per row, straight to the sink.
template <class T>
__global__ void __launch_bounds__(kSignThreads)
    large_signs(const __grid_constant__ RowSource<T> source,
                const __grid_constant__ RowSink<T> sink, int64_t rows) {
  Group<kSignThreads> block;
  const int64_t n = source.examples.n, bytes = bytes_per_row(n);
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const Row<T> row(source, r);
    const auto write = [&](int64_t w, uint32_t bits) {
      if (sink.z != nullptr) {
        for (int64_t j = 32 * w; j < 32 * w + 32 && j < n; ++j) {
          sink.z[r * n + j] = (bits >> (j % 32)) & 1 ? T(1) : T(0);
        }
      }
      if (sink.bits != nullptr) {
        for (int64_t b = 4 * w; b < 4 * w + 4 && b < bytes; ++b) {
          sink.bits[r * bytes + b] = static_cast<uint8_t>(bits >> (8 * (b % 4)));
        }
      }
    };
    const Status status = solve_signs<T>(block, n, WordScores<T>{row}, row.mask(), write);
    block.sync();
    DirectOutput<T>(sink, r, n).finish(block, status);
    block.sync();
  }
}

/// kOk if the row has no NaN and no +inf.
template <class T, class Group>
__device__ Status status_of(Group& group, const MaskedScores<T>& score, int64_t begin, int64_t n) {
  bool bad = false;
  for (int64_t j = group.rank(); j < n; j += group.size()) {
    bad |= !(score(begin + j) < static_cast<double>(INFINITY));
  }
  return group.any(bad) ? Status::kNaN : Status::kOk;
}

struct FlipRows {
  int64_t n;

  template <class T, class Group>
  __device__ void evaluate(Group& group, const DistributionRows<T>& rows, int64_t row,
                           double*) const {
    const MaskedScores<T> score{rows.scores, rows.mask};
    if (!accept(group, rows, n, row, status_of(group, score, row * n, n))) return;
    double log_z = 0;
    for (int64_t e = row * n + group.rank(); e < (row + 1) * n; e += group.size()) {
      const CoinFlip flip = coin_flip(score(e));
      log_z += flip.log_z;
      if (rows.marginals != nullptr) rows.marginals[e] = static_cast<T>(flip.on);
      if (rows.covariance == nullptr) continue;
      const double variance = flip.on * flip.off;
      rows.covariance[e] =
          static_cast<T>(variance > 0 ? variance * static_cast<double>(rows.v[e]) : 0.0);
    }
    log_z = group.reduce(log_z, Plus{});
    if (rows.log_partition != nullptr && group.rank() == 0) {
      rows.log_partition[row] = static_cast<T>(log_z);
    }
  }

  template <class T, class Group>
  __device__ void sample(Group& group, const SampleRows<T>& rows, Key key, int64_t row,
                         double*) const {
    const MaskedScores<T> score{rows.scores, rows.mask};
    if (!accept(group, rows, n, row, status_of(group, score, row * n, n))) return;
    const Key loaded = key;
    T* const z = rows.z + row * rows.samples * n;
    for (int64_t j = group.rank(); j < n; j += group.size()) {
      const double on = coin_flip(score(row * n + j)).on;
      for (int64_t s = 0; s < rows.samples; ++s) {
        z[s * n + j] = uniform(loaded, rows.first + row, s, j) < on ? T(1) : T(0);
      }
    }
  }
};

}  // namespace

template <class T>
void map_rows(const Bernoulli& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context) {
  if (source.rows() == 0) return;
  if (0 < solver.n && solver.n <= 32) {
    return map_rows_by(SignPolicy<1, 128>{}, source, sink, context);
  }
  if (solver.n <= 4096) return map_rows_by(SignPolicy<32, 4>{}, source, sink, context);
  if (UnitOf<SignPolicy<256, 1>>::bytes(solver.n, 0) <= shared_memory_limit()) {
    return map_rows_by(SignPolicy<256, 1>{}, source, sink, context);
  }
  launch("bernoulli", large_signs<T>, blocks_for(source.rows(), 1, kSignBlocks), kSignThreads, 0,
         context, source, sink, source.rows());
}

template <class T>
void evaluate_rows(const Bernoulli& solver, const DistributionRows<T>& rows,
                   const Context& context) {
  for_each_row("exact", rows.count, 0, Evaluate<FlipRows, T>{{solver.n}, rows}, context);
}

template <class T>
void sample_rows(const Bernoulli& solver, const SampleRows<T>& rows, const DeviceKey& key,
                 const Context& context) {
  for_each_row("exact_sample", rows.count, 0, Sample<FlipRows, T>{{solver.n}, rows, key}, context);
}

AIMLE_INSTANTIATE_MAP(Bernoulli)
AIMLE_INSTANTIATE_EXACT(Bernoulli)

}  // namespace aimle::cuda
