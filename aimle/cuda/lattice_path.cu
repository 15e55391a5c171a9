#include "aimle/cuda/lattice_path.h"

#include "aimle/cuda/centred_rows.cuh"
#include "aimle/cuda/direct_output.cuh"
#include "aimle/cuda/map_rows.cuh"

namespace aimle::cuda {
namespace {

template <bool kPerMove>
constexpr const char* kOp = kPerMove ? "lattice_moves" : "lattice_path";

/// A warp or a block per lattice, everything in shared memory.
template <bool kPerMove, int kThreads, int kBlock>
struct LatticePolicy {
  static constexpr int kRowThreads = kThreads;
  static constexpr int kBlockThreads = kBlock;
  static constexpr const char* kName = kOp<kPerMove>;

  LatticeShape lattice;

  template <class T>
  int64_t row_bytes(int64_t n) const {
    return n * static_cast<int64_t>(sizeof(T));
  }

  template <class T>
  __device__ __forceinline__ Status solve(const Row<T>& row, uint32_t* chosen,
                                          char* scratch) const {
    Group<kThreads> group;
    const auto n = static_cast<int>(row.n());
    for (int word = group.rank(); 32 * word < n; word += kThreads) chosen[word] = 0;
    group.sync();
    return solve_lattice<kPerMove>(group, lattice, CentredScores<T>{row}, row.mask(),
                                   reinterpret_cast<T*>(scratch),
                                   [chosen](int32_t j) { chosen[j / 32] |= 1u << (j % 32); });
  }
};

constexpr int kLargeThreads = 512;
constexpr int64_t kLargeBlocks = 264;
constexpr int64_t kLargeScratch = int64_t{1} << 30;

/// A block per lattice, everything in device memory.
template <bool kPerMove, class T>
__global__ void __launch_bounds__(kLargeThreads)
    large_lattice(const __grid_constant__ RowSource<T> source,
                  const __grid_constant__ RowSink<T> sink, int64_t rows,
                  const __grid_constant__ LatticeShape lattice, T* scratch) {
  Group<kLargeThreads> block;
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const Row<T> row(source, r);
    const DirectOutput<T> output(sink, r, row.n());
    output.clear(block);
    block.sync();
    const Status status =
        solve_lattice<kPerMove>(block, lattice, CentredScores<T>{row}, row.mask(),
                                scratch + blockIdx.x * row.n(), [&](int32_t j) { output.set(j); });
    block.sync();
    output.finish(block, status);
    block.sync();
  }
}

/// Whether blocks of this policy fit shared memory; if so it solves the rows.
template <class Policy, class T>
bool solved_by(const Policy& policy, const RowSource<T>& source, const RowSink<T>& sink,
               const Context& context) {
  using Unit = UnitOf<Policy>;
  const int64_t n = source.examples.n;
  const int64_t bytes = Unit::bytes(n, align_up(policy.template row_bytes<T>(n)));
  if (Unit::kPerBlock * bytes > shared_memory_limit()) return false;
  map_rows_by(policy, source, sink, context);
  return true;
}

/// As many threads as a wave has cells; a warp for short waves.
template <bool kPerMove, class T>
void map_lattices(const LatticeShape& lattice, const RowSource<T>& source, const RowSink<T>& sink,
                  const Context& context) {
  const int64_t rows = source.rows(), n = source.examples.n, wave = lattice.longest_wave();
  if (rows == 0) return;
  if (wave <= 32 && solved_by(LatticePolicy<kPerMove, 32, 128>{lattice}, source, sink, context)) {
    return;
  }
  if (wave <= 128 ? solved_by(LatticePolicy<kPerMove, 128, 128>{lattice}, source, sink, context)
                  : solved_by(LatticePolicy<kPerMove, 512, 512>{lattice}, source, sink, context)) {
    return;
  }
  const int64_t bytes = n * static_cast<int64_t>(sizeof(T));
  const unsigned blocks =
      blocks_for(rows, 1, std::clamp<int64_t>(kLargeScratch / bytes, 1, kLargeBlocks));
  launch(kOp<kPerMove>, large_lattice<kPerMove, T>, blocks, kLargeThreads, 0, context, source, sink,
         rows, lattice, context.array<T>(blocks * n));
}

}  // namespace

template <class T>
void map_rows(const LatticePath& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context) {
  map_lattices<false>(lattice_shape(solver), source, sink, context);
}
template <class T>
void map_rows(const LatticeMoves& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context) {
  map_lattices<true>(lattice_shape(solver), source, sink, context);
}

template void map_rows(const LatticePath&, const RowSource<float>&, const RowSink<float>&,
                       const Context&);
template void map_rows(const LatticePath&, const RowSource<double>&, const RowSink<double>&,
                       const Context&);
template void map_rows(const LatticeMoves&, const RowSource<float>&, const RowSink<float>&,
                       const Context&);
template void map_rows(const LatticeMoves&, const RowSource<double>&, const RowSink<double>&,
                       const Context&);

}  // namespace aimle::cuda
