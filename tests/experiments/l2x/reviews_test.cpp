#include "experiments/l2x/reviews.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>

namespace aimle::experiments::l2x {
namespace {

TEST(L2xVocabulary, NumbersWordsFromThree) {
  Vocabulary vocabulary;
  EXPECT_EQ(vocabulary.size(), 3);
  EXPECT_EQ(vocabulary.add("beer"), 3);
  EXPECT_EQ(vocabulary.add("is"), 4);
  EXPECT_EQ(vocabulary.add("beer"), 3);
  EXPECT_EQ(vocabulary.find("is"), 4);
  EXPECT_EQ(vocabulary.find("wine"), kUnknown);
  EXPECT_EQ(vocabulary.find("wine", kPad), kPad);
  EXPECT_EQ(vocabulary.word(3), "beer");
  EXPECT_EQ(vocabulary.word(0), "<PAD>");
  EXPECT_THROW(vocabulary.word(5), std::invalid_argument);
  for (int i = 0; i < 1000; ++i) vocabulary.add("word" + std::to_string(i));
  EXPECT_EQ(vocabulary.find("beer"), 3) << "names stay where they are as the list grows";
}

TEST(L2xWriteRows, PadsBehindOrInFront) {
  Reviews reviews;
  reviews.add(std::vector<int32_t>{5, 6}, 0.5f);
  reviews.add(std::vector<int32_t>{7, 8, 9, 10, 11}, 0.5f);
  const std::vector<int64_t> order{1, 0};
  std::vector<int64_t> ids(8);
  const auto real = std::make_unique<bool[]>(8);
  write_rows(reviews, order, Rules::kMended, 4, ids.data(), real.get());
  EXPECT_EQ(ids, (std::vector<int64_t>{7, 8, 9, 10, 5, 6, 0, 0}));
  EXPECT_EQ(std::vector<bool>(real.get(), real.get() + 8),
            (std::vector<bool>{true, true, true, true, true, true, false, false}));
  write_rows(reviews, order, Rules::kReference, 4, ids.data(), real.get());
  EXPECT_EQ(ids, (std::vector<int64_t>{7, 8, 9, 10, 0, 0, 5, 6}));
  EXPECT_EQ(std::count(real.get(), real.get() + 8, true), 8) << "nothing is masked";
}

TEST(L2xSplit, IsThatOfScikitLearn) {
  // RandomState(0).permutation(10) = 2 8 4 9 1 6 7 3 0 5
  const Split split = split_heldout(10, 0);
  EXPECT_EQ(split.test, (std::vector<int64_t>{2, 8, 4, 9, 1}));
  EXPECT_EQ(split.validation, (std::vector<int64_t>{6, 7, 3, 0, 5}));
  EXPECT_EQ(split_heldout(11, 0).test.size(), 6u);
  EXPECT_NE(split_heldout(10, 1).test, split.test);
}

TEST(L2xSubsetPrecision, CountsAsEitherSetOfRulesSays) {
  Reviews reviews;
  reviews.add(std::vector<int32_t>{5, kPad, 6, 7}, 0);  // the second word was unknown
  reviews.rationales.push_back({{0, 2}, {0, 1}});       // the first word lies in two ranges
  reviews.add(std::vector<int32_t>{5, 6}, 0);
  reviews.rationales.push_back({{1, 2}});

  // Rows of 5, padded in front: words 0, 1, 2 of the first; word 1 and padding of the second.
  SubsetPrecision reference(Rules::kReference, 3);
  reference.add(reviews, 0, std::vector<float>{0, 1, 1, 1, 0});
  EXPECT_DOUBLE_EQ(reference.value(), 2.0 / 3) << "two ranges hold word 0; max(2 chosen, 3)";
  reference.add(reviews, 1, std::vector<float>{1, 1, 0, 0, 1});
  EXPECT_DOUBLE_EQ(reference.value(), 3.0 / 6);

  // Rows of 5, padded behind.
  SubsetPrecision mended(Rules::kMended, 3);
  mended.add(reviews, 0, std::vector<float>{1, 1, 1, 0, 0});
  EXPECT_DOUBLE_EQ(mended.value(), 2.0 / 3) << "words 0 and 1 of three";
  mended.add(reviews, 1, std::vector<float>{1, 1, 0, 0, 0});
  EXPECT_DOUBLE_EQ(mended.value(), 3.0 / 5) << "a review shorter than k is not held against it";
  EXPECT_EQ(SubsetPrecision(Rules::kMended, 3).value(), 0);

  // A review that is cut at the row's length: index i is word i.
  Reviews longer;
  longer.add(std::vector<int32_t>{5, 6, 7, 8}, 0);
  longer.rationales.push_back({{0, 1}});
  SubsetPrecision cut(Rules::kReference, 1);
  cut.add(longer, 0, std::vector<float>{1, 0});
  EXPECT_EQ(cut.value(), 1);
}

}  // namespace
}  // namespace aimle::experiments::l2x
