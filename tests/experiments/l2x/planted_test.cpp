#include "experiments/l2x/planted.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "experiments/l2x/planted_words.h"

namespace aimle::experiments::l2x {
namespace {

/// [word] = (aspect, level)
std::map<std::string, std::pair<int, int>> quality_words() {
  std::map<std::string, std::pair<int, int>> out;
  for (int aspect = 0; aspect < 4; ++aspect) {
    for (int level = 0; level < 5; ++level) {
      std::istringstream words{std::string(kQualityWords[aspect][level])};
      std::string word;
      while (words >> word) {
        EXPECT_TRUE(out.emplace(word, std::pair{aspect, level}).second) << word << " stands twice";
      }
    }
  }
  return out;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  double ma = 0, mb = 0;
  for (size_t i = 0; i < a.size(); ++i) ma += a[i] / a.size(), mb += b[i] / b.size();
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - ma) * (b[i] - mb), aa += (a[i] - ma) * (a[i] - ma),
        bb += (b[i] - mb) * (b[i] - mb);
  }
  return ab / std::sqrt(aa * bb);
}

TEST(L2xPlanted, TheRationaleIsTheAskedAspectAndCarriesTheRating) {
  const auto words = quality_words();
  for (int aspect = 0; aspect < 4; ++aspect) {
    const Corpus corpus = generate({.train = 400, .heldout = 1, .annotated = 0, .aspect = aspect});
    for (int64_t i = 0; i < corpus.train.count(); ++i) {
      const auto review = corpus.train.review(i);
      EXPECT_GE(review.size(), 30u);
      EXPECT_LE(review.size(), 150u);
      std::set<int64_t> inside;
      for (const WordRange& range : corpus.train.rationales[i]) {
        for (int64_t j = range.begin; j < range.end; ++j) inside.insert(j);
      }
      EXPECT_EQ(inside.size(), 10u);
      double levels = 0;
      for (int64_t j = 0; j < std::ssize(review); ++j) {
        const auto found = words.find(std::string(corpus.vocabulary.word(review[j])));
        const bool of_aspect = found != words.end() && found->second.first == aspect;
        EXPECT_EQ(of_aspect, inside.contains(j)) << "review " << i << ", word " << j;
        if (of_aspect) levels += found->second.second;
      }
      EXPECT_NEAR(corpus.train.ratings[i], levels / 40, 0.02 * 5.5) << "review " << i;
    }
  }
}

TEST(L2xPlanted, OtherWordsCorrelateWeakly) {
  const auto words = quality_words();
  const Corpus corpus = generate({.train = 4000, .heldout = 1, .annotated = 0, .aspect = 3});
  std::vector<double> rating;
  std::vector<double> others;
  for (int64_t i = 0; i < corpus.train.count(); ++i) {
    double sum = 0;
    double count = 0;
    for (const int32_t id : corpus.train.review(i)) {
      const auto found = words.find(std::string(corpus.vocabulary.word(id)));
      if (found == words.end() || found->second.first == 3) continue;
      sum += found->second.second;
      ++count;
    }
    if (count == 0) continue;
    rating.push_back(corpus.train.ratings[i]);
    others.push_back(sum / count);
  }
  const double r = correlation(rating, others);
  EXPECT_GT(r, 0.1);
  EXPECT_LT(r, 0.4);
  double mean = 0;
  double squares = 0;
  for (const double y : rating) mean += y / rating.size(), squares += y * y / rating.size();
  EXPECT_NEAR(mean, 0.5, 0.03);
  EXPECT_GT(std::sqrt(squares - mean * mean), 0.2) << "ratings differ";
}

