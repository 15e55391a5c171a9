// Which instruction set the kernels use, chosen once at run time.
//
// Every kernel has a portable form; some have an AVX2 form in a file of their own (`*_avx2.cpp`,
// the only files compiled for AVX2 and FMA). Both give the same bits: tests run each against the
// other.
#pragma once

#include <string_view>

namespace aimle {

enum class Isa { kPortable, kAvx2 };

/// True where the AVX2 files are part of the build (x86-64).
#if defined(__x86_64__)
inline constexpr bool kBuiltWithAvx2 = true;
#else
inline constexpr bool kBuiltWithAvx2 = false;
#endif

/// The instruction set in use: the best this processor has, unless the environment variable
/// AIMLE_ISA ("portable" or "avx2") or `use_isa` says otherwise.
Isa isa();

/// Overrides the choice for the whole process, for tests and benchmarks. Asking for one that the
/// processor lacks throws std::invalid_argument.
void use_isa(Isa isa);

/// True if this processor can run the AVX2 files (AVX2, FMA and BMI2).
bool processor_has_avx2();

std::string_view name(Isa isa);

}  // namespace aimle
