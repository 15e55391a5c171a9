#include "experiments/engine/event_log.h"

#include <algorithm>
#include <string_view>

namespace aimle::experiments {
namespace {

constexpr std::string_view kEpoch = "epoch/", kStep = "step/";

EventFile::Keep up_to(const RunPosition& position, bool has_metrics) {
  // An epoch that was measured before any was in a checkpoint is measured again.
  const int64_t last_epoch = has_metrics ? position.epoch * position.steps : -1;
  const int64_t last_step = position.steps_done();
  return [=](int64_t step, std::string_view tag) {
    return step <= (tag.starts_with(kEpoch) ? last_epoch : last_step);
  };
}

}  // namespace

EventLog::EventLog(const RunFolder& folder, const RunPosition& position,
                   const std::vector<Json>& metrics)
    : steps_(position.steps), file_(folder.events(), up_to(position, !metrics.empty())) {
  const auto there = std::count_if(file_.kept().begin(), file_.kept().end(), [](const auto& event) {
    return event.second.starts_with(kEpoch);
  });
  for (auto i = there; i < std::ssize(metrics); ++i) add_epoch(metrics[static_cast<size_t>(i)]);
}

bool EventLog::is_due(int64_t steps_done) const {
  const int64_t every = (steps_ + kStepsPerEpoch - 1) / kStepsPerEpoch;
  return steps_done % every == 0;
}

void EventLog::add_step(int64_t steps_done, const LiveProgress::Values& values) {
  LiveProgress::Values named;
  for (const auto& [name, value] : values) named.emplace_back(std::string(kStep) + name, value);
  file_.add(steps_done, std::move(named));
}

void EventLog::add_epoch(const Json& line) {
  LiveProgress::Values named;
  for (const auto& [name, value] : line.items()) {
    if (name == "epoch" || !value.is_number()) continue;
    named.emplace_back(std::string(kEpoch) + name, value.get<double>());
  }
  file_.add(line.at("epoch").get<int64_t>() * steps_, std::move(named));
}

}  // namespace aimle::experiments
