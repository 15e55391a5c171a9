#include "aimle/estimate/row_kernels.h"

#include "aimle/base/isa.h"
#include "aimle/estimate/row_loops.h"

namespace aimle {

namespace avx2 {
template <class T>
const RowKernels<T>& row_kernels();
}  // namespace avx2

template <class T>
const RowKernels<T>& row_kernels() {
  if constexpr (kBuiltWithAvx2) {
    if (isa() >= Isa::kAvx2) return avx2::row_kernels<T>();
  }
  return kKernels<T>;
}

template const RowKernels<float>& row_kernels();
template const RowKernels<double>& row_kernels();

}  // namespace aimle
