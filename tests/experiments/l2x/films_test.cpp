#include "experiments/l2x/films.h"

#include <algorithm>
#include <set>

#include "tests/experiments/data/files.h"

namespace aimle::experiments::l2x {
namespace {

using Words = std::vector<std::string>;

TEST(L2xTokenise, CutsAsTheAnnotatedDocumentsAre) {
  EXPECT_EQ(tokenise("It doesn't work.<br /><br />Don't."),
            (Words{"it", "does", "n't", "work", ".", "do", "n't", "."}));
  EXPECT_EQ(tokenise("it's (very) GOOD, 10/10"),
            (Words{"it", "'s", "(", "very", ")", "good", ",", "10", "/", "10"}));
  EXPECT_EQ(tokenise("rock 'n' roll <b> caf\xc3\xa9"),
            (Words{"rock", "'", "n", "'", "roll", "<", "b", ">", "caf\xc3\xa9"}));
  EXPECT_EQ(tokenise(" \t "), Words{});
  EXPECT_EQ(tokenise("<br"), (Words{"<", "br"}));
}

class L2xFilms : public testing::Test {
 protected:
  L2xFilms() {
    write_bytes(folder_ / "train.tsv.gz",
                gzipped("1\tneg_0\tbad bad film\n10\tpos_0\tgood film\n7\tpos_1\tgood good\n"));
    write_bytes(folder_ / "test.tsv.gz", gzipped("4\tneg_9\tbad plot\n"));
    write_bytes(
        folder_ / "docs.json.gz",
        gzipped("{\"a\": \"a bad film\\n indeed\", \"b\": \"good good\", \"c\": \"film\"}"));
    const auto line = [](const std::string& name, const std::string& verdict, int begin, int end) {
      return "{\"annotation_id\": \"" + name + "\", \"classification\": \"" + verdict +
             "\", \"evidences\": [[{\"docid\": \"" + name +
             "\", \"start_token\": " + std::to_string(begin) +
             ", \"end_token\": " + std::to_string(end) + "}]]}\n";
    };
    write_bytes(folder_ / "train.jsonl", line("a", "NEG", 1, 3) + line("b", "POS", 0, 1));
    write_bytes(folder_ / "val.jsonl", line("b", "POS", 0, 1));
    write_bytes(folder_ / "test.jsonl", line("c", "POS", 0, 1));
  }
  Films settings() const {
    return {.imdb = folder_.path(), .eraser = folder_.path(), .min_count = 2};
  }
  TemporaryFolder folder_;
};

TEST_F(L2xFilms, ReadsRatingsAndRationales) {
  const Corpus corpus = load_films(settings());
  EXPECT_EQ(corpus.train.ratings, (std::vector<float>{0, 1, 6.0f / 9}));
  const int32_t bad = corpus.vocabulary.find("bad");
  const int32_t film = corpus.vocabulary.find("film");
  const int32_t good = corpus.vocabulary.find("good");
  EXPECT_EQ(corpus.train.words, (std::vector<int32_t>{bad, bad, film, good, film, good, good}));
  EXPECT_EQ(corpus.heldout.words, (std::vector<int32_t>{bad, kUnknown}));
  // Each document once, although train lists b as well.
  ASSERT_EQ(corpus.annotated.count(), 3);
  EXPECT_EQ(corpus.annotated.words,
            (std::vector<int32_t>{kUnknown, bad, film, kUnknown, good, good, film}));
  EXPECT_EQ(corpus.annotated.rationales[0], (std::vector<WordRange>{{1, 3}}));
  EXPECT_EQ(corpus.annotated.ratings, (std::vector<float>{0, 1, 1}));

  Films fewer = settings();
  fewer.max_train = 2;
  EXPECT_EQ(load_films(fewer).train.ratings, (std::vector<float>{0, 1}));
}

TEST_F(L2xFilms, RefusesByFileAndLine) {
  const auto read = [&] { load_films(settings()); };
  const auto with = [&](const char* name, const std::string& text, const std::string& message) {
    const fs::path file = folder_ / name;
    const std::string good = read_bytes(file);
    write_bytes(file, file.extension() == ".gz" ? gzipped(text) : text);
    EXPECT_NE(refusal(read).find(message), std::string::npos) << refusal(read);
    write_bytes(file, good);
  };
  with("test.tsv.gz", "5\tname without text\n", "test.tsv.gz:1: expected rating, tab, name");
  with("test.tsv.gz", "5\ta\tb\n11\ta\tb\n", ":2: expected a rating from 1 to 10 but got '11'");
  with("test.tsv.gz", "x\ta\tb\n", "but got 'x'");
  with("test.tsv.gz", "", "expected at least one review");
  with("docs.json.gz", "[1]", "docs.json.gz:1: expected a JSON object");
  with("test.jsonl", "{\"annotation_id\": \"zzz\"}\n", "test.jsonl:1: expected a document 'zzz'");
  with("test.jsonl", "{\"annotation_id\": \"a\", \"classification\": \"MID\"}\n", "POS or NEG");
  with("test.jsonl", "{\"annotation_id\": \"a\", \"classification\": \"POS\"}\n", "\"evidences\"");
  with("test.jsonl",
       "{\"annotation_id\": \"c\", \"classification\": \"POS\", \"evidences\": [[{\"docid\": "
       "\"c\", \"start_token\": 0, "
       "\"end_token\": 2}]]}\n",
       "expected 0 <= start_token <= end_token <= 1 but got 0 and 2");
  with("test.jsonl",
       "{\"annotation_id\": \"c\", \"classification\": \"POS\", \"evidences\": [[{\"docid\": "
       "\"a\", \"start_token\": 0, \"end_token\": 1}]]}\n",
       "test.jsonl:1: expected evidence from the document 'c' but its docid is 'a'");
  for (const char* name : {"train.tsv.gz", "docs.json.gz", "train.jsonl"}) {
    const fs::path file = folder_ / name;
    EXPECT_GT(count_refused(file, read_bytes(file), 700, read), 200) << name;
  }
}

TEST(L2xFilmsReal, EveryAnnotatedDocumentComesOnce) {
  const fs::path folder = data_folder();
  if (!fs::exists(folder / "imdb") || !fs::exists(folder / "eraser_movies")) {
    GTEST_SKIP() << folder << " holds no imdb and eraser_movies";
  }
  const TemporaryFolder few;  // the first reviews of each file: the whole takes longer
  for (const char* name : {"train.tsv", "test.tsv"}) {
    gzFile file = gzopen((folder / "imdb" / (std::string(name) + ".gz")).c_str(), "rb");
    std::string text(1 << 20, '\0');
    text.resize(static_cast<size_t>(gzread(file, text.data(), text.size())));
    gzclose(file);
    write_bytes(few / name, text.substr(0, text.rfind('\n') + 1));
  }
  const Corpus corpus = load_films({.imdb = few.path(), .eraser = folder / "eraser_movies"});
  EXPECT_EQ(corpus.annotated.count(), 1999);
  int64_t marked = 0;
  for (const auto& ranges : corpus.annotated.rationales) {
    for (const WordRange& range : ranges) marked += range.end - range.begin;
  }
  const double share =
      static_cast<double>(marked) / static_cast<double>(corpus.annotated.words.size());
  EXPECT_GT(share, 0.03);
  EXPECT_LT(share, 0.20);
}

}  // namespace
}  // namespace aimle::experiments::l2x
