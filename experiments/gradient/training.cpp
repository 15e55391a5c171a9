#include "experiments/gradient/training.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <mutex>

#include "experiments/gradient/measure.h"
#include "experiments/process/interrupt.h"
#include "experiments/process/statistics.h"
#include "experiments/process/workers.h"

namespace aimle::experiments {
namespace {

/// A contestant with one number of samples and one learning rate; none means the true gradient.
struct Entry {
  std::optional<Contestant> contestant;
  int64_t samples = 0;
  double learning_rate = 0.0;

  std::string label() const { return contestant ? contestant->label : kTrueGradient; }
  std::optional<double> lambda() const { return contestant ? contestant->lambda() : std::nullopt; }
  bool made(const TrainingRow& row) const {
    return row.estimator == label() && row.samples == samples && row.lambda == lambda() &&
           row.learning_rate == learning_rate;
  }
};

std::vector<Entry> entries_of(const TrainingStudy& study) {
  std::vector<Entry> entries;
  for (const double rate : study.learning_rates) entries.push_back({std::nullopt, 0, rate});
  for (const Contestant& contestant : study.contestants) {
    for (const int64_t samples : study.samples) {
      if (samples < contestant.least_samples()) continue;
      for (const double rate : study.learning_rates) entries.push_back({contestant, samples, rate});
    }
  }
  return entries;
}

TrainingRow descend(const TrainingStudy& study, const Entry& entry, const Problem& start,
                    int64_t seed) {
  TrainingRow row{.estimator = entry.label(),
                  .samples = entry.samples,
                  .lambda = entry.lambda(),
                  .learning_rate = entry.learning_rate,
                  .seed = seed};
  const auto estimator =
      entry.contestant ? entry.contestant->build(start.solver, entry.samples) : nullptr;
  Problem now = start;
  const double least = least_loss(start);
  const double first = expected_loss(start, start.theta) - least;
  at::Tensor velocity = at::zeros_like(start.true_gradient);
  double cosines = 0.0;
  double norms = 0.0;
  Moments zeros;
  Moments gap;
  row.gaps.push_back(1.0);
  for (int64_t step = 0; step < study.steps; ++step) {
    stop_if_interrupted();
    const at::Tensor key =
        noise_key(static_cast<uint64_t>(study.n), static_cast<uint64_t>(entry.samples),
                  static_cast<uint64_t>(seed), static_cast<uint64_t>(step) + 1);
    const at::Tensor g = estimator ? estimate(*estimator, now, key) : now.true_gradient;
    const Measurement found = compare(g, now.true_gradient);
    const double norm = now.true_gradient.norm().item<double>();
    cosines += norm * found.cosine;
    norms += norm;
    zeros.add(found.zeros);
    velocity = study.momentum * velocity + g;
    now.theta = (now.theta - (entry.learning_rate * velocity).to(at::kFloat)).detach();
    solve_exactly(now);
    row.gaps.push_back((expected_loss(now, now.theta) - least) / first);
    gap.add(row.gaps.back());
  }
  row.average_gap = gap.mean();
  row.cosine = cosines / norms;
  row.zeros = zeros.mean();
  if (estimator != nullptr && estimator->state().contains("alpha")) {
    row.alpha = estimator->state().at("alpha").item<double>();
  }
  return row;
}

}  // namespace

int64_t count_descents(const TrainingStudy& study) {
  return static_cast<int64_t>(entries_of(study).size()) * study.seeds;
}

std::vector<TrainingRow> run_training(
    const TrainingStudy& study, int64_t threads, const std::vector<TrainingRow>& earlier,
    const AfterDescent& after,
    const std::function<void(const std::vector<TrainingRow>&)>& interrupted) {
  const std::vector<Entry> entries = entries_of(study);
  const auto seeds = static_cast<size_t>(study.seeds);
  std::vector<std::optional<TrainingRow>> slots(entries.size() * seeds);
  const auto slot_of = [&](size_t entry, int64_t seed) -> std::optional<TrainingRow>& {
    return slots[entry * seeds + static_cast<size_t>(seed)];
  };
  const auto collect = [&] {
    std::vector<TrainingRow> rows;
    for (const auto& slot : slots) {
      if (slot) rows.push_back(*slot);
    }
    return rows;
  };
  for (const TrainingRow& row : earlier) {
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].made(row) && row.seed < study.seeds) slot_of(i, row.seed) = row;
    }
  }
  std::mutex mutex;
  const auto is_done = [&](size_t entry, int64_t seed) {
    const std::scoped_lock lock(mutex);
    return slot_of(entry, seed).has_value();
  };
  run_tasks(
      study.seeds, threads,
      [&](int64_t seed) {
        const Problem problem =
            synthetic_problem(study.n, study.k, static_cast<uint32_t>(seed), study.is_signed);
        for (size_t i = 0; i < entries.size(); ++i) {
          if (interrupt_signal() != 0) return;
          if (is_done(i, seed)) continue;
          TrainingRow row = descend(study, entries[i], problem, seed);
          const std::scoped_lock lock(mutex);
          slot_of(i, seed) = std::move(row);
          after(entries[i].label(), collect);
        }
      },
      [&] {
        const std::scoped_lock lock(mutex);
        if (interrupted) interrupted(collect());
      });
  return collect();
}

}  // namespace aimle::experiments
