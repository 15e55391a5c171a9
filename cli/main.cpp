// The program `aimle`: one file per command; this one brings them together.
#include "cli/app.h"
#include "cli/commands.h"

int main(int argc, char** argv) {
  if (const int failed = aimle::cli::load_libraries(argc, argv)) return failed;
  CLI::App app("Gradients through discrete choices: studies, diagnosis, training", "aimle");
  aimle::cli::set_up(app);
  aimle::cli::add_synth(app);
  aimle::cli::add_diagnose(app);
  aimle::cli::add_train(app);
  aimle::cli::add_list(app);
  aimle::cli::add_report(app);
  aimle::cli::add_data(app);
  aimle::cli::add_paper(app);
  aimle::cli::add_benchmark(app);
  aimle::cli::add_completion(app);
  // After the commands, which would take it over.
  app.footer(
      "Examples:\n"
      "  aimle synth samples --n 10 --seeds 4   how good is each gradient?\n"
      "  aimle train dvae                       train, no data needed\n"
      "  aimle report runs                      a page of what was trained\n"
      "  aimle diagnose --structure topk --k 5  which estimator for top-5?\n\n"
      "aimle COMMAND --help says more. Options may be written with - or _.");
  return aimle::cli::run(app, argc, argv);
}
