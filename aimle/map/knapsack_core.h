// Knapsacks of large capacity: the same solution from the few items that are in doubt. Private to
// knapsack.cpp.
//
// For every lambda >= 0, no feasible set is worth more than
//   L = lambda capacity + sum_j max(0, x_j - lambda w_j),
// and one that differs from the maximiser of this sum at item j no more than L - |x_j - lambda w_j|
// (Dembo and Hammer, 1980). If that is less than what a known set is worth, j is in every optimal
// set, or in none. lambda is the value per weight of the first item that does not fit when items
// are taken by it in descending order. The other items, the core (Balas and Zemel, Operations
// Research 28, 1980), are solved by the recursion of knapsack.h, in which f(j, .) is a list of its
// steps (Nemhauser and Ullmann, Management Science 15, 1969), without those that L excludes.
//
// The solution has the bits of the full table. f(j, c) is the largest sum, rounded item by item,
// of the sets of items up to j that fit into c, since rounding is monotone. At every decision, the
// larger side is reached by a set that is optimal as a whole, with the items decided so far. The
// bounds are compared with a margin for all rounding errors, so such a set is never left out, and
// what is left out only lowers the smaller side. Items that are in every optimal set take part in
// the sums.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "aimle/map/knapsack_items.h"

namespace aimle::detail {

template <class T>
class KnapsackCore {
 public:
  /// Sets z, initially zeros, to the solution; x_j > 0 for all items. Returns false, with z
  /// unchanged, if the table is faster or sums are infinite.
  bool solve(const KnapsackItems& items, const T* x, T* z) {
    const double cells =
        static_cast<double>(items.count()) * static_cast<double>(items.capacity + 1);
    if (items.capacity < kMinCapacity || !classify(items, x)) return false;
    if (!build(items, x, static_cast<size_t>(cells / kCellsPerStep))) return false;
    walk_back(items, x, z);
    return true;
  }

 private:
  static constexpr int64_t kMinCapacity = 1024;  // below it the table is faster
  static constexpr double kCellsPerStep = 128;   // a step takes as long as 60 cells, or less

  enum class Role : uint8_t { kOut, kIn, kCore };
  struct Step {
    int64_t weight;
    T value;
  };
  struct Ratio {
    double value_per_weight;
    int64_t item;
  };
  struct Span {
    size_t begin, end;
  };

  static double value_of(const KnapsackItems& items, const T* x, int64_t i) {
    return static_cast<double>(x[items.index[static_cast<size_t>(i)]]);
  }

  /// The role of every item. Returns false if a sum could be infinite.
  bool classify(const KnapsackItems& items, const T* x) {
    const int64_t count = items.count();
    const auto weight = [&](int64_t i) {
      return static_cast<double>(items.weight[static_cast<size_t>(i)]);
    };
    ratios_.resize(static_cast<size_t>(count));
    double all = 0.0;
    for (int64_t i = 0; i < count; ++i) {
      const double value = value_of(items, x, i);
      ratios_[static_cast<size_t>(i)] = {value / weight(i), i};
      all += value;
    }
    if (!(all < static_cast<double>(std::numeric_limits<T>::max()) / 2)) return false;
    std::sort(ratios_.begin(), ratios_.end(), [](const Ratio& a, const Ratio& b) {
      return a.value_per_weight > b.value_per_weight ||
             (a.value_per_weight == b.value_per_weight && a.item < b.item);
    });
    lambda_ = 0.0;
    const double known = known_value(items, x);
    gain_.resize(static_cast<size_t>(count));
    double bound = lambda_ * static_cast<double>(items.capacity);
    for (int64_t i = 0; i < count; ++i) {
      const double gain = value_of(items, x, i) - lambda_ * weight(i);
      gain_[static_cast<size_t>(i)] = gain;
      bound += std::max(0.0, gain);
    }
    // The margin is twice the rounding errors of all sums, in T and in double, or more.
    needed_ = known - 8.0 * static_cast<double>(count + 4) *
                          static_cast<double>(std::numeric_limits<T>::epsilon()) * bound;
    role_.resize(static_cast<size_t>(count));
    for (size_t i = 0; i < role_.size(); ++i) {
      const bool decided = bound - std::abs(gain_[i]) < needed_;
      role_[i] = !decided ? Role::kCore : gain_[i] > 0.0 ? Role::kIn : Role::kOut;
    }
    return true;
  }

