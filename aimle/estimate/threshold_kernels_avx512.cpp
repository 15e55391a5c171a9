#include "aimle/estimate/threshold_loops.h"

namespace aimle::avx512 {

template <class T>
const ThresholdKernels<T>& threshold_kernels() {
  return kThresholdKernels<T>;
}

template const ThresholdKernels<float>& threshold_kernels();
template const ThresholdKernels<double>& threshold_kernels();

}  // namespace aimle::avx512
