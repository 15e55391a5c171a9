// Fits text into a terminal. Text is UTF-8; every character counts as one column.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace aimle::experiments {

/// Whether lines on this file descriptor can be overwritten: a terminal that is not dumb.
bool is_live_terminal(int descriptor);

/// Columns of the terminal at this file descriptor, queried at every call; without a terminal,
/// $COLUMNS if it is a number, otherwise 80.
size_t terminal_columns(int descriptor);

/// The same for text that is printed once, such as help: $COLUMNS overrides the terminal.
size_t page_columns(int descriptor);

size_t columns_of(std::string_view text);

/// The text if it fits, otherwise its beginning and "…".
std::string cut_to(std::string_view text, size_t columns);

/// Breaks lines at spaces so that each fits, and indents all but the first by `indent` spaces. The
/// indent counts, as do the `used` columns before the first line. A longer word gets its own line.
std::string wrap(std::string_view text, size_t columns, size_t indent = 0, size_t used = 0);

}  // namespace aimle::experiments
