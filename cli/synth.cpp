#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/app.h"
#include "cli/commands.h"
#include "cli/study_folder.h"
#include "experiments/data/file_error.h"
#include "experiments/engine/estimator_options.h"
#include "experiments/gradient/study.h"
#include "experiments/gradient/training.h"
#include "experiments/process/failure.h"
#include "experiments/process/interrupt.h"
#include "experiments/process/progress.h"

namespace aimle::cli {
namespace {

using namespace experiments;  // NOLINT(google-build-using-namespace): this file is all about them

struct SynthOptions {
  CommonOptions common;
  std::vector<int64_t> sizes;
  int64_t k = 1;
  int64_t seeds = 32;
  std::vector<int64_t> samples;
  int64_t reference_samples = 100'000;
  std::vector<double> lambdas;
  std::vector<std::string> estimators;
  std::string preset;
  int64_t warmup = 1500;
  int64_t warmup_samples = 100;
  bool is_signed = false;
};

struct OptimiseOptions {
  int64_t steps = 100;
  double momentum = 0.9;
  std::vector<double> learning_rates = {0.1, 0.3, 1, 3};
};

const std::vector<double> kLambdaGrid = {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 3, 5, 10, 20};

void add_synth_options(CLI::App& command, SynthOptions& options) {
  add_common_options(command, options.common, "out/synth_" + command.get_name());
  add_number(command, "--n", options.sizes, "Sizes of the problems", 2, 10'000);
  add_number(command, "--k", options.k, "Entries chosen, fewer than n", 1, 9'999);
  add_number(command, "--seeds", options.seeds, "Instances of each size, with seeds 0, 1, ...", 1,
             100'000);
  add_number(command, "--samples", options.samples, "Numbers of samples S", 1, 10'000'000);
  add_number(command, "--lambdas", options.lambdas, "Steps of imle, imle_central and dbb", 1e-12,
             1e12);
  command
      .add_option("--estimators", options.estimators,
                  "Estimators, as name[:setting=value...]; default: all that apply")
      ->delimiter(',')
      ->check(taken_by(parse_contestant));
  command
      .add_option("--preset", options.preset,
                  "paper: Algorithm 1 as printed for every adaptive estimator, unless "
                  "--estimators or the estimator's name overrides it")
      ->check(one_of("preset", {"paper"}));
  command.add_flag("--signed", options.is_signed,
                   "b ~ N(0, I) as in the paper's text; the authors' code uses |b|");
  add_resume_option(command, options.common, "Continue the study in the folder");
}

void add_warmup_options(CLI::App& command, SynthOptions& options) {
  add_number(command, "--warmup", options.warmup,
             "Warm-up steps of adaptive estimators (the authors: 100)", 0, 1'000'000);
  add_number(command, "--warmup_samples", options.warmup_samples, "Samples of a warm-up step", 1,
             1'000'000);
}

template <class T>
void remove_repeated(std::vector<T>& values) {
  std::vector<T> kept;
  for (const T& value : values) {
    if (std::find(kept.begin(), kept.end(), value) == kept.end()) kept.push_back(value);
  }
  values = std::move(kept);
}

void remove_repeated(SynthOptions& options) {
  remove_repeated(options.sizes);
  remove_repeated(options.samples);
  remove_repeated(options.lambdas);
}

void check_k(int64_t k, int64_t n) {
  if (k < n) return;
  throw Misuse("expected --k below --n but got k=" + std::to_string(k) +
               ", n=" + std::to_string(n));
}

void check_sizes(const SynthOptions& options) {
  constexpr int64_t kMostEntries = 500'000'000;
  for (const int64_t n : options.sizes) {
    check_k(options.k, n);
    for (const int64_t samples : options.samples) {
      if (n * samples > kMostEntries) {
        throw Misuse("expected --n times --samples up to 500000000 but got n=" + std::to_string(n) +
                     ", samples=" + std::to_string(samples));
      }
    }
  }
}

std::vector<Contestant> named_contestants(const SynthOptions& options, const SolverSpec& solver,
                                          const std::vector<std::string>& by_default) {
  const auto& named = options.estimators.empty() ? by_default : options.estimators;
  if (named.empty()) return all_contestants(solver, options.lambdas);
  std::vector<Contestant> result;
  const auto add = [&](const Contestant& contestant) {
    const bool there = std::any_of(result.begin(), result.end(), [&](const Contestant& other) {
      return other.label == contestant.label && other.lambda() == contestant.lambda();
    });
    if (!there) result.push_back(contestant);
  };
  for (const std::string& text : named) {
    Contestant contestant = parse_contestant(text);
    if (!contestant.applies_to(solver)) {
      throw Misuse(contestant.label + " does not apply to " + solver.name());
    }
    const bool swept = estimator_info(contestant.name).takes("lambda") && !contestant.lambda();
    if (!swept) add(contestant);
    for (const double lambda : swept ? options.lambdas : std::vector<double>()) {
      contestant.options.lambda = lambda;
      add(contestant);
    }
  }
  return result;
}

std::vector<Contestant> contestants(const SynthOptions& options, const SolverSpec& solver,
                                    const std::vector<std::string>& by_default) {
  std::vector<Contestant> result = named_contestants(options, solver, by_default);
  if (options.preset == "paper") {
    for (Contestant& contestant : result) use_paper_target(contestant.name, contestant.options);
  }
  return result;
}

void add_cells(Study& study, const std::vector<Contestant>& contestants,
               const std::vector<int64_t>& samples) {
  for (const Contestant& contestant : contestants) {
    for (const int64_t count : samples) {
      if (count >= contestant.least_samples()) study.cells.push_back({contestant, count});
    }
  }
}

Study common_study(const SynthOptions& options) {
  check_sizes(options);
  return {.sizes = options.sizes,
          .k = options.k,
          .seeds = options.seeds,
          .is_signed = options.is_signed,
          .warmup = options.warmup,
          .warmup_samples = options.warmup_samples};
}

SolverSpec structure(const SynthOptions& options) {
  return options.k == 1 ? argmax() : topk(options.k);
}

Study samples_study(const SynthOptions& options) {
  Study study = common_study(options);
  add_cells(study, contestants(options, structure(options), {}), options.samples);
  return study;
}

/// Estimators that need many samples use reference_samples, as in the paper.
Study lambda_study(const SynthOptions& options) {
  Study study = common_study(options);
  const std::vector<std::string> known = {"imle", "imle_central", "aimle", "aimle_forward"};
  add_cells(study, contestants(options, structure(options), known), options.samples);
  if (options.estimators.empty()) {
    for (const char* name : {"ste", "sfe"}) {
      study.cells.push_back({parse_contestant(name), options.reference_samples});
    }
  }
  return study;
}

Study sparsity_study(const SynthOptions& options) {
  Study study = common_study(options);
  const std::vector<std::string> known = {"imle",        "imle_central", "aimle", "aimle_forward",
                                          "aimle_noise", "thresholds",   "ste",   "sfe"};
  add_cells(study, contestants(options, structure(options), known), options.samples);
  return study;
}

nlohmann::ordered_json settings_of(const SynthOptions& options) {
  return {{"n", options.sizes},
          {"k", options.k},
          {"seeds", options.seeds},
          {"samples", options.samples},
          {"reference_samples", options.reference_samples},
          {"lambdas", options.lambdas},
          {"estimators", options.estimators},
          {"preset", options.preset},
          {"warmup", options.warmup},
          {"warmup_samples", options.warmup_samples},
          {"signed", options.is_signed}};
}

template <class Row>
std::vector<Row> earlier_rows(StudyFolder& folder, bool resume,
                              Row (*read)(const nlohmann::json&)) {
  std::vector<Row> rows;
  if (!resume) return rows;
  for (const nlohmann::json& line : folder.resume()) {
    try {
      rows.push_back(read(line));
    } catch (const std::exception&) {
      data::fail_line(folder.results(), std::ssize(rows) + 1,
                      "expected a measurement of this study: remove the line to make it again");
    }
  }
  return rows;
}

void run_and_report(const std::string& name, const SynthOptions& options, const Study& study) {
  if (study.cells.empty()) {
    throw Misuse("nothing to measure: every estimator needs more samples than given");
  }
  const auto [threads, lock] = apply(options.common);
  StudyFolder folder(options.common.out, name, settings_of(options));
  const std::vector<Row> earlier = earlier_rows(folder, options.common.resume, &read_row);
  const int64_t total = count_measurements(study);
  const auto save = [&](const std::vector<Row>& rows, bool complete) {
    folder.save({{"results.jsonl", as_jsonl(rows)}, {"summary.csv", as_summary(rows)}}, complete);
  };

  const InterruptHandler handler;
  handler.set_late_message(folder.late_message());
  std::vector<Row> rows;
  {
    Progress progress("synth " + name, total - static_cast<int64_t>(earlier.size()));
    rows = run_study(
        study, threads, earlier,
        [&](const std::vector<Row>& so_far) {
          if (folder.is_due() || interrupt_signal() != 0) save(so_far, false);
        },
        [&](const std::string& note) { progress.step(note); });
  }
  save(rows, interrupt_signal() == 0);
  folder.finish(static_cast<int64_t>(rows.size()), total);
}

void optimise(const SynthOptions& options, const OptimiseOptions& own) {
  if (options.sizes.size() != 1) throw Misuse("synth optimise takes one --n");
  check_sizes(options);
  const TrainingStudy study{.n = options.sizes[0],
                            .k = options.k,
                            .seeds = options.seeds,
                            .is_signed = options.is_signed,
                            .steps = own.steps,
                            .momentum = own.momentum,
                            .learning_rates = own.learning_rates,
                            .samples = options.samples,
                            .contestants = contestants(options, structure(options), {})};
  const auto [threads, lock] = apply(options.common);
  nlohmann::ordered_json settings = settings_of(options);
  settings["steps"] = own.steps;
  settings["momentum"] = own.momentum;
  settings["learning_rates"] = own.learning_rates;
  StudyFolder folder(options.common.out, "optimise", std::move(settings));
  const auto earlier = earlier_rows(folder, options.common.resume, &read_training_row);
  const int64_t total = count_descents(study);
  const auto save = [&](const std::vector<TrainingRow>& rows, bool complete) {
    folder.save({{"results.jsonl", as_jsonl(study, rows)},
                 {"summary.csv", as_summary(study, rows)},
                 {"training.csv", as_training_table(study, rows)}},
                complete);
  };

  const InterruptHandler handler;
  handler.set_late_message(folder.late_message());
  std::vector<TrainingRow> rows;
  {
    Progress progress("synth optimise", total - static_cast<int64_t>(earlier.size()));
    rows = run_training(
        study, threads, earlier,
        [&](const std::string& note, const auto& so_far) {
          progress.step(note);
          if (folder.is_due()) save(so_far(), false);
        },
        [&](const std::vector<TrainingRow>& so_far) { save(so_far, false); });
  }
  save(rows, interrupt_signal() == 0);
  folder.finish(static_cast<int64_t>(rows.size()), total);
}

/// Prints the numbers of one problem of the studies, so that they can be checked.
void add_problem(CLI::App& synth) {
  struct Wanted {
    int64_t n = 10;
    int64_t k = 1;
    int64_t seed = 0;
    bool is_signed = false;
  };
  auto wanted = std::make_shared<Wanted>();
  CLI::App* command =
      synth.add_subcommand("problem", "Prints theta, b and the true gradient of a seed as JSON");
  add_number(*command, "--n", wanted->n, "Entries of theta", 2, 10'000);
  add_number(*command, "--k", wanted->k, "Entries chosen, fewer than n", 1, 9'999);
  add_number(*command, "--seed", wanted->seed, "Seed of NumPy's RandomState", 0, 4'294'967'295);
  command->add_flag("--signed", wanted->is_signed,
                    "b ~ N(0, I) as in the paper's text; the authors' code uses |b|");
  command->callback([=] {
    check_k(wanted->k, wanted->n);
    const Problem problem = synthetic_problem(
        wanted->n, wanted->k, static_cast<uint32_t>(wanted->seed), wanted->is_signed);
    const auto numbers = [](const at::Tensor& tensor) {
      const at::Tensor flat = tensor.to(at::kDouble).flatten().contiguous();
      return std::vector<double>(flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
    };
    const nlohmann::ordered_json json = {{"theta", numbers(problem.theta)},
                                         {"b", numbers(problem.target)},
                                         {"true_gradient", numbers(problem.true_gradient)}};
    std::printf("%s\n", json.dump().c_str());
  });
}

void add_study(CLI::App& synth, const std::string& name, const std::string& about,
               SynthOptions defaults, Study (*build)(const SynthOptions&)) {
  CLI::App* command = synth.add_subcommand(name, about);
  auto options = std::make_shared<SynthOptions>(std::move(defaults));
  add_synth_options(*command, *options);
  add_warmup_options(*command, *options);
  if (build == &lambda_study) {
    add_number(*command, "--reference_samples", options->reference_samples, "S of ste and sfe", 1,
               10'000'000);
  }
  command->callback([=] {
    remove_repeated(*options);
    run_and_report(name, *options, build(*options));
  });
}

void add_optimise(CLI::App& synth) {
  CLI::App* command = synth.add_subcommand(
      "optimise", "Runs gradient descent to the best structure with each estimator");
  auto options = std::make_shared<SynthOptions>(
      SynthOptions{.sizes = {10}, .k = 5, .seeds = 32, .samples = {10}, .lambdas = {0.1, 0.5, 2}});
  auto own = std::make_shared<OptimiseOptions>();
  add_synth_options(*command, *options);
  add_number(*command, "--steps", own->steps, "Steps of gradient descent", 1, 100'000);
  add_number(*command, "--momentum", own->momentum, "Momentum of gradient descent", 0, 0.9999);
  add_number(*command, "--learning_rates", own->learning_rates, "All are tried; the best is shown",
             1e-9, 1e3);
  command->callback([=] {
    remove_repeated(*options);
    remove_repeated(own->learning_rates);
    optimise(*options, *own);
  });
}

}  // namespace

void add_synth(CLI::App& app) {
  CLI::App* synth =
      app.add_subcommand("synth", "The paper's gradient study, on problems with a known gradient");
  synth->require_subcommand(1);
  add_study(*synth, "samples", "Cosine to the true gradient by number of samples",
            {.sizes = {10, 20, 30, 50},
             .seeds = 32,
             .samples = {1, 10, 100, 1'000, 10'000, 100'000},
             .lambdas = {0.1, 1}},
            &samples_study);
  add_study(*synth, "lambda", "Cosine and zeros by lambda, and the lambda that AIMLE chooses",
            {.sizes = {50}, .seeds = 128, .samples = {1, 1'000}, .lambdas = kLambdaGrid},
            &lambda_study);
  add_study(*synth, "sparsity", "Share of zeros in the gradient by lambda and samples",
            {.sizes = {50}, .seeds = 32, .samples = {1, 10, 100, 1'000}, .lambdas = kLambdaGrid},
            &sparsity_study);
  add_optimise(*synth);
  add_problem(*synth);
}

}  // namespace aimle::cli
