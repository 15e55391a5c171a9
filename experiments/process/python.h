// Figures and reports are drawn, and diagnoses made, by the Python package: `python -m
// aimle.program.…`.
//
// The interpreter is $AIMLE_PYTHON if set, else the one the build was configured with if it is
// still there, else python3. In a build tree the package of the source tree is put on PYTHONPATH.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace aimle::experiments {

/// Runs `python -m module arguments...` and waits. False, after saying why on standard error, if it
/// could not be run or failed; Stopped if a signal ended it under an InterruptHandler.
bool run_python_module(std::string_view module, const std::vector<std::string>& arguments);

/// What a module does after a signal: kEnds has a second, kSaves a little more than a training run
/// takes to save its work (kSecondsToStop).
enum class WhenStopped { kEnds, kSaves };

/// The same for a module that does the command's work: it reads `input` from its standard input,
/// prints also if the program is quiet, and where it does not succeed this throws Explained or
/// Failure.
void call_python_module(std::string_view module, const std::vector<std::string>& arguments,
                        std::string_view input, WhenStopped when_stopped = WhenStopped::kEnds);

}  // namespace aimle::experiments
