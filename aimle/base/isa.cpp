#include "aimle/base/isa.h"

#include <atomic>
#include <cstdlib>

#include "aimle/base/check.h"

namespace aimle {
namespace {

constexpr Isa kBestFirst[] = {Isa::kAvx512, Isa::kAvx2, Isa::kPortable};

Isa choose() {
  const char* wish = std::getenv("AIMLE_ISA");
  for (const Isa isa : kBestFirst) {
    if (wish != nullptr && wish == name(isa) && processor_has(isa)) return isa;
  }
  for (const Isa isa : kBestFirst) {
    if (processor_has(isa)) return isa;
  }
  return Isa::kPortable;
}

std::atomic<Isa>& current() {
  static std::atomic<Isa> chosen{choose()};
  return chosen;
}

}  // namespace

bool processor_has(Isa isa) {
  if (isa == Isa::kPortable) return true;
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi2");
  if (isa == Isa::kAvx2 || !avx2) return avx2;
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

Isa isa() { return current().load(std::memory_order_relaxed); }

void use_isa(Isa wanted) {
  AIMLE_CHECK(processor_has(wanted),
              "[aimle::use_isa] expected an instruction set of this processor but got ",
              name(wanted));
  current().store(wanted, std::memory_order_relaxed);
}

std::string_view name(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return "portable";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "unknown instruction set";
}

}  // namespace aimle
