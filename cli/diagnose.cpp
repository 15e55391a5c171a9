#include <ATen/Functions.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "aimle/base/join.h"
#include "aimle/base/numbers.h"
#include "aimle/base/shown_value.h"
#include "cli/app.h"
#include "cli/commands.h"
#include "experiments/data/number_table.h"
#include "experiments/data/numpy_random_state.h"
#include "experiments/gradient/contestant.h"
#include "experiments/process/bytes_in_json.h"
#include "experiments/process/failure.h"
#include "experiments/process/interrupt.h"
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
  std::filesystem::path data_file;
  std::vector<int64_t> data;  // the contents of that file
  int64_t n = 20;
  bool is_n_given = false;
  int64_t seed = 0;
  int64_t long_run = 200'000;
  int64_t repeats = 50;
  int64_t warmup = 1000;
  std::vector<int64_t> samples = {1, 10, 100};
  std::vector<double> lambdas = {0.03, 0.1, 0.3, 1, 3, 10};
  std::optional<double> temperature;
  std::vector<std::string> estimators;
};

struct DiagnosedProblem {
  SolverSpec solver;
  at::Tensor theta;  // [*instance], float32
  at::Tensor b;      // of the loss |z - b|^2, like theta, or
  at::Tensor dy;     // [rows, *instance]
};

/// [rows, columns] of a file, float32; `name` is the name of the array in an archive.
at::Tensor read_tensor(const std::filesystem::path& path, const std::string& name) {
  const data::NumberTable table = data::read_number_table(path, name);
  const at::Tensor tensor = at::tensor(table.values, at::kDouble).to(at::kFloat);
  if (!tensor.isfinite().all().item<bool>()) {
    throw Failure("expected numbers within the range of float32 in " + path.string());
  }
  return tensor.view({table.rows, table.columns});
}

constexpr const char* kDefaultK = "3";

/// The solver named by --structure and the options of its settings.
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
    if (!takes(setting)) throw Misuse("--" + setting + " is not a setting of " + name);
    add(setting, value);
  }
  const auto given = [&](const std::string& setting) {
    return text.find(":" + setting + "=") != std::string::npos ||
           text.find("," + setting + "=") != std::string::npos;
  };
  if (kind.takes_k && takes("k") && !given("k")) add("k", kDefaultK);
  const bool is_n_wanted = options.theta.empty() || options.is_n_given;
  if (is_n_wanted && takes("n") && !given("n")) add("n", std::to_string(options.n));
  try {
    return parse_solver(text);
  } catch (const std::invalid_argument& error) {
    throw Misuse(name + ": " + error.what());
  }
}

/// The scores of one instance of three dimensions or more, whose sizes the file does not have.
at::Tensor reshaped_for(const SolverSpec& solver, const DiagnoseOptions& options,
                        const at::Tensor& theta) {
  const std::vector<int64_t> shape = solver.shape_for(options.n);
  if (theta.numel() != c10::multiply_integers(shape)) {
    const auto option = [](const SolverSetting& setting) { return ", --" + setting.name; };
    const auto size = [](int64_t entries) { return std::to_string(entries); };
    throw Failure("expected theta of shape [" + join(shape, ", ", size) + "] in " +
                  options.theta.string() + " but it has " + std::to_string(theta.numel()) +
                  " entries: the shape follows from --n" +
                  join(solver.kind()->settings, "", option));
  }
  return theta.reshape(shape);
}

/// [*instance]: from the file, or random.
at::Tensor theta_of(const DiagnoseOptions& options, const SolverSpec& solver, RandomState& random) {
  if (options.theta.empty()) {
    const std::vector<int64_t> shape = solver.shape_for(options.n);
    const int64_t count = c10::multiply_integers(shape);
    if (count > 1'000'000) throw Misuse("expected theta of up to a million entries");
    const at::Tensor theta = at::tensor(random.randn(count), at::kDouble).to(at::kFloat);
    return (solver.has_costs() ? theta.abs() : theta).view(shape);
  }
  const at::Tensor theta = read_tensor(options.theta, "theta");
  if (solver.instance_dims() == 2) return theta;
  if (solver.instance_dims() > 2) return reshaped_for(solver, options, theta);
  if (theta.size(0) != 1 && theta.size(1) != 1) {
    throw Failure("expected one row of numbers in " + options.theta.string() + " but it has " +
                  std::to_string(theta.size(0)));
  }
  return theta.flatten();
}

