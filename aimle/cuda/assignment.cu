// Assignment on the device: the algorithm of the host (map/assignment_search.h) by a warp or a
// block, with the costs in shared memory or, of large matrices, in device memory.
#include <algorithm>

#include "aimle/cuda/direct_output.cuh"
#include "aimle/cuda/map_rows.cuh"
#include "aimle/map/assignment_search.h"

namespace aimle::cuda {
namespace {

using aimle::detail::AssignmentWork;

int64_t agents(const Assignment& solver) { return solver.ones(); }
int64_t jobs(const Assignment& solver) { return std::max(solver.rows, solver.columns); }

template <int kThreads, int kRowsPerBlock>
struct AssignmentPolicy {
  static constexpr int kRowThreads = kThreads;
  static constexpr int kBlockThreads = kThreads * kRowsPerBlock;
  static constexpr const char* kName = "assignment";

  Assignment solver;

  template <class T>
  int64_t row_bytes(int64_t) const {
    return AssignmentWork::bytes(agents(solver), jobs(solver), jobs(solver));
  }

  template <class T>
  __device__ __forceinline__ Status solve(const Row<T>& row, uint32_t* chosen,
                                          char* scratch) const {
    Group<kThreads> group;
    const auto n = static_cast<int>(row.n());
    for (int word = group.rank(); 32 * word < n; word += kThreads) chosen[word] = 0;
    group.sync();
    const int64_t stride = solver.rows < solver.columns ? solver.columns : solver.rows;
    return aimle::detail::solve_assignment(
        group, AssignmentWork::at(scratch, solver, stride), QuadScores<T>{row}, row.mask(),
        [chosen](int64_t j) { chosen[j / 32] |= 1u << (j % 32); });
  }
};

constexpr int kLargeThreads = 512;
constexpr int64_t kLargeBlocks = 264;
constexpr int64_t kLargeScratch = int64_t{1} << 30;

/// A block per matrix, everything in device memory.
template <class T>
__global__ void __launch_bounds__(kLargeThreads)
    large_assignment(const __grid_constant__ RowSource<T> source,
                     const __grid_constant__ RowSink<T> sink, int64_t rows,
                     const __grid_constant__ Assignment solver, char* scratch, int64_t bytes) {
  Group<kLargeThreads> block;
  const int64_t stride = solver.rows < solver.columns ? solver.columns : solver.rows;
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const Row<T> row(source, r);
    const DirectOutput<T> output(sink, r, row.n());
    output.clear(block);
    block.sync();
    const Status status = aimle::detail::solve_assignment(
        block, AssignmentWork::at(scratch + blockIdx.x * bytes, solver, stride), QuadScores<T>{row},
        row.mask(), [&](int64_t j) { output.set(j); });
    output.finish(block, status);
    block.sync();
  }
}

template <class T, class Policy>
bool fits(const Policy& policy) {
  using Unit = UnitOf<Policy>;
  const int64_t row_bytes = align_up(policy.template row_bytes<T>(0));
  return Unit::kPerBlock * Unit::bytes(policy.solver.size(), row_bytes) <= shared_memory_limit();
}

}  // namespace

template <class T>
void map_rows(const Assignment& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context) {
  if (source.rows() == 0) return;
  const AssignmentPolicy<32, 4> by_warp{solver};
  const AssignmentPolicy<128, 1> by_block{solver};
  if (jobs(solver) <= 64 && fits<T>(by_warp)) return map_rows_by(by_warp, source, sink, context);
  if (fits<T>(by_block)) return map_rows_by(by_block, source, sink, context);
  const int64_t bytes = align_up(AssignmentWork::bytes(agents(solver), jobs(solver), jobs(solver)));
  const int64_t room = std::clamp<int64_t>(kLargeScratch / bytes, 1, kLargeBlocks);
  const unsigned blocks = blocks_for(source.rows(), 1, room);
  launch("assignment", large_assignment<T>, blocks, kLargeThreads, 0, context, source, sink,
         source.rows(), solver, context.array<char>(blocks * bytes), bytes);
}

template void map_rows(const Assignment&, const RowSource<float>&, const RowSink<float>&,
                       const Context&);
template void map_rows(const Assignment&, const RowSource<double>&, const RowSink<double>&,
                       const Context&);

}  // namespace aimle::cuda
