#include "experiments/l2x/word_vectors.h"

#include <algorithm>
#include <cmath>

#include "experiments/l2x/planted.h"
#include "tests/experiments/data/files.h"

namespace aimle::experiments::l2x {
namespace {

std::string nearest(const Vocabulary& vocabulary, const WordVectors& vectors, const char* word) {
  const auto cosine = [&](int32_t a, int32_t b) {
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < vectors.dimensions; ++i) {
      const double x = vectors.values[a * vectors.dimensions + i];
      const double y = vectors.values[b * vectors.dimensions + i];
      ab += x * y, aa += x * x, bb += y * y;
    }
    return ab / std::sqrt(aa * bb + 1e-30);
  };
  const int32_t id = vocabulary.find(word);
  int32_t best = id == kFirstWord ? kFirstWord + 1 : kFirstWord;
  for (int32_t other = kFirstWord; other < vocabulary.size(); ++other) {
    if (other != id && cosine(id, other) > cosine(id, best)) best = other;
  }
  return std::string(vocabulary.word(best));
}

TEST(L2xLearnVectors, WordsOfOneMeaningAreNear) {
  const Corpus corpus = generate({.train = 2000, .heldout = 1});
  const LearnVectors settings{.dimensions = 50};
  const WordVectors vectors =
      learn_word_vectors(corpus.train, corpus.vocabulary, settings, sequential());
  const auto is_one_of = [](const std::string& word, const std::string& list) {
    return (" " + list + " ").find(" " + word + " ") != std::string::npos;
  };
  EXPECT_TRUE(is_one_of(nearest(corpus.vocabulary, vectors, "tasty"),
                        "flavorful rich juicy delicious satisfying chocolatey roasty"));
  EXPECT_TRUE(is_one_of(nearest(corpus.vocabulary, vectors, "rancid"),
                        "skunky cardboard sulfuric musty putrid stale rotten"));
  EXPECT_TRUE(is_one_of(nearest(corpus.vocabulary, vectors, "velvety"),
                        "silky luscious pillowy luxurious plush seamless sublime"));
  double squares = 0;
  for (const float value : vectors.values) squares += value * value;
  EXPECT_NEAR(squares / static_cast<double>((corpus.vocabulary.size() - 3) * 50), 0.1, 0.002);
  EXPECT_EQ(std::count(vectors.values.begin(), vectors.values.begin() + 100, 0.0f), 100);

  const auto again = learn_word_vectors(corpus.train, corpus.vocabulary, settings, thread_pool(2));
  EXPECT_EQ(again.values, vectors.values) << "threads must not matter";
  EXPECT_THROW(
      learn_word_vectors(corpus.train, corpus.vocabulary, {.dimensions = 999}, sequential()),
      std::invalid_argument);
}

TEST(L2xCachedVectors, AreLearnedOnceForATextAndSettings) {
  const TemporaryFolder folder;
  const fs::path cache = folder / "vectors.txt";
  const Corpus corpus = generate({.train = 300, .heldout = 1});
  const LearnVectors settings{.dimensions = 20};
  const WordVectors learned = cached_word_vectors(corpus, settings, cache, sequential());
  ASSERT_TRUE(fs::exists(cache));
  EXPECT_TRUE(
      read_bytes(cache).starts_with("# aimle word vectors | learned from generated reviews"));
  const auto time = fs::last_write_time(cache);
  EXPECT_EQ(cached_word_vectors(corpus, settings, cache, sequential()).values, learned.values);
  EXPECT_EQ(fs::last_write_time(cache), time);

  const Corpus other = generate({.train = 300, .heldout = 1, .seed = 1});
  EXPECT_NE(cached_word_vectors(other, settings, cache, sequential()).values, learned.values);
  EXPECT_EQ(cached_word_vectors(corpus, settings, cache, sequential()).values, learned.values);
  EXPECT_EQ(cached_word_vectors(corpus, {.dimensions = 10}, cache, sequential()).dimensions, 10);
}

TEST(L2xReadVectors, FillsWhatIsMissingUnlessReference) {
  const TemporaryFolder folder;
  const fs::path file = folder / "vectors.txt";
  Vocabulary vocabulary;
  for (const char* word : {"beer", "good", "rare"}) vocabulary.add(word);
  write_bytes(file, "beer 1 2\nunused 9 9\ngood\t3  4e0 \n");
  const WordVectors reference = read_word_vectors(file, vocabulary, Rules::kReference);
  EXPECT_EQ(reference.values, (std::vector<float>{0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 0, 0}));
  EXPECT_EQ(reference.missing, 1);
  const WordVectors mended = read_word_vectors(file, vocabulary, Rules::kMended);
  EXPECT_EQ(mended.values, (std::vector<float>{0, 0, 0, 0, 2, 3, 1, 2, 3, 4, 2, 3}));

  const auto read = [&] { read_word_vectors(file, vocabulary, Rules::kMended); };
  EXPECT_GT(count_refused(file, read_bytes(file), 3000, read), 1000);
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "but there is none"},
      {"# header\n", "but there is none"},
      {"beer\n", "vectors.txt:1: expected a word and its numbers"},
      {"beer 1 2\ngood 3\n", "vectors.txt:2: expected 2 numbers after the word"},
      {"beer 1 x\n", "expected a finite number but got 'x'"},
      {"beer 1 inf\n", "expected a finite number but got 'inf'"}};
  for (const auto& [text, message] : cases) {
    write_bytes(file, text);
    EXPECT_NE(refusal(read).find(message), std::string::npos) << refusal(read);
  }
}

}  // namespace
}  // namespace aimle::experiments::l2x