/// The data of instances besides their scores: one row of whole numbers.
std::vector<int64_t> data_of(const DiagnoseOptions& options, const SolverSpec& solver) {
  const std::filesystem::path& path = options.data_file;
  if (path.empty() != !solver.kind()->takes_data) {
    throw Misuse(path.empty() ? solver.name() +
                                    " needs data besides its scores: pass them with --data FILE, "
                                    "int64 [length], as the solver's data in Python"
                              : "--data: " + solver.name() + " takes no data");
  }
  if (path.empty()) return {};
  const data::NumberTable table = data::read_number_table(path, "data");
  if (table.rows != 1) {
    throw Failure("expected one row of numbers in " + path.string() + " but it has " +
                  std::to_string(table.rows));
  }
  constexpr double kLargest = 1LL << 53;
  const auto bad = std::ranges::find_if(table.values, [](double value) {
    return value != std::floor(value) || std::abs(value) > kLargest;
  });
  if (bad != table.values.end()) {
    throw Failure("expected whole numbers in " + path.string() + " but entry " +
                  std::to_string(bad - table.values.begin()) + " is " + spell_number(*bad));
  }
  return {table.values.begin(), table.values.end()};
}

/// Rejects a theta for which the solver has no instance, or only one structure.
void check_fits(const SolverSpec& solver, const at::Tensor& theta,
                const std::vector<int64_t>& data) {
  if (theta.numel() < 2) throw Failure("expected theta of at least two entries");
  try {
    const Brought brought{.data_length = data.empty() ? -1 : std::ssize(data), .data = data.data()};
    const int64_t chosen = solver.fit(theta.sizes(), brought).solution_size().ones;
    if (chosen >= theta.numel()) {
      throw Failure("expected --k below the " + std::to_string(theta.numel()) +
                    " entries of theta but got " + std::to_string(chosen));
    }
  } catch (const std::invalid_argument& error) {
    throw Failure(error.what());
  }
}

DiagnosedProblem problem_of(DiagnoseOptions& options) {
  RandomState random(static_cast<uint32_t>(options.seed));
  const SolverSpec solver = solver_of(options);
  options.data = data_of(options, solver);
  const at::Tensor theta = theta_of(options, solver, random);
  check_fits(solver, theta, options.data);
  DiagnosedProblem problem{.solver = solver, .theta = theta};
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
    const at::Tensor rows = read_tensor(options.gradients, "dy");
    if (rows.size(1) != theta.numel()) fits(rows.select(0, 0), options.gradients);
    std::vector<int64_t> sizes = theta.sizes().vec();
    sizes.insert(sizes.begin(), rows.size(0));
    problem.dy = rows.view(sizes);
  } else if (!options.target.empty()) {
    const at::Tensor b = read_tensor(options.target, "b");
    fits(b, options.target);
    if (b.numel() != theta.numel()) throw Failure("expected one b in " + options.target.string());
    problem.b = b.reshape(theta.sizes());
  } else {
    problem.b = at::tensor(random.randn(theta.numel()), at::kDouble)
                    .to(at::kFloat)
                    .abs()
                    .view(theta.sizes());
  }
  return problem;
}

/// The request to the Python package, complete: files are read and names are checked.
nlohmann::ordered_json request_of(const DiagnoseOptions& options, const DiagnosedProblem& problem,
                                  int64_t threads) {
  const auto numbers = [](const at::Tensor& tensor) {
    const at::Tensor flat = tensor.contiguous().flatten();
    return std::vector<float>(flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel());
  };
  nlohmann::ordered_json request = {
      {"solver", problem.solver.text()},
      {"data", options.data},
      {"shape", problem.theta.sizes().vec()},
      {"theta", numbers(problem.theta)},
      {"theta_file", options.theta.empty() ? "random" : to_json_text(options.theta.string())},
      {"b", nullptr},
      {"dy", nullptr},
      {"temperature", nullptr},
      {"samples", options.samples},
      {"lambdas", options.lambdas},
      {"estimators", nullptr},
      {"repeats", options.repeats},
      {"warmup", options.warmup},
      {"long_run", options.long_run},
      {"seed", options.seed},
      {"threads", threads},
      {"quiet", options.common.quiet}};
  if (problem.b.defined()) request["b"] = numbers(problem.b);
  if (problem.dy.defined()) request["dy"] = numbers(problem.dy);
  if (options.temperature) request["temperature"] = *options.temperature;
  if (!options.estimators.empty()) request["estimators"] = options.estimators;
  return request;
}

