// The commands, each in the file with its name.
#pragma once

#include <CLI/App.hpp>
#include <functional>

namespace aimle::experiments {
struct Campaign;
}

namespace aimle::cli {

void add_synth(CLI::App& app);
void add_diagnose(CLI::App& app);
void add_train(CLI::App& app);
/// The same, but `act` is called instead of the training.
void add_train(CLI::App& app, const std::function<void(const experiments::Campaign&)>& act);
void add_list(CLI::App& app);
void add_report(CLI::App& app);
void add_watch(CLI::App& app);
void add_data(CLI::App& app);
void add_paper(CLI::App& app);
void add_benchmark(CLI::App& app);
void add_completion(CLI::App& app);

}  // namespace aimle::cli
