// The words for settings in op schemas, options and on the command line: one table for each, from
// word to value and back.
#pragma once

#include <c10/util/Exception.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "aimle/base/shown_value.h"
#include "aimle/estimate/settings.h"

namespace aimle::ops {

template <class Value, size_t count>
using Words = std::array<std::pair<std::string_view, Value>, count>;

inline constexpr Words<NoiseKind, 5> kNoises = {{{"none", NoiseKind::kNone},
                                                 {"gumbel", NoiseKind::kGumbel},
                                                 {"normal", NoiseKind::kNormal},
                                                 {"logistic", NoiseKind::kLogistic},
                                                 {"sum_of_gamma", NoiseKind::kSumOfGamma}}};
inline constexpr Words<Sense, 2> kSenses = {{{"max", Sense::kMax}, {"min", Sense::kMin}}};
inline constexpr Words<Output, 3> kOutputs = {
    {{"samples", Output::kSamples}, {"flat", Output::kSamples}, {"mean", Output::kMean}}};
inline constexpr Words<Difference, 4> kDifferences = {
    {{"central", Difference::kCentral},
     {"forward", Difference::kForward},
     {"straight_through", Difference::kStraightThrough},
     {"thresholds", Difference::kThresholds}}};
inline constexpr Words<ThresholdTarget::Order, 2> kOrders = {
    {{"first", ThresholdTarget::Order::kFirst}, {"trapezoid", ThresholdTarget::Order::kTrapezoid}}};
inline constexpr Words<AdaptiveTarget::Scope, 3> kScopes = {
    {{"example", AdaptiveTarget::Scope::kExample},
     {"sample", AdaptiveTarget::Scope::kSample},
     {"batch", AdaptiveTarget::Scope::kBatch}}};
inline constexpr Words<AdaptiveTarget::Scale, 3> kScales = {
    {{"auto", AdaptiveTarget::Scale::kAuto},
     {"theta", AdaptiveTarget::Scale::kTheta},
     {"noise", AdaptiveTarget::Scale::kNoise}}};
inline constexpr Words<AdaptiveTarget::Rule, 2> kRules = {
    {{"additive", AdaptiveTarget::Rule::kAdditive},
     {"multiplicative", AdaptiveTarget::Rule::kMultiplicative}}};
inline constexpr Words<bool, 2> kVariants = {{{"paper", false}, {"reference", true}}};

/// The value of a word; throws ValueError with the owner and the allowed words.
template <class Value, size_t count>
Value parse_word(std::string_view owner, std::string_view argument, std::string_view word,
                 const Words<Value, count>& allowed) {
  for (const auto& [known, value] : allowed) {
    if (known == word) return value;
  }
  std::string words;
  for (const auto& [known, value] : allowed) {
    words += (words.empty() ? "\"" : ", \"") + std::string(known) + "\"";
  }
  TORCH_CHECK_VALUE(false, "[aimle::", owner, "] expected ", argument, " to be one of ", words,
                    " but got \"", shown_value(word), "\"");
}

/// The first word of a value.
template <class Value, size_t count>
std::string word_of(const Value& wanted, const Words<Value, count>& known) {
  for (const auto& [word, value] : known) {
    if (value == wanted) return std::string(word);
  }
  return {};
}

}  // namespace aimle::ops
