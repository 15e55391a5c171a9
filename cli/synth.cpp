#include "cli/app.h"
#include "cli/commands.h"

namespace aimle::cli {

void add_synth(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("synth", "The paper's study of gradients on synthetic problems");
  command->require_subcommand(1);
}

}  // namespace aimle::cli
