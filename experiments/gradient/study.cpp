#include "experiments/gradient/study.h"

#include <algorithm>
#include <mutex>

#include "experiments/process/interrupt.h"
#include "experiments/process/workers.h"

namespace aimle::experiments {
namespace {

struct Task {
  size_t size = 0;
  int64_t seed = 0;
};

/// Largest problems first, so that the last tasks are short.
std::vector<Task> tasks_of(const Study& study) {
  std::vector<Task> tasks;
  for (size_t size = 0; size < study.sizes.size(); ++size) {
    for (int64_t seed = 0; seed < study.seeds; ++seed) tasks.push_back({size, seed});
  }
  std::stable_sort(tasks.begin(), tasks.end(), [&](const Task& a, const Task& b) {
    return study.sizes[a.size] > study.sizes[b.size];
  });
  return tasks;
}

/// Warmed-up states, one for each adaptive contestant of a problem.
class WarmStates {
 public:
  WarmStates(const Study& study, const Problem& problem, uint64_t seed)
      : study_(study), problem_(problem), seed_(seed) {}

  void carry_to(const Contestant& contestant, const Estimator& estimator) {
    if (!contestant.is_adaptive()) return;
    for (const auto& [label, warm] : warm_) {
      if (label == contestant.label) return carry_state(*warm, estimator);
    }
    auto warm = contestant.build(problem_.solver,
                                 std::max(study_.warmup_samples, contestant.least_samples()));
    warm_up(*warm, problem_, study_.warmup, seed_);
    carry_state(*warm, estimator);
    warm_.emplace_back(contestant.label, std::move(warm));
  }

 private:
  const Study& study_;
  const Problem& problem_;
  uint64_t seed_;
  std::vector<std::pair<std::string, std::unique_ptr<Estimator>>> warm_;
};

}  // namespace

int64_t count_measurements(const Study& study) {
  return static_cast<int64_t>(study.cells.size() * study.sizes.size()) * study.seeds;
}

std::vector<Row> run_study(const Study& study, int64_t threads, const std::vector<Row>& earlier,
                           const std::function<void(const std::vector<Row>&)>& finished,
                           const std::function<void(const std::string&)>& step) {
  const std::vector<Task> tasks = tasks_of(study);
  const size_t seeds = static_cast<size_t>(study.seeds);
  std::vector<std::optional<Row>> slots(study.sizes.size() * study.cells.size() * seeds);
  const auto slot_of = [&](size_t size, size_t cell, int64_t seed) -> std::optional<Row>& {
    return slots[(size * study.cells.size() + cell) * seeds + static_cast<size_t>(seed)];
  };
  std::mutex mutex;
  const auto collect = [&] {
    std::vector<Row> rows;
    for (const auto& slot : slots) {
      if (slot) rows.push_back(*slot);
    }
    return rows;
  };

  for (const Row& row : earlier) {
    for (size_t size = 0; size < study.sizes.size(); ++size) {
      for (size_t cell = 0; cell < study.cells.size(); ++cell) {
        const auto& [contestant, samples] = study.cells[cell];
        if (row.n == study.sizes[size] && row.estimator == contestant.label &&
            row.samples == samples && row.lambda == contestant.lambda() && row.seed < study.seeds) {
          slot_of(size, cell, row.seed) = row;
        }
      }
    }
  }

  run_tasks(
      static_cast<int64_t>(tasks.size()), threads,
      [&](int64_t i) {
        const auto [size, seed] = tasks[static_cast<size_t>(i)];
        const auto is_done = [&, size = size, seed = seed](size_t cell) {
          const std::scoped_lock lock(mutex);
          return slot_of(size, cell, seed).has_value();
        };
        size_t done = 0;
        for (size_t cell = 0; cell < study.cells.size(); ++cell) done += is_done(cell) ? 1 : 0;
        if (done == study.cells.size()) return;
        const int64_t n = study.sizes[size];
        const Problem problem =
            synthetic_problem(n, study.k, static_cast<uint32_t>(seed), study.is_signed);
        WarmStates warm(study, problem, static_cast<uint64_t>(seed));
        for (size_t cell = 0; cell < study.cells.size(); ++cell) {
          if (interrupt_signal() != 0) return;
          if (is_done(cell)) continue;
          const auto& [contestant, samples] = study.cells[cell];
          const auto estimator = contestant.build(problem.solver, samples);
          warm.carry_to(contestant, *estimator);
          const at::Tensor key = noise_key(static_cast<uint64_t>(n), static_cast<uint64_t>(samples),
                                           static_cast<uint64_t>(seed), 0);
          Row row{.estimator = contestant.label,
                  .n = n,
                  .k = study.k,
                  .samples = samples,
                  .lambda = contestant.lambda(),
                  .seed = seed,
                  .measured = measure(*estimator, problem, key)};
          const std::scoped_lock lock(mutex);
          step(contestant.label + ", n = " + std::to_string(n) +
               ", S = " + std::to_string(samples));
          slot_of(size, cell, seed) = std::move(row);
        }
        const std::scoped_lock lock(mutex);
        finished(collect());
      },
      [&] {
        const std::scoped_lock lock(mutex);
        finished(collect());
      });
  return collect();
}

}  // namespace aimle::experiments
