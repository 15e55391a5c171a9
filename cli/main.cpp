// The program `aimle`: one file per command; this one combines them.
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
  // After the commands, which would otherwise inherit it.
  app.footer(
      "Examples:\n"
      "  aimle synth samples --n 10 --seeds 4   compare gradients with the true one\n"
      "  aimle train dvae                       train a model, no data needed\n"
      "  aimle report runs                      draw a page of the results\n"
      "  aimle diagnose --structure topk --k 5  find an estimator for top-5\n\n"
      "See aimle COMMAND --help. Options may be written with - or _.");
  return aimle::cli::run(app, argc, argv);
}
