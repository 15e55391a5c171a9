#include "aimle/cuda/graph_path.h"

#include "aimle/cuda/centred_rows.cuh"
#include "aimle/cuda/map_work.cuh"

namespace aimle::cuda {
namespace {

/// kInPlace: as solve_graph has it, for graphs in device memory.
template <bool kAcyclic, bool kInPlace>
struct WorkOnGraph {
  static constexpr const char* kName = kAcyclic ? "dag_path" : "graph_path";

  GraphSize size;
  unsigned long long* clipped;  // as in RowSink

  template <class T>
  int64_t bytes(int64_t) const {
    return GraphScratch<T>::bytes(size);
  }

  template <class T, class Group, class Choose>
  __device__ __forceinline__ Status solve(Group& group, const Row<T>& row, char* memory,
                                          const Choose& choose) const {
    const auto scratch = GraphScratch<T>::at(memory, size);
    if constexpr (kAcyclic) {
      return solve_graph<true, kInPlace>(group, size, CentredScores<T>{row}, row.mask(), row.data(),
                                         scratch, choose);
    } else {
      unsigned long long seen = 0;
      const Status status = solve_graph<false, kInPlace>(group, size, Costs<T>{row, seen},
                                                         row.mask(), row.data(), scratch, choose);
      count_clipped(group, seen, clipped);
      return status;
    }
  }
};

}  // namespace

template <bool kAcyclic, class T>
void map_rows(const PathOverGraph<kAcyclic>& solver, const RowSource<T>& source,
              const RowSink<T>& sink, const Context& context) {
  const GraphSize size = graph_size(solver);
  const WorkOnGraph<kAcyclic, false> work{size, sink.clipped};
  if (size.vertices <= 64 && map_in_shared_memory<32, 4>(work, source, sink, context)) return;
  if (size.vertices <= 256 && map_in_shared_memory<128, 1>(work, source, sink, context)) return;
  if (map_in_shared_memory<512, 1>(work, source, sink, context)) return;
  map_in_device_memory<1024>(WorkOnGraph<kAcyclic, true>{size, sink.clipped}, source, sink,
                             context);
}

AIMLE_INSTANTIATE_MAP(GraphPath)
AIMLE_INSTANTIATE_MAP(DagPath)

}  // namespace aimle::cuda
