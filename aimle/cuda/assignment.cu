// Assignment on the device: the algorithm of the host (map/assignment_search.h) by a warp or a
// block.
#include "aimle/cuda/map_work.cuh"
#include "aimle/map/assignment_search.h"

namespace aimle::cuda {
namespace {

struct WorkOnMatrix {
  static constexpr const char* kName = "assignment";

  Assignment solver;

  __host__ __device__ int64_t jobs() const {
    return solver.rows < solver.columns ? solver.columns : solver.rows;
  }

  template <class T>
  int64_t bytes(int64_t) const {
    return aimle::detail::AssignmentWork::bytes(solver.ones(), jobs(), jobs());
  }

  template <class T, class Group, class Choose>
  __device__ __forceinline__ Status solve(Group& group, const Row<T>& row, char* memory,
                                          const Choose& choose) const {
    return aimle::detail::solve_assignment(
        group, aimle::detail::AssignmentWork::at(memory, solver, jobs()), QuadScores<T>{row},
        row.mask(), choose);
  }
};

}  // namespace

template <class T>
void map_rows(const Assignment& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context) {
  const WorkOnMatrix work{solver};
  if (work.jobs() <= 64 && map_in_shared_memory<32, 4>(work, source, sink, context)) return;
  if (map_in_shared_memory<128, 1>(work, source, sink, context)) return;
  map_in_device_memory<512>(work, source, sink, context);
}

AIMLE_INSTANTIATE_MAP(Assignment)

}  // namespace aimle::cuda
