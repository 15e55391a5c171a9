#include "aimle/cuda/lattice_path.h"

#include "aimle/cuda/centred_rows.cuh"
#include "aimle/cuda/map_work.cuh"

namespace aimle::cuda {
namespace {

template <bool kPerMove>
struct WorkOnLattice {
  static constexpr const char* kName = kPerMove ? "lattice_moves" : "lattice_path";

  LatticeShape lattice;

  template <class T>
  int64_t bytes(int64_t n) const {
    return n * int64_t{sizeof(T)};
  }

  template <class T, class Group, class Choose>
  __device__ __forceinline__ Status solve(Group& group, const Row<T>& row, char* memory,
                                          const Choose& choose) const {
    return solve_lattice<kPerMove>(group, lattice, CentredScores<T>{row}, row.mask(),
                                   reinterpret_cast<T*>(memory), choose);
  }
};

}  // namespace

/// As many threads as a wave has cells; one warp for short waves.
template <LatticeScores kScores, class T>
void map_rows(const Lattice<kScores>& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context) {
  const LatticeShape lattice = lattice_shape(solver);
  const WorkOnLattice<Lattice<kScores>::kPerMove> work{lattice};
  const int64_t wave = lattice.longest_wave();
  if (wave <= 32 && map_in_shared_memory<32, 4>(work, source, sink, context)) return;
  if (wave <= 128 ? map_in_shared_memory<128, 1>(work, source, sink, context)
                  : map_in_shared_memory<512, 1>(work, source, sink, context)) {
    return;
  }
  map_in_device_memory<512>(work, source, sink, context);
}

AIMLE_INSTANTIATE_MAP(LatticePath)
AIMLE_INSTANTIATE_MAP(LatticeMoves)

}  // namespace aimle::cuda
