// Which instruction set the kernels use, chosen once at run time.
//
// Every kernel has a portable version; some have an AVX2 version in a separate file (`*_avx2.cpp`,
// the only files compiled for AVX2 and FMA), noise and thresholds also an AVX-512 version
// (`*_avx512.cpp`). All give the same bits: tests compare them.
#pragma once

#include <string_view>

namespace aimle {

/// In increasing order: each includes those before it.
enum class Isa { kPortable, kAvx2, kAvx512 };

/// True if the AVX2 and AVX-512 files are part of the build (x86-64).
#if defined(__x86_64__)
inline constexpr bool kBuiltWithAvx2 = true;
#else
inline constexpr bool kBuiltWithAvx2 = false;
#endif

/// The instruction set in use: the best of this processor, unless the environment variable
/// AIMLE_ISA ("portable", "avx2" or "avx512") or `use_isa` overrides it.
Isa isa();

/// Overrides the choice for the whole process, for tests and benchmarks. Throws
/// std::invalid_argument if the processor does not support it.
void use_isa(Isa isa);

/// True if this processor can run the files of an instruction set: AVX2 with FMA and BMI2, AVX-512
/// with its F, BW, DQ and VL parts.
bool processor_has(Isa isa);
inline bool processor_has_avx2() { return processor_has(Isa::kAvx2); }

std::string_view name(Isa isa);

}  // namespace aimle
