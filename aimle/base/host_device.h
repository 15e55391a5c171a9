// AIMLE_HD marks functions that are the same on the host and on the device; AIMLE_EITHER those that
// are written once for both but, by their template arguments, call functions of only one of them.
//
// They are always inlined, so that a translation unit compiled for a newer instruction set
// can never lend its copy of such a function to the portable ones.
#pragma once

#if defined(__CUDACC__)
#define AIMLE_HD __host__ __device__ __forceinline__
#define AIMLE_EITHER __device__ __forceinline__
#else
#define AIMLE_HD [[gnu::always_inline]] inline
#define AIMLE_EITHER [[gnu::always_inline]] inline
#endif
