#include <stdexcept>

#include "aimle/cuda/map_rows.cuh"

namespace aimle::cuda {

template <class T>
void map_rows(const SpanningTree&, const RowSource<T>&, const RowSink<T>&, const Context&) {
  throw std::runtime_error("[aimle::spanning_tree] no GPU kernel: move the tensors to the CPU");
}

template void map_rows(const SpanningTree&, const RowSource<float>&, const RowSink<float>&,
                       const Context&);
template void map_rows(const SpanningTree&, const RowSource<double>&, const RowSink<double>&,
                       const Context&);

}  // namespace aimle::cuda
