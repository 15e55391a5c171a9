// Which branches an input has reached, so that inputs that reach new ones are kept and changed
// further. The compiler calls __sanitizer_cov_trace_pc at every branch of what is built with
// -fsanitize-coverage=trace-pc; elsewhere nothing is ever new.
#pragma once

namespace aimle::fuzz {

void forget_branches();

/// Whether the last input reached a branch, or reached it more often, than any before.
bool reached_new_branches();

/// How many pairs of branches were reached in all.
int reached_in_all();

}  // namespace aimle::fuzz
