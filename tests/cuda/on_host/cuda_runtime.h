// Replaces CUDA's header: the parts that the kernels use, implemented by block.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "block.h"

#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __shared__ static  // one block runs at a time
#define __launch_bounds__(...)
#define __grid_constant__

#define threadIdx (aimle::on_host::block->thread())
#define blockIdx (aimle::on_host::block->index())
#define blockDim (aimle::on_host::block_size)
#define gridDim (aimle::on_host::grid_size)

using std::fma;
using std::isfinite;
using std::isnan;

// ---- The runtime --------------------------------------------------------------------------------

using cudaStream_t = void*;
enum cudaError_t { cudaSuccess };
enum { cudaFuncAttributeMaxDynamicSharedMemorySize, cudaDevAttrMaxSharedMemoryPerBlockOptin };
inline const char* cudaGetErrorString(cudaError_t) { return ""; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t) {
  std::memset(to, value, bytes);
  return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel*, int, int) {
  return cudaSuccess;
}
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone };
inline cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* value, int, int) {
  *value = 227 * 1024;
  return cudaSuccess;
}

// ---- Memory -------------------------------------------------------------------------------------

struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) double2 {
  double x, y;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline double2 make_double2(double x, double y) { return {x, y}; }
template <class Value>
Value __ldg(const Value* at) {
  return *at;
}
template <class Value>
Value __ldcg(const Value* at) {
  return *at;
}
template <class Value>
void __stcs(Value* at, Value value) {
  *at = value;
}
inline void __threadfence() {}
template <class Value>
Value atomicAdd(Value* at, Value value) {
  const Value before = *at;
  *at += value;
  return before;
}
template <class Value>
Value atomicOr(Value* at, Value value) {
  const Value before = *at;
  *at |= value;
  return before;
}

[[noreturn]] inline void __trap() { throw std::runtime_error("trap"); }

// ---- Threads together ---------------------------------------------------------------------------

inline void __syncthreads() { aimle::on_host::block->sync(); }
inline int __syncthreads_or(int value) { return aimle::on_host::block->any(value != 0); }
inline void __syncwarp() { aimle::on_host::block->sync_warp(); }
/// What lane `from(own lane)` has; the lane's own value beyond the ends of the warp.
template <class Value, class From>
Value value_of_lane(Value mine, From from) {
  const int lane = static_cast<int>(threadIdx.x % 32), other = from(lane);
  return aimle::on_host::block->of_warp(
      mine)[static_cast<size_t>(other < 0 || other > 31 ? lane : other)];
}
template <class Value>
Value __shfl_sync(unsigned, Value mine, int lane) {
  return value_of_lane(mine, [=](int) { return lane; });
}
template <class Value>
Value __shfl_xor_sync(unsigned, Value mine, int mask) {
  return value_of_lane(mine, [=](int lane) { return lane ^ mask; });
}
template <class Value>
Value __shfl_down_sync(unsigned, Value mine, int by) {
  return value_of_lane(mine, [=](int lane) { return lane + by; });
}
template <class Value>
Value __shfl_up_sync(unsigned, Value mine, int by) {
  return value_of_lane(mine, [=](int lane) { return lane - by; });
}
inline unsigned __ballot_sync(unsigned, bool mine) {
  unsigned votes = 0, lane = 0;
  for (const bool vote : aimle::on_host::block->of_warp(mine)) votes |= unsigned{vote} << lane++;
  return votes;
}
inline int __any_sync(unsigned mask, bool mine) { return __ballot_sync(mask, mine) != 0; }
inline int __reduce_add_sync(unsigned, int mine) {
  int sum = 0;
  for (const int value : aimle::on_host::block->of_warp(mine)) sum += value;
  return sum;
}
inline unsigned __reduce_max_sync(unsigned, unsigned mine) {
  unsigned largest = 0;
  for (const unsigned value : aimle::on_host::block->of_warp(mine)) {
    largest = value > largest ? value : largest;
  }
  return largest;
}

// ---- Numbers ------------------------------------------------------------------------------------

template <class To, class From>
To same_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
inline unsigned __float_as_uint(float x) { return same_bits<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return same_bits<float>(x); }
inline long long __double_as_longlong(double x) { return same_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return same_bits<double>(x); }
inline double __dsqrt_rn(double x) { return std::sqrt(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(unsigned x) { return x == 0 ? 32 : __builtin_clz(x); }
template <class Value>
Value min(Value a, Value b) {
  return b < a ? b : a;
}
template <class Value>
Value max(Value a, Value b) {
  return a < b ? b : a;
}
