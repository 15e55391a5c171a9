// Which instruction set the kernels use, chosen once at run time.
//
// Every kernel has a portable form; some have an AVX2 form in a file of their own (`*_avx2.cpp`,
// the only files compiled for AVX2 and FMA), noise and thresholds an AVX-512 form as well
// (`*_avx512.cpp`). All give the same bits: tests run each against the other.
#pragma once

#include <string_view>

namespace aimle {

/// In this order: each has what those before it have.
enum class Isa { kPortable, kAvx2, kAvx512 };

/// True where the AVX2 and AVX-512 files are part of the build (x86-64).
#if defined(__x86_64__)
inline constexpr bool kBuiltWithAvx2 = true;
#else
inline constexpr bool kBuiltWithAvx2 = false;
#endif

/// The instruction set in use: the best this processor has, unless the environment variable
/// AIMLE_ISA ("portable", "avx2" or "avx512") or `use_isa` says otherwise.
Isa isa();

/// Overrides the choice for the whole process, for tests and benchmarks. Asking for one that the
/// processor lacks throws std::invalid_argument.
void use_isa(Isa isa);

/// True if this processor can run the files of an instruction set: AVX2 with FMA and BMI2, AVX-512
/// with its F, BW, DQ and VL parts.
bool processor_has(Isa isa);
inline bool processor_has_avx2() { return processor_has(Isa::kAvx2); }

std::string_view name(Isa isa);

}  // namespace aimle
