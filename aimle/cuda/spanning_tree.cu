#include "aimle/cuda/spanning_tree.h"

#include "aimle/cuda/direct_output.cuh"
#include "aimle/cuda/map_rows.cuh"
#include "aimle/cuda/whole_examples.cuh"

namespace aimle::cuda {
namespace {

/// At most as many vertices as threads, with the row's scores in shared memory.
template <bool kDirected, int kThreads, int kRowsPerBlock>
struct TreePolicy {
  static constexpr int kRowThreads = kThreads;
  static constexpr int kBlockThreads = kThreads * kRowsPerBlock;
  static constexpr int kMinBlocks = kThreads == 32 ? 5 : 1;
  static constexpr const char* kName = "spanning_tree";

  int vertices;

  template <class T>
  int64_t row_bytes(int64_t n) const {
    return n * static_cast<int64_t>(sizeof(T));
  }

  template <class T>
  __device__ __forceinline__ Status solve(const Row<T>& row, uint32_t* chosen,
                                          char* scratch) const {
    Group<kThreads> group;
    const auto n = static_cast<int>(row.n());
    T* x = reinterpret_cast<T*>(scratch);
    QuadScores<T>{row}.for_each(group.rank(), kThreads, [x](int64_t j, T score) { x[j] = score; });
    for (int word = group.rank(); 32 * word < n; word += kThreads) chosen[word] = 0;
    group.sync();
    return solve_tree<uint32_t, T, kDirected>(
        group, vertices, [x](int j) { return x[j]; }, row.mask(), OneVertex<T, uint32_t>{},
        [chosen](int j) { chosen[j / 32] |= 1u << (j % 32); });
  }
};

constexpr int kLargeThreads = 1024;
constexpr int64_t kLargeBlocks = 264;

template <class Word, class T, bool kDirected>
__global__ void __launch_bounds__(kLargeThreads)
    large_tree(const __grid_constant__ RowSource<T> source, const __grid_constant__ RowSink<T> sink,
               int64_t rows, int vertices, Joining<T, Word>* joining) {
  Group<kLargeThreads> block;
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const Row<T> row(source, r);
    const QuadScores<T> scores{row};
    const DirectOutput<T> output(sink, r, row.n());
    output.clear(block);
    block.sync();
    const Status status = solve_tree<Word, T, kDirected>(
        block, vertices, [&](int64_t j) { return scores(j); }, row.mask(),
        ManyVertices<T, Word>{joining + int64_t{blockIdx.x} * vertices},
        [&](int64_t j) { output.set(j); });
    output.finish(block, status);
    block.sync();
  }
}

template <class Word, class T, bool kDirected>
void launch_large(int vertices, const RowSource<T>& source, const RowSink<T>& sink,
                  const Context& context) {
  const unsigned blocks = blocks_for(source.rows(), 1, kLargeBlocks);
  launch("spanning_tree", large_tree<Word, T, kDirected>, blocks, kLargeThreads, 0, context, source,
         sink, source.rows(), vertices,
         context.array<Joining<T, Word>>(int64_t{blocks} * vertices));
}

template <class T, class Policy>
bool fits(const Policy& policy, int64_t n) {
  return policy.vertices <= Policy::kRowThreads &&
         UnitOf<Policy>::bytes(n, align_up(policy.template row_bytes<T>(n))) <=
             shared_memory_limit();
}

template <class T, bool kDirected>
void map_trees(const SpanningTree& solver, const RowSource<T>& source, const RowSink<T>& sink,
               const Context& context) {
  const auto vertices = static_cast<int>(solver.vertices);
  const TreePolicy<kDirected, 32, 4> by_warp{vertices};
  const TreePolicy<kDirected, 128, 1> by_block{vertices};
  const TreePolicy<kDirected, 384, 1> by_large_block{vertices};
  if (vertices <= 32) return map_rows_by(by_warp, source, sink, context);
  if (fits<T>(by_block, solver.size())) return map_rows_by(by_block, source, sink, context);
  if (fits<T>(by_large_block, solver.size())) {
    return map_rows_by(by_large_block, source, sink, context);
  }
  if (vertices <= Ends<uint32_t>::kMaxVertices) {
    launch_large<uint32_t, T, kDirected>(vertices, source, sink, context);
  } else {
    launch_large<uint64_t, T, kDirected>(vertices, source, sink, context);
  }
}

/// std::midpoint, which the host uses.
template <class T>
__device__ __forceinline__ T midpoint(T a, T b) {
  constexpr T kSmall =
      sizeof(T) == 4 ? T(0x1p-125) : T(0x1p-1021);  // twice the least normal number
  constexpr T kLarge = sizeof(T) == 4 ? T(0x1.fffffep+126) : T(0x1.fffffffffffffp+1022);
  const T size_a = a < 0 ? -a : a, size_b = b < 0 ? -b : b;
  if (size_a <= kLarge && size_b <= kLarge) return (a + b) / 2;
  if (size_a < kSmall) return a + b / 2;
  if (size_b < kSmall) return a / 2 + b;
  return a / 2 + b / 2;
}

constexpr int kEntryThreads = 256;

template <class T>
__global__ void __launch_bounds__(kEntryThreads)
    symmetrise_kernel(int64_t vertices, int64_t entries, const T* scores, T* out) {
  for (int64_t e = int64_t{blockIdx.x} * kEntryThreads + threadIdx.x; e < entries;
       e += int64_t{gridDim.x} * kEntryThreads) {
    const Split line = split(e, vertices - 1);  // a receiver of some row, and where its sender is
    const Split row = split(line.quotient, vertices);
    const int64_t receiver = row.rest;
    const int64_t sender = line.rest + (line.rest >= receiver ? 1 : 0);
    const int64_t other = (row.quotient * vertices + sender) * (vertices - 1) + receiver -
                          (receiver > sender ? 1 : 0);
    const T first = receiver < sender ? scores[e] : scores[other];
    const T second = receiver < sender ? scores[other] : scores[e];
    out[e] = midpoint(first, second);
  }
}

}  // namespace

template <class T>
void symmetrise(int64_t vertices, int64_t count, const T* scores, T* out, const Context& context) {
  const int64_t entries = count * vertices * (vertices - 1);
  if (entries == 0) return;
  launch("symmetrise", symmetrise_kernel<T>, blocks_for(entries, kEntryThreads), kEntryThreads, 0,
         context, vertices, entries, scores, out);
}

template void symmetrise(int64_t, int64_t, const float*, float*, const Context&);
template void symmetrise(int64_t, int64_t, const double*, double*, const Context&);

template <class T>
void map_rows(const SpanningTree& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context) {
  if (source.rows() == 0) return;
  if (solver.layout == SpanningTree::Layout::kDirected) {
    map_trees<T, true>(solver, source, sink, context);
  } else {
    map_trees<T, false>(solver, source, sink, context);
  }
}

template <class T>
int64_t whole_examples(const SpanningTree& solver, const WholeExamples<T>& work,
                       const Context& context) {
  const auto vertices = static_cast<int>(solver.vertices);
  if (vertices > 32) return 0;
  return solver.layout == SpanningTree::Layout::kDirected
             ? whole_examples_by(TreePolicy<true, 32, 4>{vertices}, work, context)
             : whole_examples_by(TreePolicy<false, 32, 4>{vertices}, work, context);
}

AIMLE_INSTANTIATE_MAP(SpanningTree)
AIMLE_INSTANTIATE_WHOLE(SpanningTree)

}  // namespace aimle::cuda
