#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/app.h"
#include "cli/commands.h"
#include "experiments/gradient/study.h"
#include "experiments/run/atomic_file.h"
#include "experiments/run/failure.h"
#include "experiments/run/interrupt.h"
#include "experiments/run/progress.h"
#include "experiments/run/python.h"

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
  int64_t warmup = 1500;
  int64_t warmup_samples = 100;
  bool is_signed = false;
};

const std::vector<double> kLambdaGrid = {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 3, 5, 10, 20};

void add_synth_options(CLI::App& command, SynthOptions& options) {
  add_common_options(command, options.common, "out/synth_" + command.get_name());
  command.add_option("--n", options.sizes, "Sizes of the problems")
      ->delimiter(',')
      ->check(integer_between(2, 10'000))
      ->capture_default_str();
  command.add_option("--k", options.k, "Entries chosen, fewer than n")
      ->check(integer_between(1, 9'999))
      ->capture_default_str();
  command.add_option("--seeds", options.seeds, "Problems of each size, seeds 0, 1, ...")
      ->check(integer_between(1, 100'000))
      ->capture_default_str();
  command.add_option("--samples", options.samples, "Numbers of samples S")
      ->delimiter(',')
      ->check(integer_between(1, 10'000'000))
      ->capture_default_str();
  command.add_option("--lambdas", options.lambdas, "Steps of imle, imle_central and dbb")
      ->delimiter(',')
      ->check(number_between(1e-12, 1e12))
      ->capture_default_str();
  command
      .add_option("--estimators", options.estimators,
                  "Which take part, as name[:setting=value...]; all that apply if not given")
      ->delimiter(',');
  command
      .add_option("--warmup", options.warmup,
                  "Steps by which adaptive estimators warm up (the authors: 100)")
      ->check(integer_between(0, 1'000'000))
      ->capture_default_str();
  command.add_option("--warmup-samples", options.warmup_samples, "Samples of such a step")
      ->check(integer_between(1, 1'000'000))
      ->capture_default_str();
  command.add_flag("--signed", options.is_signed,
                   "b ~ N(0, I) as in the paper's text; the authors' code takes |b|");
}

void check_k(int64_t k, int64_t n) {
  if (k < n) return;
  throw Failure("expected --k below --n but got k=" + std::to_string(k) +
                ", n=" + std::to_string(n));
}

void check_sizes(const SynthOptions& options) {
  constexpr int64_t kMostEntries = 500'000'000;
  for (const int64_t n : options.sizes) {
    check_k(options.k, n);
    for (const int64_t samples : options.samples) {
      if (n * samples > kMostEntries) {
        throw Failure("expected --n times --samples up to 500000000 but got n=" +
                      std::to_string(n) + ", samples=" + std::to_string(samples));
      }
    }
  }
}

std::vector<Contestant> contestants(const SynthOptions& options, const SolverSpec& solver,
                                    const std::vector<std::string>& by_default) {
  const auto& named = options.estimators.empty() ? by_default : options.estimators;
  if (named.empty()) return all_contestants(solver, options.lambdas);
  std::vector<Contestant> result;
  for (const std::string& text : named) {
    Contestant contestant = parse_contestant(text);
    if (!contestant.applies_to(solver)) {
      throw Failure(contestant.label + " does not apply to " + solver.name);
    }
    const bool swept = estimator_info(contestant.name).takes("lambda") && !contestant.lambda();
    if (!swept) result.push_back(contestant);
    for (const double lambda : swept ? options.lambdas : std::vector<double>()) {
      result.push_back(contestant);
      result.back().options.lambda = lambda;
    }
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

/// Estimators that need many samples are shown at reference_samples, as in the paper.
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
          {"warmup", options.warmup},
          {"warmup_samples", options.warmup_samples},
          {"signed", options.is_signed}};
}

class StudyFolder {
 public:
  StudyFolder(std::filesystem::path folder, nlohmann::ordered_json about)
      : folder_(std::move(folder)), about_(std::move(about)), start_(Clock::now()) {}

  void save(const std::vector<Row>& rows, bool complete) {
    saved_ = Clock::now();
    write_atomically(folder_ / "results.jsonl", as_jsonl(rows));
    write_atomically(folder_ / "summary.csv", as_summary(rows));
    about_["complete"] = complete;
    about_["seconds"] = std::chrono::duration<double>(saved_ - start_).count();
    write_atomically(folder_ / "study.json", about_.dump(2) + "\n");
  }

  void save_now_and_then(const std::vector<Row>& rows) {
    if (Clock::now() - saved_ > std::chrono::seconds(3)) save(rows, false);
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::filesystem::path folder_;
  nlohmann::ordered_json about_;
  Clock::time_point start_;
  Clock::time_point saved_ = start_;
};

void run_and_report(const std::string& name, const SynthOptions& options, const Study& study) {
  if (study.cells.empty()) {
    throw Failure("nothing to measure: every estimator needs more samples than given");
  }
  const int64_t threads = apply(options.common);
  const std::filesystem::path& out = options.common.out;
  StudyFolder folder(
      out, {{"study", name}, {"version", AIMLE_VERSION}, {"settings", settings_of(options)}});
  const auto total = static_cast<int64_t>(study.cells.size() * study.sizes.size()) * study.seeds;

  const InterruptHandler handler;
  std::vector<Row> rows;
  {
    Progress progress("synth " + name, total);
    rows = run_study(
        study, threads, [&](const std::vector<Row>& so_far) { folder.save_now_and_then(so_far); },
        [&](const std::string& note) { progress.step(note); });
  }
  folder.save(rows, interrupt_signal() == 0);
  if (const int signal = interrupt_signal()) {
    throw Stopped(signal, "stopped; the " + std::to_string(rows.size()) + " of " +
                              std::to_string(total) + " measurements that were done are in " +
                              (out / "results.jsonl").string() + " and " +
                              (out / "summary.csv").string());
  }
  std::printf("%s\n%s\n", (out / "results.jsonl").c_str(), (out / "summary.csv").c_str());
  std::fflush(stdout);
  if (run_python_module("aimle.report.synth", {out.string()})) {
    std::printf("%s\n", (out / "report.html").c_str());
  } else {
    say("no figures; the numbers are complete without them");
  }
}

/// What the studies are about: the numbers of one problem, for anyone who wants to check them.
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
  command->add_option("--n", wanted->n)->check(integer_between(2, 10'000))->capture_default_str();
  command->add_option("--k", wanted->k)->check(integer_between(1, 9'999))->capture_default_str();
  command->add_option("--seed", wanted->seed)
      ->check(integer_between(0, 4'294'967'295))
      ->capture_default_str();
  command->add_flag("--signed", wanted->is_signed);
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
  if (build == &lambda_study) {
    command->add_option("--reference-samples", options->reference_samples, "S of ste and sfe")
        ->check(integer_between(1, 10'000'000))
        ->capture_default_str();
  }
  command->callback([=] { run_and_report(name, *options, build(*options)); });
}

}  // namespace

void add_synth(CLI::App& app) {
  CLI::App* synth =
      app.add_subcommand("synth", "The paper's study of gradients, on problems with a known one");
  synth->require_subcommand(1);
  add_study(*synth, "samples", "Cosine to the true gradient against the number of samples",
            {.sizes = {10, 20, 30, 50},
             .seeds = 32,
             .samples = {1, 10, 100, 1'000, 10'000, 100'000},
             .lambdas = {0.1, 1}},
            &samples_study);
  add_study(*synth, "lambda", "Cosine and zeros against lambda, and the one that AIMLE picks",
            {.sizes = {50}, .seeds = 128, .samples = {1, 1'000}, .lambdas = kLambdaGrid},
            &lambda_study);
  add_study(*synth, "sparsity", "Share of zeros in the gradient against lambda and samples",
            {.sizes = {50}, .seeds = 32, .samples = {1, 10, 100, 1'000}, .lambdas = kLambdaGrid},
            &sparsity_study);
  add_problem(*synth);
}

}  // namespace aimle::cli
