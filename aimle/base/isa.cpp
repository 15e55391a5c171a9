#include "aimle/base/isa.h"

#include <atomic>
#include <cstdlib>

#include "aimle/base/check.h"

namespace aimle {
namespace {

Isa choose() {
  const char* wish = std::getenv("AIMLE_ISA");
  if (wish != nullptr && std::string_view(wish) == "portable") return Isa::kPortable;
  return processor_has_avx2() ? Isa::kAvx2 : Isa::kPortable;
}

std::atomic<Isa>& current() {
  static std::atomic<Isa> chosen{choose()};
  return chosen;
}

}  // namespace

bool processor_has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2");
#else
  return false;
#endif
}

Isa isa() { return current().load(std::memory_order_relaxed); }

void use_isa(Isa wanted) {
  AIMLE_CHECK(wanted == Isa::kPortable || processor_has_avx2(),
              "[aimle::use_isa] expected an instruction set of this processor but got ",
              name(wanted));
  current().store(wanted, std::memory_order_relaxed);
}

std::string_view name(Isa isa) { return isa == Isa::kAvx2 ? "avx2" : "portable"; }

}  // namespace aimle
