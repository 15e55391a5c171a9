// The solvers of this process: those of the library, and those that other libraries register when
// they are loaded (register_solver.h).
//
//   for (const std::string& name : aimle::solver_names()) ...
//   aimle::parse_solver("grid_path:neighbourhood=4,target=5:-1")->fit({{12, 12}});
//
// The text of a solver: its name, then settings as name=value, separated by commas; a cell of a
// grid is row:column. Ops take it, `repr` shows it and checkpoints contain it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "aimle/base/function_ref.h"
#include "aimle/registry/solver_kind.h"

namespace aimle {

/// Registers a solver. Throws std::invalid_argument if another type has its name; registering the
/// same type again has no effect.
void register_kind(std::unique_ptr<SolverKind> kind);

/// Registers a solver while a library is being loaded, where an exception would end the process. A
/// rejection goes to `refusals_during`, or to standard error if that is not active.
bool register_on_load(std::unique_ptr<SolverKind> kind) noexcept;

/// The messages of the solvers that were rejected while `load` ran, in this thread.
std::vector<std::string> refusals_during(FunctionRef<void()> load);

/// Its declaration. For an unknown name, throws std::invalid_argument that lists the known ones.
const SolverKind& solver_kind(std::string_view name);

/// Those of the library first, followed by the others in the order of registration.
std::vector<std::string> solver_names();

/// Parses and validates a text, once: the same text returns the same object.
std::shared_ptr<const UnsizedSolver> parse_solver(std::string_view text);

/// A solver by its name and its settings as text.
std::shared_ptr<const UnsizedSolver> make_solver(std::string_view name, const SettingTexts& given);

/// All declarations as JSON, a list of objects, for other languages.
std::string solvers_as_json();

}  // namespace aimle
