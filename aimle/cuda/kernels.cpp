#include "aimle/cuda/kernels.h"

#include <mutex>
#include <typeindex>
#include <unordered_map>

#include "aimle/base/check.h"
#include "aimle/registry/library_solvers.h"

namespace aimle::cuda {
namespace {

struct AllKernels {
  AllKernels() {
    LibrarySolvers::for_each([this]<class S>(std::type_identity<S>) {
      of_type.emplace(typeid(S), std::make_unique<detail::KernelsOf<S>>());
    });
  }

  std::mutex mutex;
  std::unordered_map<std::type_index, std::unique_ptr<const Kernels>> of_type;
};

AllKernels& all_kernels() {
  static AllKernels kernels;
  return kernels;
}

}  // namespace

namespace detail {

void throw_no_exact(std::string_view name) {
  aimle::detail::throw_invalid_argument("[aimle::cuda] ", name,
                                        " has no exact distribution on a GPU: call it with scores "
                                        "on the CPU, for example scores.cpu()");
}

}  // namespace detail

void register_kernels(const std::type_info& type, std::unique_ptr<const Kernels> kernels) {
  const std::lock_guard lock(all_kernels().mutex);
  all_kernels().of_type.try_emplace(type, std::move(kernels));
}

const Kernels& kernels_of(const Solver& solver) {
  const std::lock_guard lock(all_kernels().mutex);
  const auto found = all_kernels().of_type.find(solver.type());
  AIMLE_CHECK(found != all_kernels().of_type.end(), "[aimle::cuda] ", solver.name(),
              " has no GPU kernel: call it with theta on the CPU, for example theta.cpu()");
  return *found->second;
}

}  // namespace aimle::cuda
