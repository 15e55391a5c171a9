#include "aimle/estimate/threshold_kernels.h"

#include "aimle/base/isa.h"
#include "aimle/estimate/threshold_loops.h"

namespace aimle {

namespace avx2 {
template <class T>
const ThresholdKernels<T>& threshold_kernels();
}  // namespace avx2
namespace avx512 {
template <class T>
const ThresholdKernels<T>& threshold_kernels();
}  // namespace avx512

template <class T>
const ThresholdKernels<T>& threshold_kernels() {
  if constexpr (kBuiltWithAvx2) {
    if (isa() == Isa::kAvx512) return avx512::threshold_kernels<T>();
    if (isa() == Isa::kAvx2) return avx2::threshold_kernels<T>();
  }
  return kThresholdKernels<T>;
}

template const ThresholdKernels<float>& threshold_kernels();
template const ThresholdKernels<double>& threshold_kernels();

}  // namespace aimle
