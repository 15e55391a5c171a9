// The program `aimle`: one file per command; this one brings them together.
#include "cli/app.h"
#include "cli/commands.h"

int main(int argc, char** argv) {
  CLI::App app("Gradients through discrete choices: studies, diagnosis, training", "aimle");
  aimle::cli::set_up(app);
  aimle::cli::add_synth(app);
  aimle::cli::add_diagnose(app);
  aimle::cli::add_train(app);
  aimle::cli::add_list(app);
  aimle::cli::add_report(app);
  aimle::cli::add_data(app);
  aimle::cli::add_paper(app);
  return aimle::cli::run(app, argc, argv);
}
