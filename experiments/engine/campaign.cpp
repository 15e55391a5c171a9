#include "experiments/engine/campaign.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "aimle/base/join.h"
#include "aimle/base/shown_value.h"
#include "experiments/engine/checkpoint.h"
#include "experiments/engine/estimator_options.h"
#include "experiments/engine/own_stream.h"
#include "experiments/engine/processes.h"
#include "experiments/engine/sharing.h"
#include "experiments/engine/summary.h"
#include "experiments/engine/training_run.h"
#include "experiments/process/atomic_file.h"
#include "experiments/process/failure.h"
#include "experiments/process/folder_lock.h"
#include "experiments/process/interrupt.h"
#include "experiments/process/output_folder.h"
#include "experiments/process/progress.h"
#include "experiments/process/shell_word.h"
#include "experiments/process/workers.h"

namespace aimle::experiments {
namespace {

namespace fs = std::filesystem;

// The number of parallel runs without --threads: each needs memory.
constexpr int64_t kRunsOnGpu = 8;

// What is expected to take longer is announced.
constexpr double kLongSeconds = 120;

/// A step frees its large tensors and the next one allocates them again. glibc would return them to
/// the system, which has to clear every page again: a sixth of the time of a step of nri.
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

/// Every combination of the axes' values.
std::vector<std::vector<std::string>> combinations(const std::vector<GridAxis>& grid) {
  std::vector<std::vector<std::string>> result = {{}};
  for (const GridAxis& axis : grid) {
    std::vector<std::vector<std::string>> longer;
    for (const auto& start : result) {
      for (const std::string& value : axis.values) {
        longer.push_back(start);
        longer.back().push_back(value);
      }
    }
    result = std::move(longer);
  }
  return result;
}

std::string shown(const Json& value) {
  return shown_value(value.is_string() ? "'" + value.get<std::string>() + "'" : value.dump());
}

/// The config.json of a run that is continued, as the first process reads it; empty if there is
/// none.
std::string config_to_resume(const Run& run) {
  std::string text;
  if (processes().is_first() && fs::exists(run.folder.config())) {
    text = read_config(run.folder.config()).dump();
  }
  return take_from_first(text);
}

Settings resumed(const Settings& wanted, const Run& run, const Json& config) {
  if (config["experiment"] != run.experiment->name) {
    throw Failure(run.folder.path.string() + " holds a run of " +
                  config["experiment"].get<std::string>() + ", not of " + run.experiment->name);
  }
  check_step_defaults(config, run.folder.config().string());
  Settings settings = default_settings(*run.experiment);
  settings.apply(config["settings"]);
  for (const Option& option : settings.options()) {
    if (wanted.origin(option.name) != Origin::kUser) continue;
    const Json before = settings.get<Json>(option.name), now = wanted.get<Json>(option.name);
    if (before == now) continue;
    if (!may_change(option.name)) {
      throw Failure("--resume: " + option.name + " is " + shown(before) + " in " +
                    run.folder.path.string() + " and cannot become " + shown(now));
    }
    settings.set(option.name, now, Origin::kUser);
  }
  return settings;
}

std::vector<Run> plan(const Campaign& campaign) {
  std::vector<Run> runs;
  for (const auto& values : combinations(campaign.grid)) {
    Settings settings = campaign.settings;
    std::vector<std::string> cell_values;
    for (size_t i = 0; i < values.size(); ++i) {
      const std::string& name = campaign.grid[i].option;
      settings.set(name, values[i], Origin::kUser);
      cell_values.push_back(name + "=" + values[i]);
    }
    const std::string cell = join(cell_values, ",");
    keep_what_the_method_is(settings);
    std::vector<int64_t> seeds = campaign.seeds;
    const bool named = !seeds.empty();
    if (!named) seeds.push_back(settings.get<int64_t>("seed"));
    for (const int64_t seed : seeds) {
      Run run = {.experiment = campaign.experiment,
                 .settings = settings,
                 .folder = {campaign.out},
                 .label = cell,
                 .select = campaign.select.empty() ? campaign.experiment->select : campaign.select,
                 .must_select = !campaign.select.empty() || !campaign.grid.empty()};
      if (!cell.empty()) run.folder.path /= cell;
      if (named) {
        run.folder.path /= "seed-" + std::to_string(seed);
        run.label += (cell.empty() ? "seed " : " seed ") + std::to_string(seed);
        run.settings.set("seed", Json(seed), Origin::kUser);
      }
      if (const std::string config = campaign.resume ? config_to_resume(run) : "";
          !config.empty()) {
        run.settings = resumed(run.settings, run, Json::parse(config));
      }
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

void check_device(const Settings& settings) {
  if (settings.get<std::string>("device") == "cuda" && !at::globalContext().hasCUDA()) {
    throw Failure("--device cuda: this torch has no CUDA, or finds no GPU; use --device cpu");
  }
}

/// The same for all runs of a command.
at::Device device_of(const std::vector<Run>& runs) {
  return at::Device(runs.front().settings.get<std::string>("device"));
}

int64_t threads_in_all(const Campaign& campaign, const std::vector<Run>& runs) {
  if (campaign.threads > 0) return campaign.threads;
  if (processes().several()) {
    return std::max<int64_t>(1, std::thread::hardware_concurrency() / processes().on_this_machine);
  }
  if (campaign.resume && runs.size() == 1 && fs::exists(runs.front().folder.config())) {
    return read_config(runs.front().folder.config()).value("threads", int64_t{1});
  }
  const int64_t cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
  return runs.size() > 1 && device_of(runs).is_cuda() ? std::min(cores, kRunsOnGpu) : cores;
}

bool is_new(const std::vector<Run>& runs) {
  return std::none_of(runs.begin(), runs.end(),
                      [](const Run& run) { return fs::exists(run.folder.config()); });
}

/// A cell or seed of a campaign in this folder.
std::optional<fs::path> run_below(const fs::path& out) {
  std::error_code ignored;
  for (fs::recursive_directory_iterator place(out, ignored), end; place != end;
       place.increment(ignored)) {
    if (place.depth() == 1) place.disable_recursion_pending();
    if (fs::exists(RunFolder{place->path()}.config())) return place->path();
  }
  return std::nullopt;
}

/// With --resume, a campaign may add runs to those of another one. A campaign in the folder of a
/// single run, or a single run in that of a campaign, would be mixed up with it.
void refuse_other_kind(const Campaign& campaign, const std::vector<Run>& runs) {
  const bool is_single = runs.size() == 1 && runs.front().folder.path == campaign.out;
  std::string remedy;
  if (!is_single) {
    if (!fs::exists(RunFolder{campaign.out}.config())) return;
    remedy = " holds a single run: leave out --grid and --seeds";
  } else {
    const std::optional<fs::path> other = run_below(campaign.out);
    if (!other) return;
    remedy =
        " holds several runs, such as " + other->string() + ": give --grid and --seeds as before";
  }
  throw Failure("--resume: " + campaign.out.string() + remedy +
                ", or choose another folder with --out");
}

/// Called before anything is computed or written.
void refuse_occupied(const Campaign& campaign, const std::vector<Run>& runs) {
  if (campaign.force) return;
  if (campaign.resume) return refuse_other_kind(campaign, runs);
  if (!is_unused(campaign.out)) prepare_run_folder({campaign.out}, false);
}

/// Locks the folders of the runs: another process may have been started in one of them.
std::vector<FolderLock> prepare_folders(const Campaign& campaign, const std::vector<Run>& runs,
                                        int64_t threads) {
  std::vector<FolderLock> locks;
  if (!processes().is_first()) return locks;
  for (const Run& run : runs) {
    if (run.folder.path != campaign.out) locks.emplace_back(run.folder.path);
  }
  remove_temporaries(campaign.out);
  for (const Run& run : runs) {
    remove_temporaries(run.folder.path);
    remove_temporaries(run.folder.pictures());
    if (!campaign.resume) prepare_run_folder(run.folder, campaign.force);
    write_config(run.folder, *run.experiment, run.settings, threads, campaign.command);
  }
  return locks;
}

bool is_applied(const Preset& preset, const Settings& settings) {
  return std::all_of(preset.values.begin(), preset.values.end(), [&](const auto& setting) {
    return settings.get<Json>(setting.first) == setting.second;
  });
}

/// Of runs that take long, and how to see results sooner.
void say_expected_time(const Campaign& campaign, double seconds) {
  if (seconds < kLongSeconds) return;
  const std::string name = campaign.experiment->name;
  std::string line = "train " + name + ": expected to take about " + spell_roughly(seconds) +
                     " at the speed of its first steps, and the evaluations besides";
  const auto& presets = campaign.experiment->presets;
  const auto quick = std::find_if(presets.begin(), presets.end(),
                                  [](const Preset& preset) { return preset.name == "quick"; });
  if (!campaign.resume && quick != presets.end() && !is_applied(*quick, campaign.settings)) {
    line += "; a small version of about a minute: aimle train " + name + " --preset quick";
  }
  say(line);
}

/// Files are written only after the data were loaded and every cell of the grid could start, so
/// that a command that cannot start leaves nothing behind.
std::vector<std::vector<Json>> train_all(const Campaign& campaign, const std::vector<Run>& runs,
                                         int64_t threads, const InterruptHandler& handler) {
  at::globalContext().setAllowTF32CuBLAS(runs.front().settings.get<bool>("tf32"));
  std::optional<StopsAtOnce> loading;
  loading.emplace(handler, "stopped while the data were loaded; nothing was written");
  show_phase("train " + campaign.experiment->name + ": loading the data");
  const Start start = campaign.experiment->load(runs.front().settings);
  std::mutex starting;  // modules draw their initial values from torch's global generator
  const auto begin = [&](const Run& run) {
    const std::scoped_lock lock(starting);
    at::manual_seed(static_cast<uint64_t>(run.settings.get<int64_t>("seed")));
    Training training = start(run.settings);
    check_sharing(run.settings, training);
    return training;
  };
  const Training first = begin(runs.front());
  const size_t seeds = std::max<size_t>(1, campaign.seeds.size());
  for (size_t cell = seeds; cell < runs.size(); cell += seeds) begin(runs[cell]);
  handler.set_late_message(
      "stopped before the current step was complete; what was computed since the last checkpoint "
      "is computed again with --resume --out " +
      shell_word(campaign.out.string()));
  loading.reset();
  const std::vector<FolderLock> locks =
      prepare_folders(campaign, runs, runs.size() == 1 ? threads : 1);
  int64_t steps = 0;
  if (processes().is_first()) {
    for (const Run& run : runs) steps += steps_left(run, first);
  }
  if (campaign.resume && steps == 0) {
    say("--resume: " + campaign.out.string() + " is complete; use a larger --epochs to continue");
  }
  Progress progress("train " + campaign.experiment->name, steps,
                    [&](double seconds) { say_expected_time(campaign, seconds); });

  const auto throw_stopped = [&](int signal) {
    throw Stopped(signal,
                  "stopped; continue with --resume --out " + shell_word(campaign.out.string()));
  };
  std::vector<std::vector<Json>> results(runs.size());
  const auto train_one = [&](int64_t i) {
    const Run& run = runs[static_cast<size_t>(i)];
    const OwnStream stream(device_of(runs));
    try {
      results[static_cast<size_t>(i)] = train(run, begin(run), progress);
    } catch (const Stopped& stopped) {
      if (runs.size() == 1) throw;
      throw_stopped(stopped.signal);  // all runs continue together
    } catch (const c10::OutOfMemoryError& error) {
      if (runs.size() == 1 || threads == 1) throw;
      throw Failure("out of memory with " + std::to_string(threads) +
                    " runs at once; continue with --resume and fewer --threads: " +
                    error.what_without_backtrace());
    }
  };
  if (runs.size() == 1 || processes().several()) {
    for (int64_t i = 0; i < std::ssize(runs); ++i) train_one(i);
  } else {
    run_tasks(static_cast<int64_t>(runs.size()), threads, train_one);
  }
  if (const int signal = interrupt_signal()) throw_stopped(signal);
  return results;
}

bool is_complete(const Run& run) {
  const auto found = find_checkpoint(run.folder.checkpoint(), run.folder.previous_checkpoint());
  if (!found) return false;
  const auto epoch = found->checkpoint.integers.find("epoch");
  return epoch != found->checkpoint.integers.end() &&
         epoch->second >= run.settings.get<int64_t>("epochs");
}

/// Prepares the folders, which are free for the workers' locks afterwards. As in one process, each
/// run of several has one thread.
std::vector<WorkerRun> prepare_worker_runs(const Campaign& campaign, const std::vector<Run>& runs) {
  check_workers(campaign.workers, runs.front().settings.get<std::string>("device"));
  refuse_occupied(campaign, runs);
  const std::vector<FolderLock> locks = prepare_folders(campaign, runs, 1);
  std::vector<WorkerRun> left;
  for (const Run& run : runs) {
    if (is_complete(run)) continue;
    left.push_back({.experiment = run.experiment->name,
                    .folder = run.folder.path,
                    .label = run.label,
                    .select = run.must_select ? run.select : "",
                    .device = run.settings.get<std::string>("device")});
  }
  return left;
}

/// What could not start leaves nothing behind; --resume makes it anew.
void remove_unstarted(const Campaign& campaign, const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    if (fs::exists(run.folder.metrics()) || fs::exists(run.folder.checkpoint())) continue;
    std::error_code ignored;
    fs::remove(run.folder.config(), ignored);
    for (fs::path place = run.folder.path; place != campaign.out; place = place.parent_path()) {
      if (!fs::remove(place, ignored)) break;  // it is not empty
    }
  }
}

void conduct_on_workers(const Campaign& campaign) {
  const InterruptHandler handler;
  const FolderLock lock(campaign.out);
  const std::vector<Run> runs = plan(campaign);
  if (runs.size() == 1) {
    throw Misuse("--workers " + campaign.workers +
                 ": there is one run only; give --seeds or --grid as well, or leave --workers out");
  }
  const std::vector<WorkerRun> left = prepare_worker_runs(campaign, runs);
  try {
    do_on_workers(campaign.workers, campaign.out, left, campaign.threads);
  } catch (const Stopped&) {
    throw;
  } catch (const std::exception&) {
    remove_unstarted(campaign, runs);
    throw;
  }
  std::vector<std::vector<Json>> results;
  for (const Run& run : runs) {
    write_config(run.folder, *run.experiment, run.settings, 1, campaign.command);
    results.push_back(read_metrics(run.folder));
  }
  write_summary(campaign, runs, results);
}

}  // namespace

std::vector<WorkerRun> prepare_worker_runs(const Campaign& campaign) {
  const FolderLock lock(campaign.out);
  const std::vector<Run> runs = plan(campaign);
  return runs.size() == 1 ? std::vector<WorkerRun>{} : prepare_worker_runs(campaign, runs);
}

void conduct(const Campaign& campaign) {
  if (!campaign.workers.empty()) return conduct_on_workers(campaign);
  const InterruptHandler handler;
  keep_freed_memory();
  std::optional<FolderLock> lock;
  if (processes().is_first()) lock.emplace(campaign.out);
  const std::vector<Run> runs = plan(campaign);
  check_device(runs.front().settings);
  if (processes().is_first()) refuse_occupied(campaign, runs);
  if (campaign.resume && is_new(runs)) {
    say("--resume: " + campaign.out.string() +
        (run_below(campaign.out) ? " has other runs: adding new ones"
                                 : ": there is no run in it yet: starting a new one"));
  }
  // A single run uses all threads; several runs use one thread each, so that the results of a run
  // do not depend on how many there are. Several processes do one run after the other, together.
  const int64_t threads = threads_in_all(campaign, runs);
  at::set_num_threads(static_cast<int>(threads));
  const std::vector<std::vector<Json>> results = train_all(campaign, runs, threads, handler);
  if (runs.size() > 1 && processes().is_first()) write_summary(campaign, runs, results);
}

}  // namespace aimle::experiments
