#include "experiments/engine/training_run.h"

#include <ATen/Functions.h>
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <optional>
#include <set>
#include <stdexcept>

#include "aimle/base/nearest.h"
#include "experiments/engine/batches.h"
#include "experiments/engine/event_log.h"
#include "experiments/engine/live_progress.h"
#include "experiments/engine/processes.h"
#include "experiments/engine/randomness.h"
#include "experiments/engine/saved_run.h"
#include "experiments/engine/sharing.h"
#include "experiments/engine/step_graph.h"
#include "experiments/process/failure.h"
#include "experiments/process/interrupt.h"
#include "experiments/process/shell_word.h"
#include "experiments/process/short_number.h"

namespace aimle::experiments {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double peak_memory_mib() {
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

/// Numbers that are not finite are null in the file. If they were numbers here, a resumed run could
/// select another epoch.
Json as_in_the_file(const Json& line) { return Json::parse(line.dump()); }

Batches batches_of(const Run& run, const Training& training, at::Device device) {
  return Batches(run.settings.get<int64_t>("seed"), training.examples,
                 run.settings.get<int64_t>("batch"), training.shuffle, training.epoch_steps,
                 device);
}

class Trainer {
 public:
  Trainer(const Run& run, Training training, Progress& progress)
      : run_(run),
        training_(std::move(training)),
        progress_(progress),
        seed_(run.settings.get<int64_t>("seed")),
        epochs_(run.settings.get<int64_t>("epochs")),
        device_(training_.model.begin()->second.device()),
        batches_(batches_of(run, training_, device_)),
        steps_(batches_.epoch_steps()),
        step_([this](const Batch& batch) { take_step(batch); }),
        // A recorded step would leave out the sums over processes that backward starts.
        recorded_(run.settings.get<bool>("graph") && StepGraph::possible(device_) &&
                  !processes().several()),
        sharing_(training_.estimator),
        saved_(run_, training_) {}

  std::vector<Json> run() {
    if (is_first_) {
      saved_.resume(state_, device_);
      open_logs();
    }
    if (processes().several()) begin_together();
    if (is_first_ && training_.evaluate_first && metrics_.empty()) {
      unless_interrupted([&] { measure_first(); });
    }
    while (position_.epoch < epochs_) {
      train_epoch();
      end_epoch();
    }
    return metrics_;
  }

  /// For `aimle watch`: "finished", "interrupted" or "failed", and why.
  void end(const std::string& state, const std::string& message = "") {
    if (live_) live_->end(state, message);
  }

  /// After an error: what epochs before it have found.
  void save_best() {
    try {
      saved_.save_best();
    } catch (const std::exception&) {  // the first error is the better message
    }
  }

 private:
  /// From where the first process is, which alone has read the folder.
  void begin_together() {
    for (const auto* tensors : {&training_.model, &training_.state}) {
      for (const auto& [name, tensor] : *tensors) take_from_first(tensor);
    }
    sums_.share_names();
    at::Tensor place = at::tensor({position_.epoch, position_.step}, at::kLong);
    take_from_first(place);
    position_.epoch = place[0].item<int64_t>();
    position_.step = place[1].item<int64_t>();
    if (position_.step > 0) sums_.share_sums(device_);
  }

  void open_logs() {
    live_.emplace(run_.folder.progress(), run_position());
    if (run_.settings.get<bool>("tensorboard")) {
      events_.emplace(run_.folder, run_position(), metrics_);
      sums_.keep_last_step();
    }
  }

  RunPosition run_position() const {
    return {.epoch = position_.epoch, .epochs = epochs_, .step = position_.step, .steps = steps_};
  }

  void train_epoch() {
    const auto start = Clock::now();
    const double before = position_.seconds;
    const at::Tensor keys = noise_keys(seed_, Purpose::kTrain, first_step(), steps_, device_);
    position_.engine_seconds += seconds_since(start);
    while (position_.step < steps_) {
      const auto begun = Clock::now();
      const int64_t step = first_step() + position_.step;
      const Batch batch = Sharing::own_part(
          {.rows = batches_.rows(step), .key = keys[position_.step], .step = step});
      position_.engine_seconds += seconds_since(begun);
      run_step(batch);
      ++position_.step;
      pass_step(step);
      ++pending_;
      // Reading a value waits for a GPU, so it is read only if something will be shown. The wait
      // counts as the time of steps, not of the engine.
      if (device_.is_cpu() || shows_now()) check_finite();
      if (events_ && events_->is_due(step + 1)) log_step(step);
      const auto stepped = Clock::now();
      position_.seconds = before + seconds_since(start);
      after_step();
      position_.engine_seconds += seconds_since(stepped);
      position_.seconds = before + seconds_since(start);
    }
  }

  void run_step(const Batch& batch) {
    const bool changed = training_.schedule(batch.step);
    if (!recorded_) {
      take_step(batch);
      return;
    }
    if (changed) step_.record_again();
    step_.run(batch);
  }

  void take_step(const Batch& batch) {
    sums_.add(training_.step(batch), batch.rows.size(0), sharing_);
  }

