// The kernels of the selector, run on the host.
#include "experiments/l2x/selector_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "aimle/noise/gumbel.h"

namespace aimle::experiments::l2x {
namespace {

constexpr float kUnset = std::numeric_limits<float>::quiet_NaN();

using Floats = std::vector<float>;

size_t index(int64_t i) { return static_cast<size_t>(i); }

struct Case {
  WordSizes sizes;
  bool masked;
  std::mt19937 random{3};
  Floats x = values(sizes.rows * sizes.columns);
  // Not std::vector<bool>, which has no array. The first review is empty.
  std::vector<char> real = mask();

  /// Of few different numbers, so that some are equal.
  Floats values(int64_t count) {
    std::uniform_int_distribution<int> small(-3, 3);
    Floats result(index(count));
    for (float& value : result) value = static_cast<float>(small(random)) / 4;
    return result;
  }
  std::vector<char> mask() {
    std::vector<char> result(index(sizes.rows));
    for (int64_t i = 0; i < sizes.rows; ++i) {
      result[index(i)] = i >= sizes.words && random() % 4 != 0;
    }
    return result;
  }

  const bool* mask_data() const {
    return masked ? reinterpret_cast<const bool*>(real.data()) : nullptr;
  }
  bool is_real(int64_t review, int64_t word) const {
    return !masked || real[index(review * sizes.words + word)] != 0;
  }
  float at(int64_t review, int64_t word, int64_t column) const {
    if (word < 0 || word >= sizes.words || !is_real(review, word)) return 0;
    return x[index((review * sizes.words + word) * sizes.columns + column)];
  }

