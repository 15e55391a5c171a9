#include "aimle/cuda/graph_path.h"

#include "aimle/cuda/centred_rows.cuh"
#include "aimle/cuda/direct_output.cuh"
#include "aimle/cuda/map_rows.cuh"

namespace aimle::cuda {
namespace {

template <bool kAcyclic, bool kInPlace, class T, class Group, class Chosen>
__device__ __forceinline__ Status solve_row(Group& group, const Row<T>& row, const GraphSize& size,
                                            void* memory, unsigned long long* clipped,
                                            Chosen chosen) {
  const auto scratch = GraphScratch<T>::at(memory, size);
  if constexpr (kAcyclic) {
    return solve_graph<true, kInPlace>(group, size, CentredScores<T>{row}, row.mask(), row.data(),
                                       scratch, chosen);
  } else {
    unsigned long long seen = 0;
    const Status status = solve_graph<false, kInPlace>(group, size, Costs<T>{row, seen}, row.mask(),
                                                       row.data(), scratch, chosen);
    count_clipped(group, seen, clipped);
    return status;
  }
}

/// A warp or a block per row, everything in shared memory.
template <bool kAcyclic, int kThreads, int kBlock>
struct GraphPolicy {
  static constexpr int kRowThreads = kThreads;
  static constexpr int kBlockThreads = kBlock;
  static constexpr const char* kName = kAcyclic ? "dag_path" : "graph_path";

  GraphSize size;
  unsigned long long* clipped;  // as in RowSink

  template <class T>
  int64_t row_bytes(int64_t) const {
    return GraphScratch<T>::bytes(size);
  }

  template <class T>
  __device__ __forceinline__ Status solve(const Row<T>& row, uint32_t* chosen,
                                          char* scratch) const {
    Group<kThreads> group;
    for (int64_t word = group.rank(); 32 * word < row.n(); word += kThreads) chosen[word] = 0;
    group.sync();
    return solve_row<kAcyclic, false>(group, row, size, scratch, clipped,
                                      [chosen](int32_t j) { chosen[j / 32] |= 1u << (j % 32); });
  }
};

constexpr int kLargeThreads = 1024;
constexpr int64_t kLargeBlocks = 264;
constexpr int64_t kLargeScratch = int64_t{1} << 30;

/// A block per row, everything in device memory.
template <bool kAcyclic, class T>
__global__ void __launch_bounds__(kLargeThreads)
    large_graph(const __grid_constant__ RowSource<T> source,
                const __grid_constant__ RowSink<T> sink, int64_t rows,
                const __grid_constant__ GraphSize size, char* scratch, int64_t bytes) {
  Group<kLargeThreads> block;
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const Row<T> row(source, r);
    const DirectOutput<T> output(sink, r, row.n());
    output.clear(block);
    block.sync();
    const Status status =
        solve_row<kAcyclic, true>(block, row, size, scratch + blockIdx.x * bytes, sink.clipped,
                                  [&](int32_t j) { output.set(j); });
    block.sync();
    output.finish(block, status);
    block.sync();
  }
}

/// Whether as many rows as a block has fit into its shared memory.
template <class Policy>
bool fits(int64_t n, int64_t bytes) {
  using Unit = UnitOf<Policy>;
  return Unit::kPerBlock * Unit::bytes(n, bytes) <= shared_memory_limit();
}

template <bool kAcyclic, class T>
void map_graphs(const PathOverGraph<kAcyclic>& solver, const RowSource<T>& source,
                const RowSink<T>& sink, const Context& context) {
  if (source.rows() == 0) return;
  const GraphSize size = graph_size(solver);
  const int64_t bytes = GraphScratch<T>::bytes(size), n = size.edges;
  using Small = GraphPolicy<kAcyclic, 32, 128>;
  using Middle = GraphPolicy<kAcyclic, 128, 128>;
  using Wide = GraphPolicy<kAcyclic, 512, 512>;
  if (size.vertices <= 64 && fits<Small>(n, bytes)) {
    return map_rows_by(Small{size, sink.clipped}, source, sink, context);
  }
  if (size.vertices <= 256 && fits<Middle>(n, bytes)) {
    return map_rows_by(Middle{size, sink.clipped}, source, sink, context);
  }
  if (fits<Wide>(n, bytes)) return map_rows_by(Wide{size, sink.clipped}, source, sink, context);
  const int64_t room = std::clamp<int64_t>(kLargeScratch / bytes, 1, kLargeBlocks);
  const unsigned blocks = blocks_for(source.rows(), 1, room);
  launch(Wide::kName, large_graph<kAcyclic, T>, blocks, kLargeThreads, 0, context, source, sink,
         source.rows(), size, context.array<char>(blocks * bytes), bytes);
}

}  // namespace

template <class T>
void map_rows(const GraphPath& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context) {
  map_graphs(solver, source, sink, context);
}

template <class T>
void map_rows(const DagPath& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context) {
  map_graphs(solver, source, sink, context);
}

template void map_rows(const GraphPath&, const RowSource<float>&, const RowSink<float>&,
                       const Context&);
template void map_rows(const GraphPath&, const RowSource<double>&, const RowSink<double>&,
                       const Context&);
template void map_rows(const DagPath&, const RowSource<float>&, const RowSink<float>&,
                       const Context&);
template void map_rows(const DagPath&, const RowSource<double>&, const RowSink<double>&,
                       const Context&);

}  // namespace aimle::cuda
