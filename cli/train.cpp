#include <algorithm>
#include <map>
#include <memory>

#include "aimle/base/join.h"
#include "cli/app.h"
#include "cli/commands.h"
#include "experiments/engine/campaign.h"
#include "experiments/engine/estimator_options.h"
#include "experiments/engine/processes.h"
#include "experiments/engine/run_folder.h"
#include "experiments/process/failure.h"
#include "experiments/process/progress.h"
#include "experiments/process/shell_word.h"
#include "experiments/registry.h"

namespace aimle::cli {
namespace {

using namespace experiments;

/// The command line; filled by CLI11 while it parses.
struct TrainRequest {
  CommonOptions common;
  std::string preset, config_file, seeds, select, workers;
  Json config = Json::object();  // the settings in that file, read once: it may be a pipe
  std::vector<std::string> grid;
  std::map<std::string, std::string> values;
  std::map<std::string, const CLI::Option*> options;
};

std::string type_of(const Option& option) {
  if (!option.choices.empty()) {
    const std::string text = join(option.choices, "|");
    return text.size() <= 30 ? text : "NAME";
  }
  if (option.value.is_boolean()) return "true|false";
  if (option.value.is_number_integer()) return "INT";
  return option.value.is_string() ? "TEXT" : "FLOAT";
}

std::string spell(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string help_of(const Option& option, const Experiment& experiment) {
  std::string text = option.help;
  for (const Preset& preset : experiment.presets) {
    if (const Json* value = preset.find(option.name)) {
      text += " (" + preset.name + ": " + spell(*value) + ")";
    }
  }
  if (option.name == "method") {
    text += ": ";
    for (const std::string& choice : option.choices) text += choice + " ";
  }
  return text;
}

void add_settings(CLI::App& command, const Experiment& experiment, TrainRequest& request) {
  const Settings defaults = default_settings(experiment);
  for (const Option& option : defaults.options()) {
    CLI::Option* added = command.add_option("--" + option.name, request.values[option.name],
                                            help_of(option, experiment));
    added->group(option.group)
        ->type_name(type_of(option))
        ->check(taken_by([option](const std::string& given) { option.parse(given); }));
    const std::string value = spell(option.value);
    if (option.value.is_boolean()) {
      // The name alone means true: CLI11 leaves the value empty unless there is a default_str.
      added->expected(0, 1)->type_name(type_of(option) + "=" + value);
    } else if (!value.empty()) {
      added->default_str(value);
    }
    request.options[option.name] = added;
  }
}

const Preset& find_preset(const Experiment& experiment, const std::string& name) {
  for (const Preset& preset : experiment.presets) {
    if (preset.name == name) return preset;
  }
  throw Failure("the experiment " + experiment.name + " has no preset " + name);
}

/// The "settings" of a config.json of this experiment.
Json settings_in(const std::string& file, const Experiment& experiment) {
  const Json config = read_config(file);
  if (config["experiment"] != experiment.name) {
    throw Failure("expected a config.json of the experiment " + experiment.name + " but got '" +
                  file + "' of " + config["experiment"].get<std::string>());
  }
  check_step_defaults(config, file);
  return config["settings"];
}

Settings settings_of(const Experiment& experiment, const TrainRequest& request) {
  Settings settings = default_settings(experiment);
  if (!request.preset.empty()) settings.apply(find_preset(experiment, request.preset));
  settings.apply(request.config);
  for (const auto& [name, option] : request.options) {
    if (option->count() == 0) continue;
    const std::string& given = request.values.at(name);
    const bool is_alone = given.empty() && settings.option(name).value.is_boolean();
    settings.set(name, is_alone ? "true" : given, Origin::kUser);
  }
  return settings;
}

std::vector<GridAxis> grid_of(const TrainRequest& request, const Settings& settings) {
  std::vector<GridAxis> grid;
  for (const std::string& text : request.grid) {
    GridAxis axis = parse_grid_axis(text, settings);
    const auto is_same = [&](const GridAxis& other) { return other.option == axis.option; };
    if (std::any_of(grid.begin(), grid.end(), is_same)) {
      throw Misuse("--grid: " + axis.option + " is given twice; list all its values in one --grid");
    }
    grid.push_back(std::move(axis));
  }
  return grid;
}

Campaign campaign_of(const Experiment& experiment, const TrainRequest& request) {
  const bool restarted = processes().restarts > 0;  // by torchrun: the folder is that of this run
  Campaign campaign = {.experiment = &experiment,
                       .settings = settings_of(experiment, request),
                       .out = request.common.out,
                       .select = request.select,
                       .resume = request.common.resume || restarted,
                       .force = request.common.force && !restarted,
                       .threads = request.common.threads,
                       .command = command_line(),
                       .workers = request.workers};
  if (!request.seeds.empty()) campaign.seeds = parse_seeds(request.seeds);
  campaign.grid = grid_of(request, campaign.settings);
  return campaign;
}

void train(const Campaign& campaign) {
  conduct(campaign);
  const std::string out = campaign.out.string();
  say("results are in " + out + "; to draw a page of them: aimle report " + shell_word(out));
}

using Act = std::function<void(const Campaign&)>;

void add_experiment(CLI::App& parent, const Experiment& experiment, const Act& act) {
  CLI::App* command = parent.add_subcommand(experiment.name, experiment.summary);
  const auto request = std::make_shared<TrainRequest>();
  add_common_options(*command, request->common, "runs/" + experiment.name);
  command->get_option("--threads")
      ->description(
          "Threads, or runs at a time with --seeds and --grid; 0: one per core (at most 8 runs on "
          "a GPU), or those of a resumed run. Last digits may depend on them");
  add_resume_option(*command, request->common, "Continue the runs in the folder");
  std::vector<std::string> presets;
  for (const Preset& preset : experiment.presets) presets.push_back(preset.name);
  const std::string meaning = join(experiment.presets, ", ", [](const Preset& preset) {
    return preset.name + " (" + preset.help + ")";
  });
  command->add_option("--preset", request->preset, "Named settings: " + meaning)
      ->check(one_of("preset", presets));
  command->add_option("--config", request->config_file, "Settings of another run: its config.json")
      ->check(taken_by([&experiment, request](const std::string& given) {
        request->config = settings_in(given, experiment);
        default_settings(experiment).apply(request->config);
      }));
  command->add_option("--seeds", request->seeds, "Several seeds in parallel: 0-9 or 1,4,6-8")
      ->check(taken_by(parse_seeds));
  command
      ->add_option("--grid", request->grid,
                   "All of these values: lambda=1,10,100; may be given more than once")
      ->allow_extra_args(false)
      ->check(taken_by([&experiment](const std::string& given) {
        parse_grid_axis(given, default_settings(experiment));
      }));
  command
      ->add_option("--select", request->select,
                   "Metric that selects the best epoch and the best run of a grid")
      ->default_str(experiment.select);
  add_workers_option(*command, request->workers);
  add_settings(*command, experiment, *request);
  command->callback([&experiment, request, act] {
    set_quiet(request->common.quiet || !processes().is_first());
    act(campaign_of(experiment, *request));
  });
}

}  // namespace

void add_train(CLI::App& app) { add_train(app, train); }

void add_train(CLI::App& app, const std::function<void(const Campaign&)>& act) {
  CLI::App* command = app.add_subcommand("train", "Trains a model that contains discrete choices");
  command->require_subcommand(1);
  for (const Experiment& experiment : experiments::experiments()) {
    add_experiment(*command, experiment, act);
  }
}

}  // namespace aimle::cli