  void log_step(int64_t step) {
    const auto examples = static_cast<double>(batches_.examples_in(step, step + 1));
    LiveProgress::Values values = sums_.of_last_step();
    for (auto& [name, value] : values) value /= examples;
    for (const auto& entry : state_values()) values.push_back(entry);
    events_->add_step(step + 1, values);
  }

  LiveProgress::Values state_values() const {
    LiveProgress::Values values;
    for (const auto& [name, value] : training_.watch()) {
      values.emplace_back(name, value.item<double>());
    }
    return values;
  }

  bool shows_now() const {
    return is_first_ && pending_ > 0 &&
           (interrupt_signal() != 0 || seconds_since(shown_) > 0.1 || position_.step == steps_);
  }

  void after_step() {
    if (shows_now()) show();
    if (const int signal = sharing_.signal_at_step(position_.step)) save_and_stop(signal);
    if (!is_first_) return;
    if (position_.step < steps_ && saved_.is_due(position_.step)) save();
  }

  [[noreturn]] void save_and_stop(int signal) {
    const KeepAlive saving;
    if (is_first_ && (position_.epoch > 0 || position_.step > 0)) save();
    throw Stopped(signal, "stopped at epoch " + std::to_string(position_.epoch + 1) + ", step " +
                              std::to_string(position_.step) + "; continue with --resume --out " +
                              shell_word(run_.folder.path.string()));
  }

  /// For an evaluation, which leaves the training unchanged if it is interrupted.
  void unless_interrupted(const std::function<void()>& evaluation) {
    try {
      stop_if_interrupted();
      evaluation();
    } catch (const Interrupted& interrupted) {
      save_and_stop(interrupted.signal);
    }
  }

  double mean_loss() const {
    if (const auto loss = sums_.of_epoch("loss")) return *loss / examples_seen();
    throw Failure("the experiment " + run_.experiment->name + " returned no loss");
  }

  void check_finite() const {
    if (std::isfinite(mean_loss())) return;
    throw_not_finite("the loss");
  }

  [[noreturn]] void throw_not_finite(const std::string& what) const {
    const bool saved = std::filesystem::exists(run_.folder.checkpoint());
    throw Failure(what + " is not finite at epoch " + std::to_string(position_.epoch + 1) +
                  ", step " + std::to_string(position_.step) + " of " + run_.folder.path.string() +
                  (saved ? "; the last good checkpoint is " + run_.folder.checkpoint().string()
                         : "; there is no checkpoint yet") +
                  ". A smaller --lr may help.");
  }

  void show() {
    std::string note = run_.label.empty() ? "" : run_.label + ", ";
    note +=
        "epoch " + std::to_string(position_.epoch + 1) + ", loss " + short_number(mean_loss(), 4);
    const LiveProgress::Values state = state_values();
    for (const auto& [name, value] : state) note += ", " + name + " " + short_number(value, 4);
    live_->add(run_position(), sums_.of_epoch(), examples_seen(), state);
    live_->publish();
    progress_.step(note, pending_);
    pending_ = 0;
    shown_ = Clock::now();
  }

  void save() {
    check_finite_model();
    if (events_) events_->flush();
    saved_.save(state_);
  }

  void check_finite_model() const {
    if (position_.step > 0) check_finite();
    for (const auto& [name, tensor] : training_.model) {
      if (tensor.is_floating_point() && !tensor.detach().sum().isfinite().item<bool>()) {
        throw_not_finite("the tensor " + name);
      }
    }
  }

  void end_epoch() {
    if (is_first_) {
      measure_epoch();
    } else {
      next_epoch();
    }
    const int signal = signal_of_any();  // the others wait for the evaluation here
    if (signal != 0 && position_.epoch < epochs_) save_and_stop(signal);
  }

  void next_epoch() {
    position_ = {.epoch = position_.epoch + 1};
    sums_.clear();
  }

  void measure_epoch() {
    const auto start = Clock::now();
    Json line;
    line["epoch"] = position_.epoch + 1;
    for (const auto& [name, sum] : sums_.of_epoch()) {
      line[name == "loss" ? "train_loss" : name] = sum / examples_seen();
    }
    for (const auto& [name, value] : state_values()) line[name] = value;
    const at::Tensor key = noise_keys(seed_, Purpose::kEvaluate, position_.epoch, 1, device_)[0];
    unless_interrupted([&] {
      for (const auto& [name, value] : training_.evaluate(key)) line[name] = value;
    });
    const double evaluated = seconds_since(start);
    if (run_.must_select && !line.contains(run_.select)) throw_no_metric(line);

    const bool last = position_.epoch + 1 == epochs_;
    if (last || seconds_since(drawn_) > 10.0) draw();
    line["seconds"] = position_.seconds;
    line["examples_per_second"] = examples_seen() / position_.seconds;
    line["seconds_engine"] = position_.engine_seconds;
    line["seconds_evaluate"] = evaluated;
    line["peak_memory_mib"] = peak_memory_mib();
    metrics_.push_back(as_in_the_file(line));
    next_epoch();

    const KeepAlive saving;
    show_metrics(run_.folder, metrics_);
    if (events_) events_->add_epoch(metrics_.back());
    if (&best_epoch(run_, metrics_) == &metrics_.back()) saved_.keep_best(position_.epoch);
    if (last || saved_.is_due()) save();
    tell(line);
  }