/// The nouns of the sentences that share their words, with their aspects.
std::map<std::string, int> nouns() {
  std::map<std::string, int> out;
  for (int aspect = 0; aspect < 4; ++aspect) {
    std::istringstream sentences{std::string(kSharedSentences[aspect])};
    std::string word;
    bool after_slot = false;
    while (sentences >> word) {
      if (after_slot) {
        EXPECT_TRUE(out.emplace(word, aspect).second) << word << " stands twice";
      }
      after_slot = word == "@" || word == ".|@";
    }
  }
  return out;
}

TEST(L2xPlanted, TheNextNounTellsTheAspectOfAHardWord) {
  const auto words = quality_words();
  const auto aspect_of_noun = nouns();
  EXPECT_EQ(aspect_of_noun.size(), 32u);
  for (int aspect = 0; aspect < 4; ++aspect) {
    const Corpus corpus = generate({.train = 400,
                                    .heldout = 1,
                                    .annotated = 0,
                                    .aspect = aspect,
                                    .difficulty = Difficulty::kHard});
    std::set<std::pair<int, int>> used;
    for (int64_t i = 0; i < corpus.train.count(); ++i) {
      const auto review = corpus.train.review(i);
      EXPECT_GE(review.size(), 30u);
      EXPECT_LE(review.size(), 110u);
      std::set<int64_t> inside;
      for (const WordRange& range : corpus.train.rationales[i]) {
        for (int64_t j = range.begin; j < range.end; ++j) inside.insert(j);
      }
      EXPECT_EQ(inside.size(), 10u);
      int64_t distracting = 0;
      for (int64_t j = 0; j < std::ssize(review); ++j) {
        const auto found = words.find(std::string(corpus.vocabulary.word(review[j])));
        if (found == words.end()) continue;
        int about = -1;
        for (int64_t next = j + 1; next <= j + 3 && about < 0; ++next) {
          ASSERT_LT(next, std::ssize(review));
          const auto noun = aspect_of_noun.find(std::string(corpus.vocabulary.word(review[next])));
          if (noun != aspect_of_noun.end()) about = noun->second;
        }
        ASSERT_GE(about, 0) << "review " << i << ", word " << j;
        EXPECT_EQ(about == aspect, inside.contains(j)) << "review " << i << ", word " << j;
        if (about == aspect) used.insert(found->second);
        if (about != aspect) ++distracting;
      }
      EXPECT_GE(distracting, 6);
      EXPECT_LE(distracting, 24);
    }
    EXPECT_EQ(used.size(), 20u) << "words of all aspects and levels describe this one";
  }
}

TEST(L2xPlanted, HardDistractorsCarryTheRatingToo) {
  const auto words = quality_words();
  const Corpus corpus =
      generate({.train = 4000, .heldout = 1, .annotated = 0, .difficulty = Difficulty::kHard});
  std::vector<double> rating, planted, others;
  for (int64_t i = 0; i < corpus.train.count(); ++i) {
    const auto review = corpus.train.review(i);
    double sum[2] = {0, 0}, count[2] = {0, 0};
    for (int64_t j = 0; j < std::ssize(review); ++j) {
      const auto found = words.find(std::string(corpus.vocabulary.word(review[j])));
      if (found == words.end()) continue;
      bool inside = false;
      for (const WordRange& range : corpus.train.rationales[i]) {
        inside = inside || (range.begin <= j && j < range.end);
      }
      sum[inside] += found->second.second, ++count[inside];
    }
    rating.push_back(corpus.train.ratings[i]);
    others.push_back(sum[0] / count[0]);
    planted.push_back(sum[1] / count[1]);
  }
  EXPECT_GT(correlation(rating, others), 0.5);
  EXPECT_GT(correlation(rating, planted), correlation(rating, others) + 0.1);
  EXPECT_LT(correlation(rating, planted), 0.9) << "ratings are noisy";
}

