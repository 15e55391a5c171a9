// Error messages of the program.
#pragma once

#include <exception>
#include <string>

namespace aimle::cli {

/// The exit code of wrong usage.
inline constexpr int kUsage = 2;

/// The message without function names, on one line, with overlong words truncated.
std::string own_words(const std::string& message);

/// The message for an exception of a library or of the system, without the library's text.
std::string describe(const std::exception& error);

/// `aimle: MESSAGE` on standard error, over a progress bar; returns the code.
int complain(const std::string& message, int code);

/// Flushes and closes standard output. Returns the code, or an error code, with one line on
/// standard error, if the output could not be written (no line if a pipe's reader has closed it).
int close_output(int code);

}  // namespace aimle::cli
