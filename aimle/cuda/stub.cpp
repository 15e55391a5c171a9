// What stands in for the kernels where there is no CUDA compiler: every call says what is missing.
#include <stdexcept>

#include "aimle/cuda/rows.h"

namespace aimle::cuda {
namespace {

[[noreturn]] void missing() {
  throw std::runtime_error(
      "[aimle] built without GPU kernels: build again where nvcc and a torch with CUDA are found, "
      "or "
      "with -DAIMLE_CUDA=ON, or move the tensors to the CPU");
}

}  // namespace

template <class T>
void map_rows(const Argmax&, const RowSource<T>&, const RowSink<T>&, const Context&) {
  missing();
}
template <class T>
void map_rows(const TopK&, const RowSource<T>&, const RowSink<T>&, const Context&) {
  missing();
}
template <class T>
void map_rows(const SpanningTree&, const RowSource<T>&, const RowSink<T>&, const Context&) {
  missing();
}
template <class T>
void map_rows(const GridPath&, const RowSource<T>&, const RowSink<T>&, const Context&) {
  missing();
}
void fill_noise(const NoiseSource&, const int64_t*, const NoiseRows&, float*, const Context&) {
  missing();
}
template <class T>
void write_scores(const RowSource<T>&, T*, const Context&) {
  missing();
}

#define AIMLE_INSTANTIATE(T)                                                                       \
  template void map_rows(const Argmax&, const RowSource<T>&, const RowSink<T>&, const Context&);   \
  template void map_rows(const TopK&, const RowSource<T>&, const RowSink<T>&, const Context&);     \
  template void map_rows(const SpanningTree&, const RowSource<T>&, const RowSink<T>&,              \
                         const Context&);                                                          \
  template void map_rows(const GridPath&, const RowSource<T>&, const RowSink<T>&, const Context&); \
  template void write_scores(const RowSource<T>&, T*, const Context&);

AIMLE_INSTANTIATE(float)
AIMLE_INSTANTIATE(double)

}  // namespace aimle::cuda