  void measure_first() {
    // No training yet, so no training loss: null in the file, and never the best.
    Json line = {{"epoch", 0}, {"train_loss", nullptr}};
    show_phase("train " + run_.experiment->name + ": evaluating the untrained model");
    const at::Tensor key = noise_keys(seed_, Purpose::kEvaluate, -1, 1, device_)[0];
    for (const auto& [name, value] : training_.evaluate(key)) line[name] = value;
    metrics_.push_back(as_in_the_file(line));
    show_metrics(run_.folder, metrics_);
    if (events_) events_->add_epoch(metrics_.back());
    tell(line);
  }

  [[noreturn]] void throw_no_metric(const Json& line) const {
    std::vector<std::string> names;
    for (const auto& entry : line.items()) names.push_back(entry.key());
    throw Failure("--select: there is no metric " + run_.select + did_you_mean(run_.select, names) +
                  " in " + Json(names).dump() + "; val_ metrics need --validation > 0");
  }

  void draw() {
    const at::Tensor key = noise_keys(seed_, Purpose::kPictures, 0, 1, device_)[0];
    for (const Picture& picture : training_.pictures(key)) write_picture(run_.folder, picture);
    if (const Json exhibits = training_.exhibits(key); !exhibits.is_null()) {
      write_exhibits(run_.folder, exhibits);
    }
    drawn_ = Clock::now();
  }

  void tell(const Json& line) const {
    std::string text = run_.label.empty() ? "" : run_.label + ": ";
    text += "epoch " + std::to_string(position_.epoch) + "/" + std::to_string(epochs_);
    for (const auto& [name, value] : line.items()) {
      const bool shown =
          name.find("_loss") != std::string::npos || name == "alpha" || name == run_.select;
      if (shown && value.is_number())
        text += "  " + name + " " + short_number(value.get<double>(), 4);
    }
    say(text);
  }

  int64_t first_step() const { return position_.epoch * steps_; }
  double examples_seen() const {
    return static_cast<double>(batches_.examples_in(first_step(), first_step() + position_.step));
  }

  const Run& run_;
  Training training_;
  Progress& progress_;
  const bool is_first_ = processes().is_first();
  int64_t seed_;
  int64_t epochs_;
  at::Device device_;
  Batches batches_;
  int64_t steps_;  // of an epoch
  StepGraph step_;
  bool recorded_;  // else step_ is not used
  Sharing sharing_;

  SavedRun saved_;
  RunState state_;
  Position& position_ = state_.position;
  StepSums& sums_ = state_.sums;
  std::vector<Json>& metrics_ = state_.metrics;
  std::optional<LiveProgress> live_;  // of the first process
  std::optional<EventLog> events_;    // the same, with --tensorboard
  int64_t pending_ = 0;               // steps not yet reported to the progress
  Clock::time_point shown_ = Clock::now();
  Clock::time_point drawn_ = {};
};

}  // namespace

bool may_change(const std::string& setting) {
  static const std::set<std::string> kNames = {
      "epochs", "checkpoint_seconds", "checkpoint_steps", "graph", "data", "tensorboard"};
  return kNames.contains(setting);
}

double direction(const Experiment& experiment, const std::string& metric) {
  for (const std::string& name : experiment.maximised) {
    if (name == metric) return -1.0;
  }
  return 1.0;
}

const Json& best_epoch(const Run& run, const std::vector<Json>& metrics) {
  const bool known = metrics.front().contains(run.select);
  const std::string metric = known ? run.select : "train_loss";
  const double sign = direction(*run.experiment, metric);
  const Json* best = &metrics.front();
  for (const Json& line : metrics) {
    const bool better = line.at(metric).is_number() && (!best->at(metric).is_number() ||
                                                        sign * line.at(metric).get<double>() <
                                                            sign * best->at(metric).get<double>());
    if (better) best = &line;
  }
  return *best;
}

int64_t steps_left(const Run& run, const Training& training) {
  const int64_t steps = batches_of(run, training, at::kCPU).epoch_steps();
  const Position saved = saved_position(run.folder);
  const int64_t done = saved.epoch * steps + saved.step;
  return std::max<int64_t>(0, run.settings.get<int64_t>("epochs") * steps - done);
}

std::vector<Json> train(const Run& run, Training training, Progress& progress) {
  Trainer trainer(run, std::move(training), progress);
  try {
    std::vector<Json> metrics = trainer.run();
    trainer.end("finished");
    return metrics;
  } catch (const Stopped& stopped) {
    trainer.end("interrupted", stopped.what());
    throw;
  } catch (const std::exception& error) {
    trainer.save_best();
    trainer.end("failed", error.what());
    throw;
  }
}

}  // namespace aimle::experiments