/// Checks names, settings and their combination with the solver before anything is measured.
void check_estimators(const DiagnoseOptions& options, const SolverSpec& solver) {
  for (const std::string& text : options.estimators) {
    const Contestant contestant = parse_contestant(text);
    if (!contestant.applies_to(solver)) {
      throw Misuse(contestant.label + " does not apply to " + solver.name());
    }
    contestant.build(solver, contestant.least_samples());  // throws if it does not fit
    const bool own_noise = estimator_info(contestant.name).takes("noise");
    if (own_noise &&
        (contestant.options.temperature || contestant.options.theta_noise_temperature)) {
      throw Misuse("'" + shown_value(text) +
                   "': set the temperature of the noise with --temperature, since the "
                   "true gradient has one temperature");
    }
  }
}

/// The time at which the file was last written, if it exists.
std::optional<std::filesystem::file_time_type> time_of(const std::filesystem::path& file) {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(file, error);
  return error ? std::nullopt : std::optional(time);
}

void run_diagnosis(DiagnoseOptions& options) {
  const DiagnosedProblem problem = problem_of(options);
  check_estimators(options, problem.solver);
  const auto [threads, lock] = apply(options.common);
  const InterruptHandler handler;
  const std::filesystem::path file = options.common.out / "diagnosis.json";
  const auto before = time_of(file);
  std::vector<std::string> arguments = {options.common.out.string()};
  arguments.insert(arguments.end(), options.libraries.begin(), options.libraries.end());
  try {
    call_python_module("aimle.program.diagnose", arguments,
                       request_of(options, problem, threads).dump());
  } catch (const Stopped& stopped) {
    throw Stopped(stopped.signal,
                  time_of(file) == before
                      ? "stopped before the current measurements were complete; nothing was written"
                      : "stopped; the results so far are in " + file.string());
  }
}

/// Adds an option for every setting of every solver; `n` already exists.
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
      "diagnose", "Finds the best estimator for your scores, structure and loss");
  auto options = std::make_shared<DiagnoseOptions>();
  add_common_options(*command, options->common, "out/diagnose");
  command
      ->add_option("--structure", options->structure,
                   "Structure: " + join(solver_names()) + "; also name:setting=value,...")
      ->check(
          taken_by([](const std::string& text) { solver_kind(text.substr(0, text.find(':'))); }))
      ->capture_default_str();
  command->add_option("--library", options->libraries,
                      "A library with custom solvers, loaded first");
  add_settings_of_solvers(*command, *options);
  command->add_option(
      "--theta", options->theta,
      "Scores, .npy, .npz or .csv (a grid: costs, two-dimensional); random if not given");
  add_number(*command, "--n", options->n,
             "Size of theta where no file tells it: entries, vertices, or side of a grid", 2,
             100'000);
  command->add_option("--data", options->data_file,
                      "Data of structures such as knapsack, besides theta: whole numbers, .npy, "
                      ".npz or .csv");
  CLI::Option* b = command->add_option(
      "--b", options->target,
      "Target b of the loss |z - b|^2, .npy, .npz or .csv; random if not given");
  command
      ->add_option("--dy", options->gradients,
                   "Instead of b: recorded gradients of a loss, one per row, .npy, .npz or .csv")
      ->excludes(b);
  command
      ->add_option("--temperature", options->temperature,
                   "Scale of the noise, for all estimators and the true gradient; default: 1, or " +
                       spell_number(kCostTemperature) + " if solutions vary in size")
      ->check(number_between(1e-6, 1e6));
  add_number(*command, "--samples", options->samples, "Numbers of samples S", 1, 100'000);
  add_number(*command, "--lambdas", options->lambdas, "Steps of imle, imle_central and dbb", 1e-12,
             1e12);
  command
      ->add_option("--estimators", options->estimators,
                   "Estimators, as name[:setting=value...]; default: all that apply")
      ->delimiter(',')
      ->check(taken_by(parse_contestant));
  add_number(*command, "--repeats", options->repeats, "Gradients per estimator", 2, 100'000);
  add_number(*command, "--warmup", options->warmup, "Warm-up steps of adaptive estimators", 0,
             1'000'000);
  add_number(*command, "--long_run", options->long_run, "Samples if the true gradient is not exact",
             100, 100'000'000);
  add_number(*command, "--seed", options->seed, "Seed of all randomness", 0, 4'294'967'295);
  command->callback([=] {
    options->is_n_given = command->count("--n") > 0;
    run_diagnosis(*options);
  });
}

}  // namespace aimle::cli
