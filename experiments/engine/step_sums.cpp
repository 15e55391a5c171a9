#include "experiments/engine/step_sums.h"

#include <ATen/Functions.h>

#include <nlohmann/json.hpp>

#include "experiments/engine/processes.h"

namespace aimle::experiments {
namespace {

std::string spell_names(const std::vector<std::string>& names) {
  return nlohmann::json(names).dump();
}

std::vector<std::string> read_names(const std::string& text) {
  return nlohmann::json::parse(text).get<std::vector<std::string>>();
}

}  // namespace

void StepSums::add(const Scalars& scalars, int64_t weight, Sharing& sharing) {
  std::vector<at::Tensor> values;
  names_.clear();
  for (const auto& [name, value] : scalars) {
    names_.push_back(name);
    values.push_back(value.detach().to(at::kDouble));
  }
  const at::Tensor sums = sharing.sum(at::stack(values).mul_(static_cast<double>(weight)));
  if (epoch_.defined()) {
    epoch_.add_(sums);
  } else {
    epoch_ = sums;
  }
  if (!keeps_last_) return;
  if (last_.defined()) {
    last_.copy_(sums);  // at the same address in a recorded step and any other
  } else {
    last_ = sums.clone();
  }
}

StepSums::Values StepSums::named(const at::Tensor& sums) const {
  const at::Tensor read = sums.cpu();
  Values values;
  for (size_t i = 0; i < names_.size(); ++i) {
    values.emplace_back(names_[i], read[static_cast<int64_t>(i)].item<double>());
  }
  return values;
}

std::optional<double> StepSums::of_epoch(const std::string& name) const {
  for (size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] == name) return epoch_[static_cast<int64_t>(i)].item<double>();
  }
  return std::nullopt;
}

void StepSums::save(Checkpoint& checkpoint, bool with_sums) const {
  if (with_sums) checkpoint.groups["totals"]["sums"] = epoch_;
  checkpoint.texts["totals_names"] = spell_names(names_);
}

void StepSums::restore(const Checkpoint& checkpoint, at::Device device) {
  epoch_ = checkpoint.groups.at("totals").at("sums").to(device);
  names_ = read_names(checkpoint.texts.at("totals_names"));
}

void StepSums::share_names() { names_ = read_names(take_from_first(spell_names(names_))); }

void StepSums::share_sums(at::Device device) {
  if (!processes().is_first()) {
    epoch_ =
        at::zeros({static_cast<int64_t>(names_.size())}, at::device(device).dtype(at::kDouble));
  }
  take_from_first(epoch_);
}

}  // namespace aimle::experiments
