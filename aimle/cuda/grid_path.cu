#include <stdexcept>

#include "aimle/cuda/map_rows.cuh"

namespace aimle::cuda {

template <class T>
void map_rows(const GridPath&, const RowSource<T>&, const RowSink<T>&, const Context&) {
  throw std::runtime_error("[aimle::grid_path] no GPU kernel: move the tensors to the CPU");
}

template void map_rows(const GridPath&, const RowSource<float>&, const RowSink<float>&,
                       const Context&);
template void map_rows(const GridPath&, const RowSource<double>&, const RowSink<double>&,
                       const Context&);

}  // namespace aimle::cuda
