// The program `aimle` as a library: the executable calls it, and so does Python where torchrun has
// started several processes (python/aimle/program/distributed.py).
#pragma once

#include <cstdint>

extern "C" {

/// What `main` does, but standard output stays open. Returns the exit code.
int aimle_program_main(int argc, char** argv);

/// Before it: the processes of this process group, as PyTorch knows it by name, train together. 0,
/// or an exit code after a line on standard error.
int aimle_program_join(const char* group, int64_t on_this_machine, int64_t restarts);
void aimle_program_leave();
}
