// Arborescence on the device: the algorithm of the host (map/arborescence_search.h) by a warp or a
// block.
#include "aimle/cuda/map_work.cuh"
#include "aimle/map/arborescence_search.h"

namespace aimle::cuda {
namespace {

struct WorkOnArcs {
  static constexpr const char* kName = "arborescence";

  Arborescence solver;

  template <class T>
  int64_t bytes(int64_t) const {
    return aimle::detail::ArborescenceWork::bytes(solver.vertices);
  }

  template <class T, class Group, class Choose>
  __device__ __forceinline__ Status solve(Group& group, const Row<T>& row, char* memory,
                                          const Choose& choose) const {
    return aimle::detail::solve_arborescence(
        group, aimle::detail::ArborescenceWork::at(memory, solver.vertices), QuadScores<T>{row},
        row.mask(), solver.single_root, choose);
  }
};

}  // namespace

template <class T>
void map_rows(const Arborescence& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context) {
  const WorkOnArcs work{solver};
  if (solver.vertices <= 64 && map_in_shared_memory<32, 4>(work, source, sink, context)) return;
  if (map_in_shared_memory<128, 1>(work, source, sink, context)) return;
  map_in_device_memory<256>(work, source, sink, context);
}

AIMLE_INSTANTIATE_MAP(Arborescence)

}  // namespace aimle::cuda
