// The program's last line: what went wrong, in its own words.
#pragma once

#include <exception>
#include <string>

namespace aimle::cli {

/// The message without names of functions, on one line, with overlong words cut.
std::string own_words(const std::string& message);

/// What to say of an exception of a library or of the system, without the library's text.
std::string describe(const std::exception& error);

/// `aimle: MESSAGE` on standard error, over a progress bar; returns the code.
int complain(const std::string& message, int code);

/// Flushes and closes standard output. The code, or an error, with one line on standard error, if
/// what was printed could not be written; no line if the reader of a pipe has closed it.
int close_output(int code);

}  // namespace aimle::cli
