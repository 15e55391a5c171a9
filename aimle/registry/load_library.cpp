#include "aimle/registry/load_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <stdexcept>

#include "aimle/base/check.h"
#include "aimle/base/join.h"
#include "aimle/registry/registry.h"

namespace aimle {

std::vector<std::string> load_library(const std::string& path) {
  const std::vector<std::string> before = solver_names();
  void* handle = nullptr;
  const std::vector<std::string> refusals =
      refusals_during([&] { handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL); });
  if (handle == nullptr) {
    const char* reason = dlerror();
    throw std::runtime_error("[aimle::load_library] " + path + " cannot be loaded: " +
                             (reason == nullptr ? "no reason given" : reason));
  }
  AIMLE_CHECK(refusals.empty(), "[aimle::load_library] ", path, ": ", join(refusals, "; "));
  std::vector<std::string> added = solver_names();
  std::erase_if(added, [&](const std::string& name) {
    return std::find(before.begin(), before.end(), name) != before.end();
  });
  return added;
}

}  // namespace aimle
