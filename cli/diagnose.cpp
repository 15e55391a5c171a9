#include <ATen/Functions.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "aimle/base/join.h"
#include "aimle/base/shown_value.h"
#include "cli/app.h"
#include "cli/commands.h"
#include "experiments/data/number_table.h"
#include "experiments/data/numpy_random_state.h"
#include "experiments/gradient/diagnose.h"
#include "experiments/gradient/fields.h"
#include "experiments/process/atomic_file.h"
#include "experiments/process/bytes_in_json.h"
#include "experiments/process/failure.h"
#include "experiments/process/interrupt.h"
#include "experiments/process/progress.h"
#include "experiments/process/python.h"

namespace aimle::cli {
namespace {

using namespace experiments;  // NOLINT(google-build-using-namespace): this file is all about them

struct DiagnoseOptions {
  CommonOptions common;
  std::string structure = "argmax";
  std::vector<std::string> libraries;
  std::map<std::string, std::string> settings_of_solver;  // those given as options
  std::filesystem::path theta;
  std::filesystem::path target;
  std::filesystem::path gradients;
  int64_t n = 20;
  int64_t seed = 0;
  int64_t long_run = 200'000;
  std::vector<std::string> estimators;
  DiagnoseSettings settings;
};

at::Tensor as_tensor(const data::NumberTable& array) {
  return at::tensor(array.values, at::kDouble).to(at::kFloat).view({array.rows, array.columns});
}

constexpr const char* kDefaultK = "3";

/// The solver that --structure and the options of its settings name.
SolverSpec solver_of(const DiagnoseOptions& options) {
  const std::string name = options.structure.substr(0, options.structure.find(':'));
  const SolverKind& kind = solver_kind(name);
  const auto takes = [&](const std::string& setting) {
    return std::any_of(kind.settings.begin(), kind.settings.end(),
                       [&](const SolverSetting& known) { return known.name == setting; });
  };
  std::string text = options.structure;
  const auto add = [&](const std::string& setting, const std::string& value) {
    text += (text.find(':') == std::string::npos ? ":" : ",") + setting + "=" + value;
  };
  for (const auto& [setting, value] : options.settings_of_solver) {
    if (value.empty()) continue;
    if (!takes(setting)) throw Misuse("--" + setting + " is no setting of " + name);
    add(setting, value);
  }
  const auto given = [&](const std::string& setting) {
    return text.find(":" + setting + "=") != std::string::npos ||
           text.find("," + setting + "=") != std::string::npos;
  };
  if (kind.takes_k && takes("k") && !given("k")) add("k", kDefaultK);
  if (options.theta.empty() && takes("n") && !given("n")) add("n", std::to_string(options.n));
  try {
    return parse_solver(text);
  } catch (const std::invalid_argument& error) {
    throw Misuse(error.what());
  }
}

/// [*instance]: of the file, or random.
at::Tensor theta_of(const DiagnoseOptions& options, const SolverSpec& solver, RandomState& random) {
  if (options.theta.empty()) {
    const std::vector<int64_t> shape = solver.shape_for(options.n);
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    if (count > 1'000'000) throw Misuse("expected theta of up to a million entries");
    const at::Tensor theta = at::tensor(random.randn(count), at::kDouble).to(at::kFloat);
    return (solver.has_costs() ? theta.abs() : theta).view(shape);
  }
  const at::Tensor theta = as_tensor(data::read_number_table(options.theta, "theta"));
  if (solver.instance_dims() == 2) return theta;
  if (solver.instance_dims() > 2) return theta.reshape(solver.shape_for(options.n));
  if (theta.size(0) != 1 && theta.size(1) != 1) {
    throw Failure("expected one row of numbers in " + options.theta.string() + " but it has " +
                  std::to_string(theta.size(0)));
  }
  return theta.flatten();
}

/// Refuses theta of which the solver has no instance, or but one structure.
void check_fits(const SolverSpec& solver, const at::Tensor& theta) {
  if (theta.numel() < 2) throw Failure("expected theta of at least two entries");
  try {
    const int64_t chosen = solver.fit(theta.sizes()).solution_size().ones;
    if (chosen >= theta.numel()) {
      throw Failure("expected --k below the " + std::to_string(theta.numel()) +
                    " entries of theta but got " + std::to_string(chosen));
    }
  } catch (const std::invalid_argument& error) {
    throw Failure(error.what());
  }
}

Problem problem_of(const DiagnoseOptions& options) {
  RandomState random(static_cast<uint32_t>(options.seed));
  const SolverSpec solver = solver_of(options);
  const at::Tensor theta = theta_of(options, solver, random).div(options.settings.temperature);
  check_fits(solver, theta);
  Problem problem{.solver = solver, .theta = theta.unsqueeze(0)};
  const auto fits = [&](const at::Tensor& given, const std::filesystem::path& path) {
    if (given.size(-1) * (theta.dim() > 1 && given.dim() > 1 ? given.size(0) : 1) !=
            theta.numel() &&
        given.size(-1) != theta.numel()) {
      throw Failure("expected " + std::to_string(theta.numel()) + " numbers a row in " +
                    path.string() + ", as many as theta has, but got " +
                    std::to_string(given.size(-1)));
    }
  };
  if (!options.gradients.empty()) {
    const at::Tensor rows = as_tensor(data::read_number_table(options.gradients, "dy"));
    if (rows.size(1) != theta.numel()) fits(rows.select(0, 0), options.gradients);
    std::vector<int64_t> sizes = theta.sizes().vec();
    sizes.insert(sizes.begin(), rows.size(0));
    problem.coefficients = rows.view(sizes);
  } else if (!options.target.empty()) {
    const at::Tensor b = as_tensor(data::read_number_table(options.target, "b"));
    fits(b, options.target);
    if (b.numel() != theta.numel()) throw Failure("expected one b in " + options.target.string());
    problem.target = b.reshape(theta.sizes());
  } else {
    problem.target = at::tensor(random.randn(theta.numel()), at::kDouble)
                         .to(at::kFloat)
                         .abs()
                         .view(theta.sizes());
  }
  return problem;
}

nlohmann::ordered_json json_of(const Diagnosis& found) {
  return {{"estimator", found.estimator},
          {"lambda", json_number(found.lambda)},
          {"fixed_lambda", found.fixed_lambda},
          {"samples", found.samples},
          {"cosine", json_number(found.cosine)},
          {"cosine_se", json_number(found.cosine_error)},
          {"norm_ratio", json_number(found.norm_ratio)},
          {"bias", json_number(found.bias)},
          {"variance", json_number(found.variance)},
          {"zeros", json_number(found.zeros)},
          {"alpha", json_number(found.alpha)},
          {"microseconds", json_number(found.microseconds)},
          {"clipped", json_number(found.clipped)}};
}

nlohmann::ordered_json document(const DiagnoseOptions& options, const Problem& problem,
                                const Truth& truth, const std::vector<Diagnosis>& found,
                                const std::vector<Recommendation>& advice) {
  nlohmann::ordered_json json = {
      {"version", AIMLE_VERSION},
      {"structure", problem.solver.name()},
      {"solver", problem.solver.text()},
      {"shape", problem.theta.sizes().slice(1).vec()},
      {"k", problem.solver.kind()->takes_k
                ? nlohmann::ordered_json(
                      problem.solver.fit(problem.theta.sizes().slice(1)).solution_size().ones)
                : nullptr},
      {"theta", options.theta.empty() ? "random" : to_json_text(options.theta.string())},
      {"loss", problem.target.defined() ? "|z - b|^2" : "<dy, z>"},
      {"truth", truth.exact ? "exact" : "long run of the perturbation model"},
      {"truth_relative_se", truth.relative_error},
      {"repeats", options.settings.repeats},
      {"warmup", options.settings.warmup},
      {"temperature", options.settings.temperature},
      {"complete", interrupt_signal() == 0}};
  for (const Diagnosis& one : found) json["results"].push_back(json_of(one));
  for (const Recommendation& one : advice) {
    json["recommendations"].push_back({{"samples", one.samples},
                                       {"estimator", one.estimator},
                                       {"lambda", json_number(one.lambda)},
                                       {"reason", one.reason}});
  }
  return json;
}

void run_diagnosis(DiagnoseOptions& options) {
  Problem problem = problem_of(options);
  options.settings.seed = static_cast<uint64_t>(options.seed);
  for (const std::string& text : options.estimators) {
    Contestant contestant = parse_contestant(text);
    if (!contestant.applies_to(problem.solver)) {
      throw Misuse(contestant.label + " does not apply to " + problem.solver.name());
    }
    contestant.build(problem.solver, contestant.least_samples());  // refuses what does not fit
    const bool own_noise = estimator_info(contestant.name).takes("noise");
    if (own_noise &&
        (contestant.options.temperature || contestant.options.theta_noise_temperature)) {
      throw Misuse("'" + shown_value(text) +
                   "': give the temperature of the noise as --temperature, since the "
                   "truth is of one temperature");
    }
    const bool swept = estimator_info(contestant.name).takes("lambda") && !contestant.lambda();
    for (const double lambda : swept ? options.settings.lambdas : std::vector<double>{1.0}) {
      if (swept) contestant.options.lambda = lambda;
      options.settings.contestants.push_back(contestant);
    }
  }
  const auto [threads, lock] = apply(options.common);
  const InterruptHandler handler;
  handler.set_late_message(
      "stopped before the measurements under way were done; nothing was written");
  const Truth truth = find_truth(problem, options.long_run, options.settings.seed);
  std::vector<Diagnosis> found;
  {
    Progress progress("diagnose", count_diagnoses(problem, options.settings));
    found = diagnose(problem, options.settings, threads,
                     [&](const std::string& note) { progress.step(note); });
  }
  const std::vector<Recommendation> advice = recommend(found);
  const std::filesystem::path file = options.common.out / "diagnosis.json";
  write_atomically(file, document(options, problem, truth, found, advice).dump(1) + "\n");
  if (const int signal = interrupt_signal()) {
    throw Stopped(signal, "stopped; what was done is in " + file.string());
  }
  std::printf("%s\n", as_table(found).c_str());
  if (!truth.exact) {
    std::printf("The truth is a long run of the perturbation model, known to %.1f %%\n",
                100 * truth.relative_error);
  }
  for (const Recommendation& one : advice) {
    std::printf("S = %lld: %s%s (%s)\n", static_cast<long long>(one.samples), one.estimator.c_str(),
                std::isfinite(one.lambda) ? (":lambda=" + csv_number(one.lambda)).c_str() : "",
                one.reason.c_str());
  }
  std::printf("\n%s\n", file.c_str());
  std::fflush(stdout);
  if (run_python_module("aimle.program.report.diagnose", {options.common.out.string()})) {
    std::printf("%s\n", (options.common.out / "report.html").c_str());
  } else {
    warn("no figures were drawn; the numbers are complete without them");
  }
}

/// An option for every setting of every solver; `n` is there already.
void add_settings_of_solvers(CLI::App& command, DiagnoseOptions& options) {
  std::map<std::string, std::string> help;
  for (const std::string& name : solver_names()) {
    for (const SolverSetting& setting : solver_kind(name).settings) {
      if (setting.name == "n") continue;
      std::string& text = help[setting.name];
      text += (text.empty() ? "" : "; ") + name + ": " + setting.meaning + " (" +
              setting.default_value.value_or(setting.name == "k" ? kDefaultK : "required") + ")";
    }
  }
  for (const auto& [name, text] : help) {
    command.add_option("--" + name, options.settings_of_solver[name], text);
  }
}

}  // namespace

void add_diagnose(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "diagnose", "Which estimator suits these scores, this structure, this loss?");
  auto options = std::make_shared<DiagnoseOptions>();
  add_common_options(*command, options->common, "out/diagnose");
  command
      ->add_option("--structure", options->structure,
                   "What is chosen: " + join(solver_names()) + "; also name:setting=value,...")
      ->check(
          taken_by([](const std::string& text) { solver_kind(text.substr(0, text.find(':'))); }))
      ->capture_default_str();
  command->add_option("--library", options->libraries,
                      "A library with solvers of your own, loaded before anything else");
  add_settings_of_solvers(*command, *options);
  command->add_option(
      "--theta", options->theta,
      "Scores, .npy, .npz or .csv (a grid: costs, two-dimensional); random if not given");
  command
      ->add_option("--n", options->n, "Random theta: entries, vertices of a tree, side of a grid")
      ->check(integer_between(2, 100'000))
      ->capture_default_str();
  CLI::Option* b = command->add_option(
      "--b", options->target,
      "Target b of the loss |z - b|^2, .npy, .npz or .csv; random if not given");
  command
      ->add_option("--dy", options->gradients,
                   "Instead of b: recorded gradients of a loss, a row each, .npy, .npz or .csv")
      ->excludes(b);
  command
      ->add_option("--temperature", options->settings.temperature,
                   "Scale of the noise, in all estimators and in the truth")
      ->check(number_between(1e-6, 1e6))
      ->capture_default_str();
  command->add_option("--samples", options->settings.samples, "Numbers of samples S")
      ->delimiter(',')
      ->check(integer_between(1, 100'000))
      ->capture_default_str();
  command->add_option("--lambdas", options->settings.lambdas, "Steps of imle, imle_central and dbb")
      ->delimiter(',')
      ->check(number_between(1e-12, 1e12))
      ->capture_default_str();
  command
      ->add_option("--estimators", options->estimators,
                   "Which, as name[:setting=value...]; all that apply if not given")
      ->delimiter(',')
      ->check(taken_by(parse_contestant));
  command->add_option("--repeats", options->settings.repeats, "Estimates of each kind")
      ->check(integer_between(2, 100'000))
      ->capture_default_str();
  command
      ->add_option("--warmup", options->settings.warmup,
                   "Steps by which adaptive estimators warm up")
      ->check(integer_between(0, 1'000'000))
      ->capture_default_str();
  command->add_option("--long_run", options->long_run, "Samples of the truth where none is exact")
      ->check(integer_between(100, 100'000'000))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Of everything random")
      ->check(integer_between(0, 4'294'967'295))
      ->capture_default_str();
  command->callback([=] { run_diagnosis(*options); });
}

}  // namespace aimle::cli
