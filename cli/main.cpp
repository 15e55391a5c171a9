#include "cli/messages.h"
#include "cli/program.h"

int main(int argc, char** argv) { return aimle::cli::close_output(aimle_program_main(argc, argv)); }
