#include "aimle/cuda/spanning_tree.h"

#include "aimle/cuda/map_work.cuh"
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

/// Any number of vertices, with their state in device memory.
template <bool kDirected, class Word>
struct WorkOnTree {
  static constexpr const char* kName = "spanning_tree";

  int vertices;

  template <class T>
  int64_t bytes(int64_t) const {
    return vertices * static_cast<int64_t>(sizeof(Joining<T, Word>));
  }

  template <class T, class Group, class Choose>
  __device__ __forceinline__ Status solve(Group& group, const Row<T>& row, char* memory,
                                          const Choose& choose) const {
    const QuadScores<T> scores{row};
    return solve_tree<Word, T, kDirected>(
        group, vertices, [&](int64_t j) { return scores(j); }, row.mask(),
        ManyVertices<T, Word>{reinterpret_cast<Joining<T, Word>*>(memory)}, choose);
  }
};

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
    map_in_device_memory<1024>(WorkOnTree<kDirected, uint32_t>{vertices}, source, sink, context);
  } else {
    map_in_device_memory<1024>(WorkOnTree<kDirected, uint64_t>{vertices}, source, sink, context);
  }
}

}  // namespace

template <class T>
void map_rows(const SpanningTree& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context) {
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
