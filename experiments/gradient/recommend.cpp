#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <map>

#include "experiments/gradient/diagnose.h"

namespace aimle::experiments {
namespace {

std::string format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

std::string name_of(const Diagnosis& found) {
  return found.fixed_lambda ? found.estimator + ":lambda=" + format("%g", found.lambda)
                            : found.estimator;
}

/// By S, each estimator at its best lambda, by falling cosine.
std::map<int64_t, std::vector<Diagnosis>> ranked(const std::vector<Diagnosis>& diagnoses) {
  std::map<int64_t, std::vector<Diagnosis>> groups;
  for (const Diagnosis& found : diagnoses) {
    std::vector<Diagnosis>& group = groups[found.samples];
    const auto same = std::find_if(group.begin(), group.end(), [&](const Diagnosis& other) {
      return other.estimator == found.estimator;
    });
    if (same == group.end()) {
      group.push_back(found);
    } else if (found.cosine > same->cosine) {
      *same = found;
    }
  }
  for (auto& [samples, group] : groups) {
    std::stable_sort(group.begin(), group.end(),
                     [](const Diagnosis& a, const Diagnosis& b) { return a.cosine > b.cosine; });
  }
  return groups;
}

/// Its z lies between 0 and 1, which not every loss takes.
bool is_soft(const Diagnosis& found) {
  const EstimatorInfo& info = estimator_info(found.estimator.substr(0, found.estimator.find(':')));
  return info.soft && found.estimator.find(":hard=true") == std::string::npos;
}

/// What to take where the loss needs hard samples; `group` is by falling cosine.
std::string hard_alternative(const std::vector<Diagnosis>& group) {
  const auto hard = std::find_if_not(group.begin(), group.end(), is_soft);
  if (hard == group.end()) return "";
  return "; best with hard samples: " + name_of(*hard) + ", cosine " + format("%.3f", hard->cosine);
}

/// The same gradient, or the same bias, however many samples are taken. Such a one may point well
/// and train badly (docs/choosing.md has both), so it is recommended only if nothing else applies.
bool has_no_limit(const Diagnosis& found) {
  const std::string name = found.estimator.substr(0, found.estimator.find(':'));
  return name == "ste" || name == "identity" || name == "dbb";
}

/// Those of a group whose bias shrinks with the number of samples, or all if there is none.
std::vector<Diagnosis> candidates_of(const std::vector<Diagnosis>& group) {
  std::vector<Diagnosis> limited;
  std::copy_if(group.begin(), group.end(), std::back_inserter(limited),
               [](const Diagnosis& found) { return !has_no_limit(found); });
  return limited.empty() ? group : limited;
}

/// What to say of estimators whose bias does not shrink; `first` has the highest cosine of all.
std::string warning(const Diagnosis& first, const Diagnosis& best) {
  if (has_no_limit(best)) return "; more samples do not reduce that, and it may train badly";
  if (first.cosine <= best.cosine) return "";
  return "; " + name_of(first) + " has cosine " + format("%.3f", first.cosine) +
         ", but a bias that more samples do not reduce, and may train badly";
}

std::string reason_for(const Diagnosis& chosen, const Diagnosis& best) {
  std::string reason = "cosine " + format("%.3f", chosen.cosine) + " at " +
                       format("%.0f", chosen.microseconds) + " us a call";
  if (name_of(chosen) != name_of(best)) {
    reason += "; " + name_of(best) + " has " + format("%.3f", best.cosine) +
              ", no more than the noise of this test, and takes " +
              format("%.1f", best.microseconds / chosen.microseconds) + " times as long";
  }
  reason += chosen.bias < 0.1 ? "; hardly any bias"
                              : "; biased by " + format("%.0f %%", 100 * chosen.bias) +
                                    " of the gradient's length";
  if (chosen.fixed_lambda) reason += "; lambda is in units of this loss: it does not carry over";
  return reason;
}

}  // namespace

std::vector<Recommendation> recommend(const std::vector<Diagnosis>& diagnoses) {
  std::vector<Recommendation> result;
  for (const auto& [samples, group] : ranked(diagnoses)) {
    const std::vector<Diagnosis> candidates = candidates_of(group);
    const Diagnosis& best = candidates.front();
    const Diagnosis* chosen = &best;
    for (const Diagnosis& other : candidates) {
      const double noise = 2 * std::hypot(best.cosine_error, other.cosine_error);
      const bool as_good = other.cosine >= best.cosine - noise;
      const bool simpler = !other.fixed_lambda && chosen->fixed_lambda;
      const bool faster = other.microseconds < 0.8 * chosen->microseconds;
      const bool harder = other.fixed_lambda && !chosen->fixed_lambda;
      if (as_good && (simpler || (faster && !harder))) chosen = &other;
    }
    std::string reason = reason_for(*chosen, best) + warning(group.front(), best);
    if (is_soft(*chosen)) reason += "; its samples are soft" + hard_alternative(candidates);
    result.push_back(
        {.samples = samples,
         .estimator = chosen->estimator,
         .lambda = chosen->fixed_lambda ? chosen->lambda : std::numeric_limits<double>::quiet_NaN(),
         .reason = std::move(reason)});
  }
  return result;
}

std::string as_table(const std::vector<Diagnosis>& diagnoses) {
  std::string text;
  const bool clips =
      std::ranges::any_of(diagnoses, [](const Diagnosis& d) { return !std::isnan(d.clipped); });
  for (const auto& [samples, group] : ranked(diagnoses)) {
    char line[200];
    std::snprintf(line, sizeof line, "%sS = %lld\n%-34s %8s %7s %8s %9s %6s %9s%s\n",
                  text.empty() ? "" : "\n", static_cast<long long>(samples), "estimator", "cosine",
                  "norm", "bias", "variance", "zeros", "us/call", clips ? " clipped" : "");
    text += line;
    for (const Diagnosis& found : group) {
      char clipped[20] = "";
      if (!std::isnan(found.clipped))
        std::snprintf(clipped, sizeof clipped, " %7.3f", found.clipped);
      std::snprintf(line, sizeof line, "%-34s %8.3f %7.2f %8.3f %9.3g %6.2f %9.0f%s\n",
                    name_of(found).c_str(), found.cosine, found.norm_ratio, found.bias,
                    found.variance, found.zeros, found.microseconds, clipped);
      text += line;
    }
  }
  return text;
}

}  // namespace aimle::experiments