  /// The value of a set that fits. Sets lambda to the ratio of the first item that does not fit.
  double known_value(const KnapsackItems& items, const T* x) {
    double best = 0.0;
    size_t first_out = ratios_.size();
    // By ratio, what fits. Then again with one of the items around the first that does not fit
    // taken first, or left out.
    const auto fill = [&](size_t forced, bool taken) {
      int64_t left = items.capacity;
      double value = 0.0;
      const auto take = [&](size_t at) {
        const int64_t i = ratios_[at].item, weight = items.weight[static_cast<size_t>(i)];
        if (weight > left) return false;
        left -= weight;
        value += value_of(items, x, i);
        return true;
      };
      if (taken) take(forced);
      for (size_t at = 0; at < ratios_.size(); ++at) {
        if (at == forced) continue;
        if (!take(at) && first_out == ratios_.size()) first_out = at;
      }
      best = std::max(best, value);
    };
    fill(ratios_.size(), false);
    if (first_out == ratios_.size()) return best;
    lambda_ = ratios_[first_out].value_per_weight;
    const size_t low = first_out < kTries ? 0 : first_out - kTries;
    const size_t high = std::min(ratios_.size(), first_out + kTries);
    for (size_t at = low; at < high; ++at) fill(at, at >= first_out);
    return best;
  }

  /// The steps of f before every item of the core. Returns false if there are more than `most`.
  bool build(const KnapsackItems& items, const T* x, size_t most) {
    int64_t later_in = 0, later_core = 0;
    double later_gain = 0.0;
    for (size_t i = 0; i < role_.size(); ++i) {
      if (role_[i] == Role::kOut) continue;
      (role_[i] == Role::kIn ? later_in : later_core) += items.weight[i];
      later_gain += std::max(0.0, gain_[i]);
    }
    spans_.resize(role_.size());
    steps_.assign(1, {.weight = 0, .value = T(0)});
    size_t begin = 0;  // of the current steps
    for (size_t i = 0; i < role_.size(); ++i) {
      if (role_[i] == Role::kOut) continue;
      const int64_t weight = items.weight[i];
      const T value = x[items.index[i]];
      later_gain -= std::max(0.0, gain_[i]);
      if (role_[i] == Role::kIn) {
        later_in -= weight;
        for (size_t s = begin; s < steps_.size(); ++s) {
          steps_[s] = {.weight = steps_[s].weight + weight, .value = steps_[s].value + value};
        }
        continue;
      }
      later_core -= weight;
      const size_t end = steps_.size();
      spans_[i] = {.begin = begin, .end = end};
      const int64_t heaviest = items.capacity - later_in;
      add_item(spans_[i], weight, value,
               {.heaviest = heaviest,
                .all_fit = heaviest - later_core,
                .needed = needed_ - later_gain - lambda_ * static_cast<double>(items.capacity)});
      begin = end;
      if (steps_.size() > most) return false;
    }
    return true;
  }

  /// Which steps can become part of an optimal set, given the later items.
  struct Limits {
    int64_t heaviest;  // so that those fit which are in every optimal set
    int64_t all_fit;   // up to this weight all later ones fit, so that the last step is sufficient
    double needed;     // of value - lambda weight
  };

  /// Appends the steps with an item.
  void add_item(Span span, int64_t weight, T value, const Limits& limits) {
    steps_.resize(span.end + 2 * (span.end - span.begin));
    const Step* without = steps_.data() + span.begin;
    const Step* with = without;
    const Step* end = steps_.data() + span.end;
    Step* const first = steps_.data() + span.end;
    Step* out = first;
    while (with != end) {
      const Step heavier{.weight = with->weight + weight, .value = with->value + value};
      const bool old = without != end && without->weight <= heavier.weight;
      const Step next = old ? *without : heavier;
      without += old;
      with += !old;
      if (next.weight > limits.heaviest) break;
      if (out != first && next.value <= out[-1].value) continue;
      const double worth = static_cast<double>(next.value);
      if (worth - lambda_ * static_cast<double>(next.weight) < limits.needed) continue;
      if (next.weight <= limits.all_fit) out = first;
      *out++ = next;
    }
    steps_.resize(static_cast<size_t>(out - steps_.data()));
  }

  void walk_back(const KnapsackItems& items, const T* x, T* z) const {
    int64_t left = items.capacity;
    for (size_t i = role_.size(); i-- > 0;) {
      if (role_[i] == Role::kOut) continue;
      const int64_t weight = items.weight[i];
      const T value = x[items.index[i]];
      if (role_[i] == Role::kCore) {
        if (!(best_within(spans_[i], left - weight) + value > best_within(spans_[i], left))) {
          continue;
        }
      }
      z[items.index[i]] = T(1);
      left -= weight;
    }
  }

  T best_within(Span span, int64_t capacity) const {
    const auto begin = steps_.begin() + static_cast<int64_t>(span.begin);
    const auto end = steps_.begin() + static_cast<int64_t>(span.end);
    const auto above = std::upper_bound(
        begin, end, capacity, [](int64_t limit, const Step& step) { return limit < step.weight; });
    return above == begin ? -std::numeric_limits<T>::infinity() : above[-1].value;
  }

  static constexpr size_t kTries = 8;

  double lambda_ = 0.0;
  double needed_ = 0.0;       // what an optimal set is worth at least, minus a margin for rounding
  std::vector<double> gain_;  // x_i - lambda w_i
  std::vector<Ratio> ratios_;
  std::vector<Role> role_;
  std::vector<Span> spans_;  // of an item of the core: the steps before it
  std::vector<Step> steps_;  // one list after the other, by weight, values not descending
};

}  // namespace aimle::detail
