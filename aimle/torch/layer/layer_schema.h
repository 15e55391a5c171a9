// The schemas of the layer ops, in one place because they share their settings.
#pragma once

#include <string>

namespace aimle::ops {

/// One text (layer_settings.h), because every argument of an op costs time at every call, and what
/// may change between calls.
inline const std::string kLayerSettings =
    "str settings, float theta_temperature, float target_temperature";
inline constexpr size_t kLayerSettingsCount = 3;

inline const std::string kLayerInputs =
    "Tensor theta, Tensor key, Tensor? mask, Tensor? row_data, Tensor? table";
inline constexpr size_t kLayerInputsCount = 5;
inline constexpr size_t kLayerKey = 1;  // its place

/// Those of `perturbed_map`, which draws a key if there is none.
inline const std::string kCallInputs =
    "Tensor theta, Tensor? key, Tensor? mask, Tensor? row_data, Tensor? table";

inline const std::string kReadState =
    "Tensor? alpha, Tensor? gbar, Tensor? updates, Tensor? memory, Tensor? stats";
inline const std::string kWrittenState =
    "Tensor(a!)? alpha, Tensor(b!)? gbar, Tensor(c!)? updates, Tensor(d!)? memory,"
    " Tensor(e!)? stats";
inline constexpr size_t kLayerStateCount = 5;

}  // namespace aimle::ops
