#include "experiments/engine/saved_run.h"

#include <filesystem>
#include <optional>
#include <stdexcept>

#include "experiments/process/failure.h"

namespace aimle::experiments {
namespace {

Position position_in(const Checkpoint& checkpoint, const std::filesystem::path& file) {
  try {
    return {.epoch = checkpoint.integers.at("epoch"),
            .step = checkpoint.integers.at("step"),
            .seconds = checkpoint.numbers.at("seconds"),
            .engine_seconds = checkpoint.numbers.at("engine_seconds")};
  } catch (const std::out_of_range&) {
    throw Failure(file.string() + " has no position to continue from; start again with --force");
  }
}

std::optional<FoundCheckpoint> checkpoint_in(const RunFolder& folder) {
  return find_checkpoint(folder.checkpoint(), folder.previous_checkpoint());
}

}  // namespace

Position saved_position(const RunFolder& folder) {
  const auto found = checkpoint_in(folder);
  return found ? position_in(found->checkpoint, folder.checkpoint()) : Position{};
}

void SavedRun::resume(RunState& state, at::Device device) {
  saved_ = std::chrono::steady_clock::now();
  const std::optional<FoundCheckpoint> found = checkpoint_in(run_.folder);
  if (!found) return;
  const Checkpoint& checkpoint = found->checkpoint;
  check_settings(checkpoint);
  restore(training_.model, checkpoint, "model");
  restore(training_.state, checkpoint, "state");
  state.position = position_in(checkpoint, run_.folder.checkpoint());
  if (state.position.step > 0) state.sums.restore(checkpoint, device);
  if (!found->fault.empty()) use_previous(found->fault, state.position);
  state.metrics = restored_metrics(checkpoint.texts.at("metrics"), state.position);
  saved_lines_ = state.metrics.size();
}

/// A resumed run keeps the settings it was started with.
void SavedRun::check_settings(const Checkpoint& checkpoint) const {
  const auto found = checkpoint.texts.find("settings");
  if (found == checkpoint.texts.end()) return;
  const Json now = run_.settings.to_json();
  const Json before = Json::parse(found->second);
  for (const auto& [name, value] : before.items()) {
    if (may_change(name) || !now.contains(name) || now[name] == value) continue;
    throw Failure(run_.folder.config().string() + ": " + name + " is " + now[name].dump() +
                  ", but the checkpoint is of a run with " + value.dump() +
                  ": the file is damaged or was changed; restore the value, or start again with "
                  "--force");
  }
}

/// Replaces the newest one, which would otherwise be kept as the previous one of the next.
void SavedRun::use_previous(const std::string& fault, const Position& position) const {
  warn(fault + ": continuing from " + run_.folder.previous_checkpoint().string() + " at epoch " +
       std::to_string(position.epoch + 1) + ", step " + std::to_string(position.step) +
       "; the steps after it are computed again");
  std::filesystem::rename(run_.folder.previous_checkpoint(), run_.folder.checkpoint());
}

/// Lines that were written after the checkpoint will be computed again.
std::vector<Json> SavedRun::restored_metrics(const std::string& saved,
                                             const Position& position) const {
  std::vector<Json> metrics = parse_metrics(run_.folder.checkpoint(), saved);
  std::vector<Json> there;
  try {
    there = read_metrics(run_.folder);
    std::erase_if(
        there, [&](const Json& line) { return line.value("epoch", int64_t{0}) > position.epoch; });
  } catch (const std::exception&) {  // no metrics
  }
  if (there != metrics) {
    warn(run_.folder.metrics().string() + " is damaged: its lines are restored from " +
         run_.folder.checkpoint().string());
    write_metrics(run_.folder, metrics);
  }
  return metrics;
}

bool SavedRun::is_due(int64_t step) const {
  const auto every = run_.settings.get<int64_t>("checkpoint_steps");
  return every > 0 ? step % every == 0 : is_due();
}

bool SavedRun::is_due() const {
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - saved_;
  return passed.count() >= run_.settings.get<double>("checkpoint_seconds");
}

void SavedRun::save(const RunState& state) {
  if (state.metrics.size() != saved_lines_) write_metrics(run_.folder, state.metrics);
  saved_lines_ = state.metrics.size();
  save_best();
  const Position& position = state.position;
  Checkpoint checkpoint;
  checkpoint.groups["model"] = training_.model;
  checkpoint.groups["state"] = training_.state;
  checkpoint.integers = {{"epoch", position.epoch}, {"step", position.step}};
  checkpoint.numbers = {{"seconds", position.seconds}, {"engine_seconds", position.engine_seconds}};
  checkpoint.texts = {{"settings", run_.settings.to_json().dump()},
                      {"metrics", spell_metrics(state.metrics)}};
  state.sums.save(checkpoint, /*with_sums=*/position.step > 0);
  save_checkpoint(run_.folder.checkpoint(), checkpoint, run_.folder.previous_checkpoint());
  saved_ = std::chrono::steady_clock::now();
}

void SavedRun::keep_best(int64_t epoch) {
  best_.emplace();
  for (const auto& [name, tensor] : training_.model) {
    best_->groups["model"][name] = tensor.detach().clone();
  }
  best_->integers["epoch"] = epoch;
  best_->texts["settings"] = run_.settings.to_json().dump();
}

void SavedRun::save_best() {
  if (!best_) return;
  save_checkpoint(run_.folder.best(), *best_);
  best_.reset();
}

}  // namespace aimle::experiments
