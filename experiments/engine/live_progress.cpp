#include "experiments/engine/live_progress.h"

#include <cmath>
#include <cstdlib>

#include "experiments/data/input_file.h"
#include "experiments/process/atomic_file.h"
#include "experiments/process/bytes_in_json.h"
#include "experiments/process/short_number.h"

namespace aimle::experiments {
namespace {

constexpr auto kPause = std::chrono::seconds(1);

/// With six digits; null if it is not finite.
Json brief(double value) {
  return std::isfinite(value) ? Json(std::strtod(short_number(value).c_str(), nullptr)) : Json();
}

}  // namespace

LiveProgress::LiveProgress(std::filesystem::path file, const RunPosition& position)
    : file_(std::move(file)), position_(position), time_left_(position.epochs * position.steps) {
  read_points();
  write();
}

void LiveProgress::read_points() {
  if (position_.steps_done() == 0) return;
  try {
    const Json before = Json::parse(data::read_input_file(file_));
    for (const Json& line : before.at("points")) {
      std::vector<double> point;
      for (const Json& value : line) point.push_back(value.is_null() ? NAN : value.get<double>());
      if (point.at(0) <= static_cast<double>(position_.steps_done())) points_.push_back(point);
    }
    names_ = before.at("names").get<std::vector<std::string>>();
  } catch (const std::exception&) {  // there is none, or it is damaged
    points_.clear();
  }
}

void LiveProgress::add(const RunPosition& position, const Values& sums, double examples,
                       const Values& state) {
  position_ = position;
  seconds_left_ = time_left_.seconds(position.steps_done(), Clock::now());
  if (position.epoch != summed_epoch_ || sums_.size() != sums.size()) {
    summed_epoch_ = position.epoch;
    sums_.assign(sums.size(), 0.0);
    examples_ = 0;
  }
  std::vector<std::string> names = {"step"};
  for (const auto& [name, value] : sums) names.push_back(name);
  for (const auto& [name, value] : state) names.push_back(name);
  if (names != names_) points_.clear();
  const auto step = static_cast<double>(position.steps_done());
  const bool due = points_.empty() || step >= points_.back().front() + static_cast<double>(stride_);
  if (!due || examples <= examples_) return;

  names_ = std::move(names);
  std::vector<double> point = {step};
  for (size_t i = 0; i < sums.size(); ++i) {
    point.push_back((sums[i].second - sums_[i]) / (examples - examples_));
    sums_[i] = sums[i].second;
  }
  for (const auto& [name, value] : state) point.push_back(value);
  points_.push_back(std::move(point));
  examples_ = examples;
  if (points_.size() <= kMostPoints) return;
  std::vector<std::vector<double>> thinned;
  for (size_t i = 0; i < points_.size(); i += 2) thinned.push_back(std::move(points_[i]));
  points_ = std::move(thinned);
  stride_ = std::max<int64_t>(2 * stride_, position.steps_done() / std::ssize(points_));
}

void LiveProgress::publish(Clock::time_point now) {
  if (written_ && now - *written_ < kPause) return;
  written_ = now;
  write();
}

void LiveProgress::end(const std::string& state, const std::string& message) {
  state_ = state;
  message_ = message;
  seconds_left_.reset();
  if (state == "finished") position_.epoch = position_.epochs, position_.step = 0;
  write();
}

Json LiveProgress::to_json() const {
  Json points = Json::array();
  for (const std::vector<double>& point : points_) {
    Json line = Json::array();
    line.push_back(static_cast<int64_t>(point.front()));
    for (size_t i = 1; i < point.size(); ++i) line.push_back(brief(point[i]));
    points.push_back(std::move(line));
  }
  return {{"state", state_},
          {"message", to_json_text(message_)},
          {"epoch", position_.epoch},
          {"epochs", position_.epochs},
          {"step", position_.step},
          {"steps", position_.steps},
          {"seconds_left", seconds_left_ ? brief(*seconds_left_) : Json()},
          {"names", names_},
          {"points", points}};
}

void LiveProgress::write() {
  try {
    write_for_readers(file_, to_json().dump() + "\n");
  } catch (const std::exception&) {  // a full disk: the run's own files report it
  }
}

}  // namespace aimle::experiments
