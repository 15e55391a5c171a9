#include "aimle/estimate/row_loops.h"

namespace aimle::avx2 {

template <class T>
const RowKernels<T>& row_kernels() {
  return kKernels<T>;
}

template const RowKernels<float>& row_kernels();
template const RowKernels<double>& row_kernels();

}  // namespace aimle::avx2
