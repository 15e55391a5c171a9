#include "aimle/registry/registry.h"

#include <algorithm>
#include <cstdio>
#include <mutex>

#include "aimle/base/check.h"
#include "aimle/base/join.h"
#include "aimle/base/nearest.h"
#include "aimle/base/shown_value.h"
#include "aimle/base/text_cache.h"
#include "aimle/registry/library_solvers.h"
#include "aimle/registry/register_solver.h"

namespace aimle {
namespace detail {

struct Registry {
  Registry() {
    LibrarySolvers::for_each(
        [this]<class S>(std::type_identity<S>) { kinds.push_back(std::make_unique<KindOf<S>>()); });
  }

  /// Null for an unknown name.
  const SolverKind* find(std::string_view name) const {
    const auto found = std::find_if(kinds.begin(), kinds.end(),
                                    [&](const auto& kind) { return kind->name == name; });
    return found == kinds.end() ? nullptr : found->get();
  }

  std::vector<std::string> names() const {
    std::vector<std::string> result;
    result.reserve(kinds.size());
    for (const auto& kind : kinds) result.push_back(kind->name);
    return result;
  }

  std::mutex mutex;
  std::vector<std::unique_ptr<SolverKind>> kinds;  // their addresses stay
};

/// Unique in the process, even if several libraries contain a copy of this code: GCC and the
/// dynamic linker make the static variable of an inline function unique.
inline Registry& registry() {
  static Registry instance;
  return instance;
}

/// Where this thread collects rejections; null: nowhere. Unique like the registry.
inline std::vector<std::string>*& refusals() {
  static thread_local std::vector<std::string>* listener = nullptr;
  return listener;
}

}  // namespace detail

namespace {

using detail::registry;

SettingTexts split_settings(std::string_view text, std::string_view settings) {
  SettingTexts result;
  while (true) {
    const size_t end = std::min(settings.find(','), settings.size());
    const std::string_view pair = settings.substr(0, end);
    const size_t equals = pair.find('=');
    AIMLE_CHECK(equals != std::string_view::npos && equals > 0,
                "[aimle::solver] expected name:setting=value,... but got '", shown_value(text),
                "'");
    result.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
    if (end == settings.size()) return result;
    settings.remove_prefix(end + 1);
  }
}

std::shared_ptr<const UnsizedSolver> parse_anew(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return make_solver(text, {});
  return make_solver(text.substr(0, colon), split_settings(text, text.substr(colon + 1)));
}

}  // namespace

void register_kind(std::unique_ptr<SolverKind> kind) {
  const std::lock_guard lock(registry().mutex);
  const SolverKind* known = registry().find(kind->name);
  if (known != nullptr && known->type() == kind->type()) return;
  AIMLE_CHECK(known == nullptr, "[aimle::register_solver] there is another solver named '",
              kind->name, "': choose another kName");
  AIMLE_CHECK(
      !kind->name.empty() && kind->name.find_first_of(":=, ") == std::string::npos,
      "[aimle::register_solver] expected a name without spaces and ':', '=' or ',' but got '",
      shown_value(kind->name), "'");
  registry().kinds.push_back(std::move(kind));
}

bool register_on_load(std::unique_ptr<SolverKind> kind) noexcept {
  try {
    register_kind(std::move(kind));
    return true;
  } catch (const std::exception& refusal) {
    if (std::vector<std::string>* listener = detail::refusals(); listener != nullptr) {
      listener->emplace_back(refusal.what());
    } else {
      std::fprintf(stderr, "aimle: %s\n", refusal.what());
    }
    return false;
  }
}

std::vector<std::string> refusals_during(FunctionRef<void()> load) {
  std::vector<std::string> result;
  detail::refusals() = &result;
  load();
  detail::refusals() = nullptr;
  return result;
}

const SolverKind& solver_kind(std::string_view name) {
  const std::lock_guard lock(registry().mutex);
  const SolverKind* found = registry().find(name);
  if (found != nullptr) return *found;
  const std::vector<std::string> names = registry().names();
  AIMLE_CHECK(false, "[aimle::solver] expected one of ", join(names), " but got '",
              shown_value(name), "'", did_you_mean(name, names));
}

std::vector<std::string> solver_names() {
  const std::lock_guard lock(registry().mutex);
  return registry().names();
}

std::shared_ptr<const UnsizedSolver> make_solver(std::string_view name, const SettingTexts& given) {
  return solver_kind(name).make(given);
}

std::shared_ptr<const UnsizedSolver> parse_solver(std::string_view text) {
  static TextCache<UnsizedSolver> cache;
  return cache.get(text, parse_anew);
}

}  // namespace aimle
