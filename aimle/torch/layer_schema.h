// The schemas of the layer ops, in one place because they share their settings.
#pragma once

#include <cstdint>
#include <string>

namespace aimle::ops {

/// The settings of a layer, the same for every op:
///   solver, solver_args   "argmax" [], "topk" [k], "spanning_tree" [vertices],
///                         "grid_path" [neighbourhood, row, column (source), row, column (target),
///                         refuse negative costs], or "callable" [1 if it minimises, dimensions of
///                         an instance, 1 if all solutions have the same number of ones] (staged
///                         ops only)
///   choices               words with a space between them:
///     noise               "none", "gumbel", "normal", "logistic", "sum_of_gamma"
///     sense               "max" or "min": is theta maximised or a cost
///     output              "samples", "flat", "mean"
///     difference          "central", "forward", "straight_through", "thresholds"
///     target              "fixed", or "adaptive" scope scale rule and "paper" or "reference", or
///                         "thresholds" density and "first" or "trapezoid"
///   counts                [samples, adapt (1 if backward updates the state), check (as for the
///                         solvers)]
///   scales                [standard deviation of the noise, temperatures of theta and of the
///                         target, what is subtracted from the noise (0 unless solutions vary in
///                         size: "grid_path", "callable"), then the target's: lambda, or step,
///                         target_norm (-1: automatic), decay, factor, alpha_min, alpha_max (0:
///                         none), momentum, or max_weight]
/// They are few because every argument of an op costs time at every call, a string most of all.
inline const std::string kLayerSettings =
    "str solver, int[] solver_args, str choices, int[] counts, float[] scales";
inline constexpr size_t kLayerSettingsCount = 5;

inline const std::string kLayerInputs =
    "Tensor theta, Tensor key, Tensor? mask, Tensor? k, Tensor? table";
inline constexpr size_t kLayerInputsCount = 5;

inline const std::string kReadState =
    "Tensor? alpha, Tensor? gbar, Tensor? updates, Tensor? memory, Tensor? stats";
inline const std::string kWrittenState =
    "Tensor(a!)? alpha, Tensor(b!)? gbar, Tensor(c!)? updates, Tensor(d!)? memory,"
    " Tensor(e!)? stats";
inline constexpr size_t kLayerStateCount = 5;

}  // namespace aimle::ops
