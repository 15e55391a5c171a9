// One file per command; this one combines them.
#include "cli/program.h"

#include <cstdio>
#include <string>
#include <string_view>

#include "cli/app.h"
#include "cli/commands.h"
#include "cli/messages.h"
#include "experiments/engine/processes.h"

namespace {

constexpr const char* kExamples =
    "  aimle train dvae                       train a model, no data needed\n"
    "  aimle watch runs                       follow the runs in a browser\n"
    "  aimle report runs                      draw a page of the results\n"
    "  aimle diagnose --structure topk --k 5  find an estimator for your problem\n"
    "  aimle synth samples --n 10 --seeds 4   compare gradients with the true one\n"
    "  aimle paper --quick                    reproduce the paper, much reduced\n";

/// What `aimle` without arguments prints.
int print_first_commands() {
  return std::printf(
             "aimle: gradients through discrete choices\n\n%s\n"
             "aimle --help lists all commands, aimle COMMAND --help the options of one.\n",
             kExamples) < 0;
}

/// Other commands would do the same work once in every process, and write to the same folder.
bool is_for_one_process(int argc, char** argv) {
  return aimle::experiments::processes().several() &&
         !(argc > 1 && std::string_view(argv[1]) == "train");
}

}  // namespace

int aimle_program_join(const char* group, int64_t on_this_machine, int64_t restarts) {
  try {
    aimle::experiments::join_processes(group, on_this_machine, restarts);
    return 0;
  } catch (const std::exception& error) {
    return aimle::cli::complain(aimle::cli::describe(error), 1);
  }
}

void aimle_program_leave() { aimle::experiments::leave_processes(); }

int aimle_program_main(int argc, char** argv) {
  if (is_for_one_process(argc, argv)) {
    return aimle::cli::complain("torchrun starts several processes for `train` alone",
                                aimle::cli::kUsage);
  }
  if (argc <= 1) return print_first_commands();
  if (const int failed = aimle::cli::load_libraries(argc, argv)) return failed;
  CLI::App app("Gradients through discrete choices: studies, diagnosis, training", "aimle");
  aimle::cli::set_up(app);
  aimle::cli::add_train(app);
  aimle::cli::add_watch(app);
  aimle::cli::add_list(app);
  aimle::cli::add_report(app);
  aimle::cli::add_data(app);
  aimle::cli::add_diagnose(app);
  aimle::cli::add_synth(app);
  aimle::cli::add_paper(app);
  aimle::cli::add_benchmark(app);
  aimle::cli::add_completion(app);
  // After the commands, which would otherwise inherit it.
  app.footer(std::string("Examples:\n") + kExamples +
             "\nSee aimle COMMAND --help. Options may be written with - or _.");
  return aimle::cli::run(app, argc, argv);
}
