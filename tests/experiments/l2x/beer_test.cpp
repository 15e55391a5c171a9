#include "experiments/l2x/beer.h"

#include "tests/experiments/data/files.h"

namespace aimle::experiments::l2x {
namespace {

class L2xBeer : public testing::Test {
 protected:
  L2xBeer() {
    write_bytes(folder_ / "reviews.aspect1.train.txt",
                "0.1 0.7 0.5 0.5\tsmells nice beer\n0.2 0.3 0.5 0.5 0.9\tbad beer\n");
    write_bytes(folder_ / "reviews.aspect1.heldout.txt.gz", gzipped("1 0 0 0\tnice wine beer\n"));
    write_bytes(folder_ / "annotations.json",
                "{\"x\": [\"nice\", \"wine\", \"beer\"], \"y\": [0.5], \"1\": [[0, 2], [2, 3]], "
                "\"raw\": \"...\"}\n{\"x\": [\"bad\"], \"1\": []}\n");
  }
  std::string refused() {
    return refusal([&] { load_beer(folder_.path(), 1, Rules::kMended); });
  }
  TemporaryFolder folder_;
};

TEST_F(L2xBeer, MendedRules) {
  const Corpus corpus = load_beer(folder_.path(), 1, Rules::kMended);
  EXPECT_EQ(corpus.name, "BeerAdvocate, aroma");
  EXPECT_EQ(corpus.train.ratings, (std::vector<float>{0.7f, 0.3f}));
  EXPECT_EQ(corpus.train.words,
            (std::vector<int32_t>{3, 4, 5, 6, 5}));  // smells nice beer | bad beer
  EXPECT_EQ(corpus.train.starts, (std::vector<int64_t>{0, 3, 5}));
  EXPECT_EQ(corpus.vocabulary.size(), 7);
  EXPECT_EQ(corpus.heldout.words, (std::vector<int32_t>{4, kUnknown, 5}));
  EXPECT_EQ(corpus.annotated.words, (std::vector<int32_t>{4, kUnknown, 5, 6}));
  EXPECT_EQ(corpus.annotated.rationales[0], (std::vector<WordRange>{{0, 2}, {2, 3}}));
  EXPECT_TRUE(corpus.annotated.rationales[1].empty());
}

TEST_F(L2xBeer, ReferenceRulesKeepTheNewlineAndPadUnknownWords) {
  const Corpus corpus = load_beer(folder_.path(), 1, Rules::kReference);
  EXPECT_EQ(corpus.vocabulary.word(5), "beer\n");
  EXPECT_EQ(corpus.train.words, (std::vector<int32_t>{3, 4, 5, 6, 5}));
  EXPECT_EQ(corpus.heldout.words, (std::vector<int32_t>{4, kUnknown, 5}));
  // "beer" without its newline was never seen.
  EXPECT_EQ(corpus.annotated.words, (std::vector<int32_t>{4, kPad, kPad, 6}));
}

TEST_F(L2xBeer, RefusesByFileAndLine) {
  const auto heldout = folder_ / "reviews.aspect1.heldout.txt.gz";
  const std::vector<std::pair<std::string, std::string>> lines{
      {"0 0 0 0\tfine\nno tab here\n", "heldout.txt.gz:2: expected ratings, a tab"},
      {"0.5\tfine\n", ":1: expected at least 2 ratings before the tab but got 1"},
      {"0.5 1.5 0 0\tfine\n", "expected a rating in [0, 1] but got '1.5'"},
      {"0.5 nan 0 0\tfine\n", "but got 'nan'"},
      {"0.5 0.5x 0 0\tfine\n", "but got '0.5x'"},
      {"0 0 0 0\t\n", "expected words after the tab"},
      {"", "expected at least one review"}};
  for (const auto& [text, message] : lines) {
    write_bytes(heldout, gzipped(text));
    EXPECT_NE(refused().find(message), std::string::npos) << refused();
  }
  write_bytes(heldout, gzipped("1 0 0 0\tnice wine beer\n"));

  const auto annotations = folder_ / "annotations.json";
  const std::string good = read_bytes(annotations);
  const std::vector<std::pair<std::string, std::string>> objects{
      {"[]\n", "annotations.json:1: expected a JSON object"},
      {"{\"x\": [\"a\"], \"1\": []}\n{\"x\": \n", ":2: the JSON text is truncated"},
      {"{\"1\": []}\n", "expected a list of words under \"x\""},
      {"{\"x\": [1], \"1\": []}\n", "expected words under \"x\" but got 1"},
      {"{\"x\": [\"a\"], \"0\": []}\n", "expected a list of ranges under \"1\""},
      {"{\"x\": [\"a\"], \"1\": [3]}\n", "expected a range [begin, end] but got 3"},
      {"{\"x\": [\"a\"], \"1\": [[0, 2]]}\n", "expected 0 <= begin <= end <= 1 but got [0,2]"},
      {"{\"x\": [\"a\"], \"1\": [[0, 18446744073709551615]]}\n", "expected 0 <= begin"},
      {"{\"x\": [\"a\"], \"1\": [[0, 0.5]]}\n", "expected a range"},
      {"", "expected at least one annotated review"}};
  for (const auto& [text, message] : objects) {
    write_bytes(annotations, text);
    EXPECT_NE(refused().find(message), std::string::npos) << refused();
  }
  write_bytes(annotations, good);
  EXPECT_EQ(refused(), "");
  fs::remove(annotations);
  EXPECT_NE(refused().find("nor does annotations.json.gz"), std::string::npos);
  EXPECT_THROW(load_beer(folder_.path(), 4, Rules::kMended), std::invalid_argument);
}

TEST_F(L2xBeer, DamagedFilesAreRefusedOrRead) {
  const auto read = [&] { load_beer(folder_.path(), 1, Rules::kReference); };
  for (const char* name :
       {"reviews.aspect1.train.txt", "reviews.aspect1.heldout.txt.gz", "annotations.json"}) {
    const fs::path file = folder_ / name;
    EXPECT_GT(count_refused(file, read_bytes(file), 1500, read), 300) << name;
  }
}

}  // namespace
}  // namespace aimle::experiments::l2x
