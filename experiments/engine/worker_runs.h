// Runs of a campaign that other processes do: one for each GPU of this machine, or tasks of a Ray
// cluster (`--workers`).
//
// The program prepares the folder of every run with its config.json. The Python package
// (aimle.program.campaign) starts `aimle train … --resume` in each folder and waits for all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace aimle::experiments {

/// A run that is not complete, in a folder that is prepared.
struct WorkerRun {
  std::string experiment;
  std::filesystem::path folder;
  std::string label;   // for messages
  std::string select;  // the metric that the user or a grid needs; empty: the experiment's
  std::string device;
};

/// "gpus", "gpus:0,2", "ray" or "ray:ADDRESS"; throws Failure for anything else.
void check_workers(const std::string& text);
/// Whether these workers can train there; throws Misuse.
void check_workers(const std::string& text, const std::string& device);

/// Does the runs, whose folders are below `out`, `at_once` at most (0: as many as the workers take).
/// Throws Explained if some of them failed, after the others were done, and Stopped after a signal,
/// when the runs have saved their work.
void do_on_workers(const std::string& workers, const std::filesystem::path& out,
                   const std::vector<WorkerRun>& runs, int64_t at_once);

}  // namespace aimle::experiments