  /// visit(review, word, column)
  template <class Visit>
  void each(const Visit& visit) const {
    for (int64_t review = 0; review < sizes.reviews; ++review) {
      for (int64_t word = 0; word < sizes.words; ++word) {
        for (int64_t column = 0; column < sizes.columns; ++column) visit(review, word, column);
      }
    }
  }
};

std::vector<Case> cases(const std::vector<int64_t>& columns) {
  std::vector<Case> result;
  for (const int64_t of : columns) {
    for (const int64_t words : {1, 2, 7, 30}) {
      for (const bool masked : {false, true}) {
        result.push_back(
            {.sizes = {.reviews = 3, .words = words, .columns = of}, .masked = masked});
      }
    }
  }
  return result;
}

std::string name(const Case& test) {
  return std::to_string(test.sizes.words) + " words, " + std::to_string(test.sizes.columns) +
         " columns, masked " + std::to_string(test.masked);
}

TEST(SelectorKernel, AWordSeesItsNeighbours) {
  for (const Case& test : cases({1, 3, 4, 36, 100})) {
    SCOPED_TRACE(name(test));
    const WordSizes& sizes = test.sizes;
    Floats seen(3 * test.x.size(), kUnset);
    see_neighbours_on_device(sizes, test.x.data(), test.mask_data(), seen.data(), nullptr);
    test.each([&](int64_t review, int64_t word, int64_t column) {
      for (int64_t part = 0; part < 3; ++part) {
        const int64_t row = (review * sizes.words + word) * 3 + part;
        EXPECT_EQ(seen[index(row * sizes.columns + column)],
                  test.at(review, word + part - 1, column));
      }
    });
  }
}

TEST(SelectorKernel, TheFirstOfTheHighestWordsIsFound) {
  for (const Case& test : cases({1, 33, 100})) {
    SCOPED_TRACE(name(test));
    const WordSizes& sizes = test.sizes;
    Floats highest(index(sizes.reviews * sizes.columns), kUnset);
    std::vector<int64_t> place(highest.size(), -1);
    highest_on_device(sizes, test.x.data(), test.mask_data(), highest.data(), place.data(),
                      nullptr);
    for (int64_t review = 0; review < sizes.reviews; ++review) {
      for (int64_t column = 0; column < sizes.columns; ++column) {
        int64_t best = 0;
        for (int64_t word = 1; word < sizes.words; ++word) {
          if (test.at(review, word, column) > test.at(review, best, column)) best = word;
        }
        EXPECT_EQ(place[index(review * sizes.columns + column)], best);
        EXPECT_EQ(highest[index(review * sizes.columns + column)], test.at(review, best, column));
      }
    }
  }
}

TEST(SelectorKernel, WordsGetTheGradientsOfTheirReadersAndOfTheMaximum) {
  for (Case& test : cases({1, 3, 4, 100})) {
    SCOPED_TRACE(name(test));
    const WordSizes& sizes = test.sizes;
    const Floats d_seen = test.values(3 * sizes.rows * sizes.columns);
    const Floats d_highest = test.values(sizes.reviews * sizes.columns);
    std::vector<int64_t> place(d_highest.size());
    for (int64_t& word : place) word = static_cast<int64_t>(test.random()) % sizes.words;
    for (const bool with_highest : {false, true}) {
      WordGradients gradients{.seen = d_seen.data()};
      if (with_highest) {
        gradients.highest = d_highest.data();
        gradients.place = place.data();
      }
      Floats dx(test.x.size(), kUnset);
      word_gradients_on_device(sizes, gradients, test.mask_data(), dx.data(), nullptr);
      test.each([&](int64_t review, int64_t word, int64_t column) {
        double sum = 0;
        for (int64_t part = 0; part < 3; ++part) {
          const int64_t reader = word + 1 - part;
          if (reader < 0 || reader >= sizes.words) continue;
          const int64_t row = (review * sizes.words + reader) * 3 + part;
          sum += d_seen[index(row * sizes.columns + column)];
        }
        const size_t at = index(review * sizes.columns + column);
        if (with_highest && place[at] == word) sum += d_highest[at];
        const float found = dx[index((review * sizes.words + word) * sizes.columns + column)];
        EXPECT_NEAR(found, test.is_real(review, word) ? sum : 0, 1e-6);
      });
    }
  }
}

TEST(SelectorKernel, JoinedColumnsAreDroppedByTheNoiseOfTheKey) {
  const Key key{.seed = 12345678901234567ULL, .stream = 7};
  constexpr float kBound = 1.2F, kScale = 1.25F;
  int64_t dropped = 0, all = 0;
  for (Case& test : cases({4, 36, 100})) {
    SCOPED_TRACE(name(test));
    const WordSizes& sizes = test.sizes;
    const Floats global = test.values(sizes.reviews * sizes.columns);
    const Floats d_joined = test.values(2 * sizes.rows * sizes.columns);
    for (const bool drops : {false, true}) {
      const Dropout dropout{.key = {.value = key}, .bound = kBound, .scale = kScale};
      Floats joined(d_joined.size(), kUnset), d_local(test.x.size(), kUnset);
      Floats d_global(global.size(), kUnset);
      std::vector<char> kept(joined.size(), 2);
      auto* const at_kept = drops ? reinterpret_cast<bool*>(kept.data()) : nullptr;
      join_on_device(sizes, global.data(), test.x.data(), dropout, joined.data(), at_kept, nullptr);
      join_gradients_on_device(sizes, d_joined.data(), at_kept, kScale, d_global.data(),
                               d_local.data(), nullptr);
      std::vector<double> sums(global.size());
      test.each([&](int64_t review, int64_t word, int64_t column) {
        const int64_t row = review * sizes.words + word;
        const auto factor = [&](int64_t joined_column) {
          if (!drops) return 1.0F;
          const int64_t j = joined_column * sizes.words + word;
          const PhiloxWords words =
              noise_words(key, static_cast<uint32_t>(review), 0, static_cast<uint32_t>(j / 4));
          const bool keeps = gumbel(words.w[j % 4]) < kBound;
          EXPECT_EQ(kept[index(row * 2 * sizes.columns + joined_column)], keeps);
          dropped += !keeps;
          ++all;
          return keeps ? kScale : 0.0F;
        };
        const size_t of_global = index(row * 2 * sizes.columns + column);
        const size_t of_local = of_global + index(sizes.columns);
        const size_t at_global = index(review * sizes.columns + column);
        const size_t at_local = index(row * sizes.columns + column);
        const float first = factor(column), second = factor(sizes.columns + column);
        EXPECT_EQ(joined[of_global], global[at_global] * first);
        EXPECT_EQ(joined[of_local], test.x[at_local] * second);
        EXPECT_EQ(d_local[at_local], d_joined[of_local] * second);
        sums[at_global] += d_joined[of_global] * first;
      });
      for (size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(d_global[i], sums[i], 1e-4);
    }
  }
  const double share = 1 - std::exp(-std::exp(-kBound));
  EXPECT_NEAR(static_cast<double>(dropped) / static_cast<double>(all), share,
              4 * std::sqrt(share / static_cast<double>(all)));
}

}  // namespace
}  // namespace aimle::experiments::l2x
