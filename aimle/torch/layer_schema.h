// The schemas of the layer ops, in one place because they share their settings.
#pragma once

#include <cstdint>
#include <string>

namespace aimle::ops {

/// The settings of a layer, the same for every op:
///   solver, solver_args   "argmax" [], "topk" [k], "spanning_tree" [vertices],
///                         "grid_path" [neighbourhood, row, column (source), row, column (target),
///                         refuse negative costs], or "callable" [1 if it minimises, dimensions of
///                         an instance] (staged ops only)
///   noise, noise_stddev   "none", "gumbel", "normal", "logistic", "sum_of_gamma"
///   samples, temperatures [of theta, of the target]
///   sense                 "max" or "min": is theta maximised or a cost
///   output                "samples", "flat", "mean"
///   difference            "central", "forward", "straight_through", "thresholds"
///   target, target_args   ["fixed"] [lambda], or ["adaptive", scope, scale, rule, "paper" or
///                         "reference"] [step, target_norm, decay, factor, alpha_min, alpha_max
///                         (0: none), momentum], or ["thresholds", density, "first" or
///                         "trapezoid"] [max_weight]
///   adapt                 whether backward updates the state
///   check                 as for the solvers
inline const std::string kLayerSettings =
    "str solver, int[] solver_args, str noise, float noise_stddev, int samples,"
    " float[] temperatures, str sense, str output, str difference, str[] target,"
    " float[] target_args, bool adapt, int check";
inline constexpr int64_t kLayerSettingsCount = 13;

inline const std::string kLayerInputs =
    "Tensor theta, Tensor key, Tensor? mask, Tensor? k, Tensor? table";
inline constexpr int64_t kLayerInputsCount = 5;

inline const std::string kReadState =
    "Tensor? alpha, Tensor? gbar, Tensor? updates, Tensor? velocity, Tensor? stats";
inline const std::string kWrittenState =
    "Tensor(a!)? alpha, Tensor(b!)? gbar, Tensor(c!)? updates, Tensor(d!)? velocity,"
    " Tensor(e!)? stats";
inline constexpr int64_t kLayerStateCount = 5;

}  // namespace aimle::ops
