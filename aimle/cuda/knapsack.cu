#include "aimle/cuda/knapsack.h"

#include "aimle/cuda/centred_rows.cuh"
#include "aimle/cuda/map_work.cuh"

namespace aimle::cuda {
namespace {

struct WorkOnItems {
  static constexpr const char* kName = "knapsack";

  KnapsackShape shape;
  int64_t row_bytes;

  template <class T>
  int64_t bytes(int64_t) const {
    return row_bytes;
  }

  template <class T, class Group, class Choose>
  __device__ __forceinline__ Status solve(Group& group, const Row<T>& row, char* memory,
                                          const Choose& choose) const {
    return solve_knapsack<T>(group, shape, CentredScores<T>{row}, row.mask(), row.data(),
                             KnapsackScratch<T>::at(memory, shape.n, shape.max_capacity), choose);
  }
};

}  // namespace

template <class T>
void map_rows(const Knapsack& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context) {
  const WorkOnItems work{.shape = {.n = solver.n, .max_capacity = solver.max_capacity},
                         .row_bytes = KnapsackScratch<T>::bytes(solver)};
  if (solver.max_capacity < 256 && map_in_shared_memory<32, 4>(work, source, sink, context)) return;
  if (map_in_shared_memory<256, 1>(work, source, sink, context)) return;
  map_in_device_memory<512>(work, source, sink, context);
}

AIMLE_INSTANTIATE_MAP(Knapsack)

}  // namespace aimle::cuda
