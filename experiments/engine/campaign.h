// One `aimle train`: a single run, or several runs with different seeds and settings in parallel on
// the same data.
//
//   DIR                         one run
//   DIR/seed-0, DIR/seed-1 …    --seeds 0-9
//   DIR/lambda=10,lr=0.001 …    --grid lambda=1,10 --grid lr=1e-3,1e-4; with seeds below each
//   DIR/summary.json            for several runs: means, deviations, errors, the best cell
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/engine/campaign_text.h"
#include "experiments/engine/experiment.h"
#include "experiments/engine/worker_runs.h"

namespace aimle::experiments {

struct Campaign {
  const Experiment* experiment = nullptr;
  Settings settings;
  std::filesystem::path out;
  std::vector<int64_t> seeds;  // empty: the setting `seed` alone
  std::vector<GridAxis> grid;
  std::string select;  // empty: the experiment's default
  bool resume = false;
  bool force = false;
  int64_t threads = 0;  // in total; 0: those of a resumed run, otherwise one per core
  std::string command;  // as the user wrote it, for config.json
  std::string workers;  // which processes do the runs (worker_runs.h); empty: this one
};

/// Executes all runs and writes the summary. With `resume`, runs take their settings from their
/// folders, and complete ones are skipped; throws Failure if the user gave another value for an
/// option that cannot change during a run.
void conduct(const Campaign& campaign);

/// Prepares the folders of a campaign for workers and returns the runs that are not complete. None
/// if it is a single run, which has all threads of the machine it is on; nothing is prepared then.
/// `conduct` with `resume` then writes the summary.
std::vector<WorkerRun> prepare_worker_runs(const Campaign& campaign);

}  // namespace aimle::experiments
