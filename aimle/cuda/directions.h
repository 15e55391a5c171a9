// aimle/map/directions.h and aimle::symmetrise on the device: T is float, double or, except for
// symmetrise, bool.
#pragma once

#include "aimle/cuda/device_rows.h"

namespace aimle::cuda {

template <class T>
void fold_directions(int64_t vertices, int64_t count, const T* directed, T* undirected,
                     const Context& context);
template <class T>
void spread_directions(int64_t vertices, int64_t count, const T* undirected, T* directed,
                       const Context& context);
template <class T>
void symmetrise(int64_t vertices, int64_t count, const T* scores, T* out, const Context& context);

}  // namespace aimle::cuda
