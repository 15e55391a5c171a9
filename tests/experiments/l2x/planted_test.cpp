#include "experiments/l2x/planted.h"

#include <gtest/gtest.h>

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