/// Mean squared error times 100 of the best prediction from a number per review.
double best_loss(const std::vector<double>& of, const std::vector<float>& ratings) {
  std::map<double, std::array<double, 3>> groups;
  for (size_t i = 0; i < of.size(); ++i) {
    auto& [count, sum, squares] = groups[of[i]];
    ++count, sum += ratings[i], squares += ratings[i] * ratings[i];
  }
  double total = 0;
  for (const auto& [value, group] : groups) total += group[2] - group[1] * group[1] / group[0];
  return 100 * total / of.size();
}

TEST(L2xPlanted, LossesAndChanceOfHardReviewsAreThoseOfTheDocuments) {
  const auto words = quality_words();
  const Corpus corpus =
      generate({.train = 20'000, .heldout = 1, .annotated = 0, .difficulty = Difficulty::kHard});
  std::vector<double> nothing, planted, all;
  double chance = 0, chance_of_quality = 0;
  for (int64_t i = 0; i < corpus.train.count(); ++i) {
    const auto review = corpus.train.review(i);
    double sum = 0, sum_planted = 0, count = 0;
    for (const int32_t id : review) {
      const auto found = words.find(std::string(corpus.vocabulary.word(id)));
      if (found != words.end()) sum += found->second.second, ++count;
    }
    for (const WordRange& range : corpus.train.rationales[i]) {
      for (int64_t j = range.begin; j < range.end; ++j) {
        sum_planted += words.at(std::string(corpus.vocabulary.word(review[j]))).second;
      }
    }
    nothing.push_back(0);
    planted.push_back(sum_planted);
    all.push_back(std::round(200 * sum / count));
    chance += 10.0 / review.size() / corpus.train.count();
    chance_of_quality += 10.0 / count / corpus.train.count();
  }
  EXPECT_NEAR(chance, 0.117, 0.001);
  EXPECT_NEAR(chance_of_quality, 0.413, 0.005);
  EXPECT_NEAR(best_loss(nothing, corpus.train.ratings), 9.1, 0.2);
  EXPECT_NEAR(best_loss(all, corpus.train.ratings), 4.2, 0.2);
  EXPECT_NEAR(best_loss(planted, corpus.train.ratings), 3.2, 0.1);
}

/// Results measured with them stay valid.
TEST(L2xPlanted, EasyReviewsStayTheSame) {
  const Corpus corpus = generate({.train = 200, .heldout = 20, .annotated = 20, .seed = 1});
  uint64_t hash = 14695981039346656037u;
  for (const Reviews* reviews : {&corpus.train, &corpus.heldout, &corpus.annotated}) {
    for (const int32_t id : reviews->words)
      hash = (hash ^ static_cast<uint32_t>(id)) * 1099511628211u;
    for (const float y : reviews->ratings) {
      hash = (hash ^ std::bit_cast<uint32_t>(y)) * 1099511628211u;
    }
  }
  EXPECT_EQ(hash, 13724314093877158034u);
}

TEST(L2xPlanted, DependsOnSeedSplitAndNumberAlone) {
  const Corpus some = generate({.train = 50, .heldout = 20, .annotated = 20, .seed = 3});
  const Corpus more = generate({.train = 90, .heldout = 20, .annotated = 20, .seed = 3});
  EXPECT_TRUE(
      std::equal(some.train.words.begin(), some.train.words.end(), more.train.words.begin()));
  const Corpus other = generate({.train = 50, .heldout = 20, .annotated = 20, .seed = 4});
  EXPECT_NE(some.train.ratings, other.train.ratings);
  EXPECT_NE(std::vector<float>(some.train.ratings.begin(), some.train.ratings.begin() + 20),
            some.heldout.ratings);
  EXPECT_NE(some.annotated.ratings, some.heldout.ratings);
  EXPECT_EQ(generate({.train = 5, .heldout = 1, .planted = 5}).train.rationales.size(), 5u);
  EXPECT_THROW(generate({.planted = 0}), std::invalid_argument);
  EXPECT_THROW(generate({.aspect = 4}), std::invalid_argument);
}

}  // namespace
}  // namespace aimle::experiments::l2x
