#include "experiments/gradient/contestant.h"

#include <algorithm>
#include <sstream>

#include "aimle/base/shown_value.h"
#include "experiments/process/failure.h"
#include "experiments/process/short_number.h"

namespace aimle::experiments {
namespace {

bool is_set_to(const std::optional<std::string>& setting, const char* value, bool by_default) {
  return setting ? *setting == value : by_default;
}

/// The solver to use: for k = 1 the k-subset and the categorical are the same, but some estimators
/// accept only one of them.
SolverSpec suitable(const EstimatorInfo& info, const SolverSpec& solver) {
  if (!info.applies_to(solver) && solver.name() == argmax().name()) return topk(1);
  return solver;
}

}  // namespace

bool Contestant::is_adaptive() const { return estimator_info(name).takes("initial_alpha"); }

int64_t Contestant::least_samples() const {
  const bool needs_two =
      name == "aimle_covariance" ||
      (name == "sfe" && is_set_to(options.baseline, "leave_one_out", false)) ||
      (name == "dpo" && is_set_to(options.variance_reduction, "leave_one_out", true));
  return needs_two ? 2 : 1;
}

bool Contestant::applies_to(const SolverSpec& solver) const {
  const EstimatorInfo& info = estimator_info(name);
  return info.applies_to(suitable(info, solver));
}

std::unique_ptr<Estimator> Contestant::build(const SolverSpec& solver, int64_t samples) const {
  const EstimatorInfo& info = estimator_info(name);
  EstimatorOptions own = options;
  if (info.takes("nb_samples")) own.nb_samples = samples;
  return estimator(name, suitable(info, solver), own);
}

Contestant parse_contestant(const std::string& text) {
  std::istringstream parts(text);
  Contestant result;
  std::getline(parts, result.name, ':');
  result.label = result.name;
  const EstimatorInfo& info = estimator_info(result.name);
  for (std::string part; std::getline(parts, part, ':');) {
    const size_t equals = part.find('=');
    if (equals == std::string::npos) {
      throw Failure("expected name:setting=value but got '" + shown_value(text) + "'");
    }
    const std::string setting = part.substr(0, equals);
    if (setting == "nb_samples" || setting == "output") {
      throw Failure("'" + shown_value(text) + "': " + setting + " is set by the study itself");
    }
    set_option(result.options, setting, part.substr(equals + 1));
    if (setting != "lambda") result.label += ":" + part;
  }
  // Names and values of settings are checked by a trial build.
  const auto fits = [&](const SolverSpec& solver) { return info.applies_to(solver); };
  const std::vector<SolverSpec> solvers = {argmax(), topk(1), spanning_tree(3), grid_path()};
  const auto solver = std::find_if(solvers.begin(), solvers.end(), fits);
  if (solver != solvers.end()) result.build(*solver, 2);
  return result;
}

std::vector<Contestant> all_contestants(const SolverSpec& solver,
                                        const std::vector<double>& lambdas) {
  std::vector<std::string> texts;
  for (const EstimatorInfo& info : estimators()) {
    if (info.takes("lambda")) {
      for (const double lambda : lambdas)
        texts.push_back(info.name + ":lambda=" + short_number(lambda));
    } else {
      texts.push_back(info.name);
    }
    if (info.name == "thresholds") texts.emplace_back("thresholds:order=first");
    if (info.name == "sfe") texts.emplace_back("sfe:baseline=leave_one_out");
    if (info.name == "dpo") texts.emplace_back("dpo:noise=gumbel");
  }
  std::vector<Contestant> result;
  for (const std::string& text : texts) {
    Contestant contestant = parse_contestant(text);
    if (contestant.applies_to(solver)) result.push_back(std::move(contestant));
  }
  return result;
}

}  // namespace aimle::experiments
