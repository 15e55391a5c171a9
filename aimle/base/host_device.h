// AIMLE_HD marks functions that are the same on the host and on the device.
//
// They are always inlined, so that a translation unit compiled for a newer instruction set
// can never lend its copy of such a function to the portable ones.
#pragma once

#if defined(__CUDACC__)
#define AIMLE_HD __host__ __device__ __forceinline__
#else
#define AIMLE_HD [[gnu::always_inline]] inline
#endif
