// aimle/map/directions.h on the device: T is float, double or bool.
#pragma once

#include "aimle/cuda/device_rows.h"

namespace aimle::cuda {

template <class T>
void fold_directions(int64_t vertices, int64_t count, const T* directed, T* undirected,
                     const Context& context);
template <class T>
void spread_directions(int64_t vertices, int64_t count, const T* undirected, T* directed,
                       const Context& context);

}  // namespace aimle::cuda
