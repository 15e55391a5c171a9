#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "aimle/base/join.h"
#include "aimle/base/nearest.h"
#include "aimle/base/shown_value.h"
#include "cli/app.h"
#include "cli/commands.h"
#include "cli/paper_entries.h"
#include "experiments/data/input_file.h"
#include "experiments/data/json_text.h"
#include "experiments/engine/campaign.h"
#include "experiments/engine/run_folder.h"
#include "experiments/process/atomic_file.h"
#include "experiments/process/bytes_in_json.h"
#include "experiments/process/failure.h"
#include "experiments/process/interrupt.h"
#include "experiments/process/progress.h"
#include "experiments/process/python.h"
#include "experiments/process/shell_word.h"
#include "experiments/registry.h"

namespace aimle::cli {
namespace {

using experiments::Failure;
using experiments::say;
using Json = nlohmann::ordered_json;
using Arguments = std::vector<std::string>;
namespace fs = std::filesystem;

struct PaperRequest {
  CommonOptions common;
  bool quick = false;
  std::string device, workers;
  std::vector<std::string> entries;
  std::vector<std::string> settings;
};

/// `--set dvae.epochs=2`
struct Setting {
  std::string text, experiment, option, value;
};

std::vector<std::string> names_of_experiments() {
  std::vector<std::string> names = {"synth"};
  for (const auto& experiment : experiments::experiments()) names.push_back(experiment.name);
  return names;
}

Setting parse_setting(const std::string& text) {
  const size_t dot = text.find('.'), equals = text.find('=');
  if (dot == std::string::npos || equals == std::string::npos || equals < dot) {
    throw Failure("expected EXPERIMENT.OPTION=VALUE but got '" + shown_value(text) + "'");
  }
  Setting setting = {text, text.substr(0, dot), text.substr(dot + 1, equals - dot - 1),
                     text.substr(equals + 1)};
  const std::vector<std::string> known = names_of_experiments();
  if (std::find(known.begin(), known.end(), setting.experiment) == known.end()) {
    throw Failure("there is no experiment '" + setting.experiment + "'" +
                  did_you_mean(setting.experiment, known) + " (" + join(known, ", ") + ")");
  }
  // Reports now what would otherwise fail hours later.
  if (setting.option == "seeds" && setting.experiment != "synth") {
    experiments::parse_seeds(setting.value);
  } else if (setting.experiment != "synth") {
    experiments::default_settings(experiments::experiment(setting.experiment))
        .set(setting.option, setting.value, experiments::Origin::kUser);
  }
  return setting;
}

/// The values of `--set` that apply to the entry.
std::vector<Setting> settings_for(const Entry& entry, const PaperRequest& request) {
  std::vector<Setting> own;
  for (const std::string& text : request.settings) {
    const Setting setting = parse_setting(text);
    if (setting.experiment == entry.experiment()) own.push_back(setting);
  }
  return own;
}

Arguments split(const std::string& text) {
  std::istringstream stream(text);
  Arguments parts;
  for (std::string part; stream >> part;) parts.push_back(part);
  return parts;
}

void replace_or_add(Arguments& arguments, const std::string& option, const std::string& value) {
  const auto found = std::find(arguments.begin(), arguments.end(), option);
  if (found == arguments.end()) {
    arguments.insert(arguments.end(), {option, value});
  } else {
    *(found + 1) = value;
  }
}

Arguments arguments_of(const Entry& entry, const Command& command, const PaperRequest& request) {
  Arguments arguments = split(request.quick ? command.quick : command.full);
  const bool trains = entry.experiment() != "synth";
  if (trains && !request.device.empty()) replace_or_add(arguments, "--device", request.device);
  for (const Setting& setting : settings_for(entry, request)) {
    replace_or_add(arguments, "--" + setting.option, setting.value);
  }
  return arguments;
}

/// The substitute for the paper's data, or the files that were given.
std::string data_of(const Entry& entry, const PaperRequest& request) {
  std::string text = entry.substitute;
  for (const Setting& setting : settings_for(entry, request)) {
    if (setting.option == "data") text = "Data: the files in `" + setting.value + "`.";
  }
  return text;
}

bool is_wanted(const std::string& name, const std::string& experiment,
               const PaperRequest& request) {
  const auto& wanted = request.entries;
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end() ||
         std::find(wanted.begin(), wanted.end(), experiment) != wanted.end();
}

bool is_wanted(const Json& entry, const PaperRequest& request) {
  return is_wanted(entry["name"].get<std::string>(), entry["experiment"].get<std::string>(),
                   request);
}

std::string as_line(const Arguments& arguments) {
  std::string line = "aimle";
  for (const std::string& argument : arguments) line += " " + experiments::shell_word(argument);
  return line;
}

/// The planned and the finished commands: DIR/paper.json, which the report reads.
Json plan(const PaperRequest& request) {
  const std::string form = request.quick ? "quick" : "full";
  Json entries = Json::array();
  for (const Entry& entry : paper_entries()) {
    const bool wanted = is_wanted(entry.name, entry.experiment(), request);
    Json commands = Json::array(), settings = Json::array();
    for (const Setting& setting : settings_for(entry, request)) settings.push_back(setting.text);
    for (const Command& command : entry.commands) {
      if (!wanted || (request.quick && command.quick.empty())) continue;
      const Arguments arguments = arguments_of(entry, command, request);
      commands.push_back({{"folder", entry.name + "/" + command.name},
                          {"command", as_line(arguments)},
                          {"arguments", arguments},
                          {"complete", false},
                          {"seconds", 0.0}});
    }
    entries.push_back({{"name", entry.name},
                       {"experiment", entry.experiment()},
                       {"title", entry.title},
                       {"paper", entry.paper},
                       {"substitute", data_of(entry, request)},
                       {"form", form},
                       {"reduced", request.quick ? entry.quick : entry.full},
                       {"settings", settings},
                       {"commands", commands}});
  }
  return {{"version", AIMLE_VERSION}, {"command", command_line()}, {"entries", entries}};
}

/// A copy with this function applied to every text.
Json with_texts(Json value, const std::function<std::string(std::string_view)>& change) {
  if (value.is_string()) return change(value.get<std::string>());
  if (!value.is_structured()) return value;
  for (Json& part : value) part = with_texts(std::move(part), change);
  return value;
}

Json read(const fs::path& file) {
  return with_texts(
      experiments::data::parse_json<Json>(file, experiments::data::read_input_file(file)),
      experiments::from_json_text);
}

/// Keeps what earlier calls have finished, and entries that were not requested this time.
void take_over(Json& state, const fs::path& file, const PaperRequest& request) {
  if (!fs::exists(file)) return;
  const Json before = read(file);
  for (Json& entry : state["entries"]) {
    for (const Json& old_entry : before.at("entries")) {
      if (old_entry.at("name") != entry["name"]) continue;
      if (!is_wanted(entry, request)) {
        if (!old_entry.at("commands").empty()) entry.update(old_entry);
        continue;
      }
      for (Json& command : entry["commands"]) {
        for (const Json& old : old_entry.at("commands")) {
          if (old.at("folder") != command["folder"]) continue;
          if (old.at("command") != command["command"]) {
            throw Failure("--resume: " + command["folder"].get<std::string>() + " was made by `" +
                          old.at("command").get<std::string>() + "`, not by `" +
                          command["command"].get<std::string>() + "`");
          }
          command["complete"] = old.at("complete");
          command["seconds"] = old.at("seconds");
        }
      }
    }
  }
}

void add_commands(CLI::App& app) {
  set_up(app);
  add_synth(app);
  add_train(app);
}

/// Checks the arguments of all commands before the first one starts.
void check_commands(const Json& state, const PaperRequest& request) {
  for (const Json& entry : state["entries"]) {
    if (!is_wanted(entry, request)) continue;
    for (const Json& command : entry["commands"]) {
      if (command["complete"].get<bool>()) continue;
      CLI::App app("", "aimle");
      add_commands(app);
      app.parse_complete_callback([] { throw CLI::Success(); });  // runs before the command's own
      try {
        parse(app, command["arguments"].get<Arguments>());
      } catch (const CLI::Success&) {
        continue;
      } catch (const CLI::ParseError& error) {
        throw CLI::ValidationError(
            "--set", command["command"].get<std::string>() + ": " + std::string(error.what()));
      }
    }
  }
}

/// With the options that all commands of a call share.
Arguments complete_arguments(const Json& command, const PaperRequest& request) {
  auto arguments = command["arguments"].get<Arguments>();
  const fs::path out = request.common.out / command["folder"].get<std::string>();
  arguments.insert(arguments.end(),
                   {"--out", out.string(), "--threads", std::to_string(request.common.threads)});
  if (request.common.quiet) arguments.push_back("--quiet");
  if (request.common.resume) arguments.push_back("--resume");
  if (!request.common.resume && request.common.force) arguments.push_back("--force");
  if (!request.workers.empty()) {
    arguments.insert(arguments.end(), {"--workers", request.workers});
  }
  return arguments;
}

/// Runs one command as if it had been typed.
void run_command(const Json& command, const PaperRequest& request) {
  const Arguments arguments = complete_arguments(command, request);
  CLI::App app("", "aimle");
  add_commands(app);
  try {
    parse(app, arguments);
  } catch (const CLI::ParseError& error) {
    throw Failure(as_line(arguments) + ": " + error.what());
  }
}

/// What the epochs of a run have taken.
double seconds_of(const experiments::WorkerRun& run) {
  double seconds = 0;
  for (const auto& epoch : experiments::read_metrics({run.folder})) {
    seconds += epoch.value("seconds", 0.0) + epoch.value("seconds_evaluate", 0.0);
  }
  return seconds;
}

/// Does the runs of all commands that are left, on workers. Returns the folders of these commands,
/// which then write their summaries, and how long their runs have taken together. Commands of one
/// run are left as they are.
std::map<std::string, double> train_on_workers(const Json& state, const PaperRequest& request) {
  std::vector<std::string> folders;  // of each run
  std::vector<experiments::WorkerRun> runs;
  for (const Json& entry : state["entries"]) {
    if (!is_wanted(entry, request) || entry["experiment"] == "synth") continue;
    for (const Json& command : entry["commands"]) {
      if (command["complete"].get<bool>()) continue;
      const auto folder = command["folder"].get<std::string>();
      CLI::App app("", "aimle");
      set_up(app);
      add_train(app, [&](const experiments::Campaign& campaign) {
        for (experiments::WorkerRun& run : prepare_worker_runs(campaign)) {
          run.label = folder + " " + run.label;
          runs.push_back(std::move(run));
          folders.push_back(folder);
        }
      });
      parse(app, complete_arguments(command, request));
    }
  }
  do_on_workers(request.workers, request.common.out, runs, request.common.threads);
  std::map<std::string, double> seconds;
  for (size_t i = 0; i < runs.size(); ++i) seconds[folders[i]] += seconds_of(runs[i]);
  return seconds;
}

/// Counts the commands of the requested entries.
int64_t count(const Json& state, const PaperRequest& request, bool complete) {
  int64_t result = 0;
  for (const Json& entry : state["entries"]) {
    if (!is_wanted(entry, request)) continue;
    for (const Json& command : entry["commands"]) {
      result += !complete || command["complete"].get<bool>() ? 1 : 0;
    }
  }
  return result;
}

void reproduce(PaperRequest request) {
  const Prepared prepared = apply(request.common);
  Json state = plan(request);
  const fs::path file = request.common.out / "paper.json";
  if (request.common.resume) take_over(state, file, request);
  check_commands(state, request);
  const auto save = [&] {
    experiments::write_atomically(file,
                                  with_texts(state, experiments::to_json_text).dump(2) + "\n");
  };
  save();

  const int64_t total = count(state, request, false);
  const experiments::InterruptHandler handler;
  handler.set_late_message("stopped; continue with --resume --out " +
                           experiments::shell_word(request.common.out.string()));
  std::map<std::string, double> trained;  // the folders of commands whose runs are complete
  if (!request.workers.empty()) trained = train_on_workers(state, request);
  PaperRequest of_trained = request;
  of_trained.common.resume = true;
  request.workers.clear();
  for (Json& entry : state["entries"]) {
    if (!is_wanted(entry, request)) continue;
    for (Json& command : entry["commands"]) {
      const auto folder = command["folder"].get<std::string>();
      const std::string number = "[" + std::to_string(count(state, request, true) + 1) + "/" +
                                 std::to_string(total) + "] ";
      if (command["complete"].get<bool>()) continue;
      experiments::stop_if_interrupted();
      say(number + folder + ": " + command["command"].get<std::string>());
      const auto start = std::chrono::steady_clock::now();
      const auto add_time = [&] {
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        const double on_workers = trained.contains(folder) ? trained.at(folder) : 0.0;
        command["seconds"] = command["seconds"].get<double>() + took.count() + on_workers;
      };
      try {
        run_command(command, trained.contains(folder) ? of_trained : request);
      } catch (const experiments::Stopped& stopped) {
        add_time();
        save();
        throw experiments::Stopped(
            stopped.signal,
            "stopped in " + (request.common.out / folder).string() + ", which has " +
                "partial results; " + std::to_string(count(state, request, true)) + " of " +
                std::to_string(total) + " commands are complete; " + "continue with --resume");
      }
      add_time();
      command["complete"] = true;
      save();
    }
  }
  if (!experiments::run_python_module("aimle.program.report.paper",
                                      {request.common.out.string()})) {
    throw Failure("no report was written; the results are in " + request.common.out.string() +
                  "; use --resume to try again");
  }
  std::printf("%s\n", (request.common.out / "report.html").c_str());
}

}  // namespace

void add_paper(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("paper", "Reproduces every table and figure of the paper on one page");
  const auto request = std::make_shared<PaperRequest>();
  add_common_options(*command, request->common, "runs/paper");
  command->add_flag("--quick", request->quick, "Reduced form: takes minutes on a CPU");
  add_resume_option(*command, request->common, "Continue the work in the folder");
  std::vector<std::string> names = names_of_experiments();
  for (const Entry& entry : paper_entries()) names.push_back(entry.name);
  command
      ->add_option("--entries", request->entries,
                   "Only these experiments, tables or figures: " + join(names, ", "))
      ->delimiter(',')
      ->check(one_of("entry", names).description(""))
      ->type_name("NAME");
  command->add_option("--device", request->device, "Device for training")
      ->check(one_of("device", {"cpu", "cuda"}));
  command
      ->add_option("--set", request->settings,
                   "Overrides an option of an experiment's commands, as in dvae.data=mnist; may be "
                   "given more than once")
      ->allow_extra_args(false)
      ->check(taken_by(parse_setting));
  add_workers_option(*command, request->workers);
  command->callback([request] { reproduce(*request); });
}

}  // namespace aimle::cli
