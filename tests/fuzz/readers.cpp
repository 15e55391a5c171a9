// The readers that need no Torch.
#include <algorithm>
#include <numeric>
#include <span>

#include "experiments/data/gzip.h"
#include "experiments/data/idx.h"
#include "experiments/data/json_text.h"
#include "experiments/data/npy.h"
#include "experiments/data/number_table.h"
#include "experiments/data/zip.h"
#include "experiments/engine/campaign_text.h"
#include "experiments/engine/config_text.h"
#include "experiments/l2x/beer.h"
#include "experiments/l2x/films.h"
#include "experiments/l2x/word_vectors.h"
#include "experiments/process/failure.h"
#include "tests/fuzz/samples.h"
#include "tests/fuzz/targets.h"

namespace aimle::fuzz {
namespace {

using namespace experiments;  // NOLINT(google-build-using-namespace): this file is all about them

void expect(bool good, const char* what) {
  if (!good) throw Broken{what};
}

size_t product(std::span<const int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), size_t{1},
                         [](size_t a, int64_t b) { return a * static_cast<size_t>(b); });
}

void read_idx_bytes(const std::string& bytes) {
  const Idx idx = parse_idx({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, kFile,
                            int64_t{1} << 20);
  expect(product(idx.shape) == idx.values.size(), "the shape does not fit the values");
  expect(
      parse_idx({reinterpret_cast<const uint8_t*>(encode_idx(idx).data()), encode_idx(idx).size()},
                kFile, int64_t{1} << 20)
              .values == idx.values,
      "what is written is not read back");
}

void read_lines(const std::string& bytes) {
  data::LineReader reader(kFile, bytes, size_t{1} << 16);
  int64_t lines = 0;
  for (std::string line; reader.next(line); ++lines) {
    expect(line.find('\n') == std::string::npos, "a line holds two");
  }
  expect(reader.number() == lines, "lines are miscounted");
}

template <class T>
void read_npy_as(const std::string& bytes) {
  const data::Array<T> array = data::parse_npy<T>(kFile, bytes);
  expect(product(array.shape) == array.values.size(), "the shape does not fit the values");
}

void read_npy_bytes(const std::string& bytes) {
  try {
    read_npy_as<uint8_t>(bytes);
  } catch (const data::FileError&) {  // others may hold its values
  }
  read_npy_as<float>(bytes);
  read_npy_as<double>(bytes);
}

void read_npz_bytes(const std::string& bytes) {
  const data::ZipArchive archive(kFile, bytes);
  for (const std::string& name : archive.names()) {
    const std::vector<char> member = archive.read(name);
    data::parse_npy<float>(kFile, {member.data(), member.size()});
  }
}

void read_csv(const std::string& bytes) {
  const data::NumberTable table = data::parse_csv(kFile, bytes);
  expect(static_cast<size_t>(table.rows * table.columns) == table.values.size(),
         "the shape does not fit the values");
}

void check_reviews(const l2x::Reviews& reviews, const l2x::Vocabulary& vocabulary) {
  expect(std::ssize(reviews.starts) == reviews.count() + 1, "reviews are miscounted");
  for (const int32_t id : reviews.words) {
    expect(id >= 0 && id < vocabulary.size(), "a word is not in the vocabulary");
  }
  for (size_t i = 0; i < reviews.rationales.size(); ++i) {
    const auto size = std::ssize(reviews.review(static_cast<int64_t>(i)));
    for (const l2x::WordRange& range : reviews.rationales[i]) {
      expect(0 <= range.begin && range.begin <= range.end && range.end <= size,
             "a rationale is outside of its review");
    }
  }
}

void read_beer_reviews(const std::string& bytes) {
  for (const l2x::Rules rules : {l2x::Rules::kMended, l2x::Rules::kReference}) {
    data::LineReader reader(kFile, bytes);
    l2x::Vocabulary vocabulary;
    check_reviews(l2x::read_beer_training(reader, 1, rules, vocabulary), vocabulary);
  }
}

void read_beer_annotations(const std::string& bytes) {
  data::LineReader reader(kFile, bytes);
  l2x::Vocabulary vocabulary;
  vocabulary.add("good");
  check_reviews(l2x::read_beer_annotations(reader, 0, l2x::Rules::kMended, vocabulary), vocabulary);
}

void read_film_reviews(const std::string& bytes) {
  data::LineReader reader(kFile, bytes);
  for (const l2x::FilmReview& review : l2x::read_film_reviews(reader)) {
    expect(review.rating >= 0 && review.rating <= 1 && !review.words.empty(), "a bad review");
  }
}

/// The first line is the file of documents.
void read_film_annotations(const std::string& bytes) {
  const size_t end = std::min(bytes.find('\n'), bytes.size());
  const auto documents = data::parse_json(kFile, bytes.substr(0, end));
  if (!documents.is_object()) return;
  data::LineReader reader(kFile, bytes.substr(std::min(end + 1, bytes.size())));
  l2x::Vocabulary vocabulary;
  vocabulary.add("good");
  check_reviews(l2x::read_film_annotations(reader, documents, vocabulary), vocabulary);
}

void read_word_vectors(const std::string& bytes) {
  data::LineReader reader(kFile, bytes);
  l2x::Vocabulary vocabulary;
  for (const char* word : {"good", "bad", "beer"}) vocabulary.add(word);
  const l2x::WordVectors vectors = l2x::read_word_vectors(reader, vocabulary, l2x::Rules::kMended);
  expect(std::ssize(vectors.values) == vectors.dimensions * vocabulary.size(),
         "the shape does not fit the values");
}

void read_json_lines(const std::string& bytes) {
  for (const auto& line : data::parse_json_lines(kFile, bytes).lines) {
    expect(line.is_object() && !line.dump().empty(), "a line is no object");
  }
}

Settings some_settings() {
  return Settings({{.name = "k", .value = 10, .low = 1, .high = 100},
                   {.name = "lr", .value = 1e-3, .low = 0, .high = 1},
                   {.name = "method", .value = "aimle", .choices = {"aimle", "imle", "ste"}},
                   {.name = "data", .value = "", .of_data = true},
                   {.name = "quiet", .value = false}});
}

void read_config(const std::string& bytes) {
  const auto config = parse_config(kFile, bytes);
  if (!config) return;
  Settings settings = some_settings();
  settings.apply((*config)["settings"]);
  expect(settings.to_json().size() == 5, "settings are lost");
}

/// name=value on every line.
void read_settings(const std::string& bytes) {
  Settings settings = some_settings();
  data::LineReader reader(kFile, bytes);
  for (std::string line; reader.next(line);) {
    const size_t equals = std::min(line.find('='), line.size());
    try {
      settings.set(line.substr(0, equals), line.substr(std::min(equals + 1, line.size())),
                   Origin::kUser);
    } catch (const data::FileError& error) {
      throw Broken{error.what()};
    } catch (const Failure&) {  // the next line may be a good one
    }
  }
  const auto k = settings.get<int64_t>("k");
  const auto lr = settings.get<double>("lr");
  expect(k >= 1 && k <= 100 && lr >= 0 && lr <= 1, "a setting is out of its range");
  Settings again = some_settings();
  again.apply(settings.to_json());
  expect(again.to_json() == settings.to_json(), "settings are not read back");
}

void read_seeds(const std::string& bytes) {
  std::vector<int64_t> seeds = parse_seeds(bytes);
  expect(!seeds.empty() && seeds.size() <= 10000, "too few or too many seeds");
  std::sort(seeds.begin(), seeds.end());
  expect(seeds.front() >= 0, "a seed is negative");
  expect(std::adjacent_find(seeds.begin(), seeds.end()) == seeds.end(), "a seed is there twice");
}

void read_grid_axis(const std::string& bytes) {
  const GridAxis axis = parse_grid_axis(bytes, some_settings());
  expect(!axis.values.empty(), "an axis has no values");
  std::vector<std::string> found;
  for (const std::string& value : axis.values) {
    Settings settings = some_settings();
    settings.set(axis.option, value, Origin::kUser);
    found.push_back(settings.get<Json>(axis.option).dump());
  }
  std::sort(found.begin(), found.end());
  expect(std::adjacent_find(found.begin(), found.end()) == found.end(), "a value is there twice");
}

}  // namespace

const std::vector<Target>& targets() {
  static const std::vector<std::string> kJson = {
      "null",    "true",    "1e999", "-1",    "18446744073709551616",
      "\\u0000", "\\ud800", "[[[[",  "{\"\":"};
  static const std::vector<std::string> kNpyWords = {
      "'descr'",      "'shape'",    "'fortran_order'", "True",         "False",
      "'<f4'",        "'<f2'",      "'|b1'",           "(0,)",         "()",
      "(1, 1, 1, 1)", "99999",      "'<i8'",           "'<u8'",        "(2, 3)",
      "'>f8'",        "4294967296", "\x93NUMPY\x02",   "\x93NUMPY\x03"};
  static const std::vector<Target> kTargets = {
      {"idx", read_idx_bytes, sample_idx(), {"\x1f\x8b", std::string("\0\0\x08\x01", 4)}},
      {"gzip", read_lines, sample_texts(), {"\x1f\x8b\x08", "\n"}},
      {"npy", read_npy_bytes, sample_npy(), kNpyWords},
      {"npz", read_npz_bytes, sample_npz(), {"PK\x01\x02", "PK\x03\x04", "PK\x05\x06"}},
      {"csv",
       read_csv,
       {"1,2,3\n4,5,6\n", " +1e5 ,\t-2.5\r\n"},
       {"nan", "inf", "1e999", "-0", ",,"}},
      {"beer_reviews",
       read_beer_reviews,
       {"0.5 1 0\tgood beer\n0 0.25 1\tbad  beer\n"},
       {"\t", " ", "1e-400", "nan"}},
      {"film_reviews",
       read_film_reviews,
       {"7\tname\tIt doesn't <br /> work.\n"},
       {"<br", ">", "n't", "'"}},
      {"beer_annotations",
       read_beer_annotations,
       {"{\"x\": [\"good\", \"beer\"], \"0\": [[0, 1], [1, 2]]}\n"},
       kJson},
      {"film_annotations",
       read_film_annotations,
       {"{\"a\": \"a good film\"}\n{\"annotation_id\": \"a\", \"classification\": \"POS\", "
        "\"evidences\": [[{\"docid\": \"a\", \"start_token\": 0, \"end_token\": 2}]]}\n"},
       kJson},
      {"word_vectors",
       read_word_vectors,
       {"# header\ngood 1 2 3\nbad 4 5 6\n"},
       {"nan", "1e99", "<UNK>"}},
      {"json_lines", read_json_lines, {"{\"n\": 1, \"x\": [1.5, null]}\n{\"n\": 2}\n"}, kJson},
      {"config",
       read_config,
       {"{\"experiment\": \"dvae\", \"seed\": 0, \"settings\": {\"k\": 3, \"lr\": 0.1, \"quiet\": "
        "true, \"method\": \"ste\"}, \"select\": \"val_loss\", \"maximised\": [\"accuracy\"]}"},
       kJson},
      {"settings",
       read_settings,
       {"k=7\nlr=0.5\nmethod=imle\ndata=/x\nquiet=yes\n"},
       {"inf", "nan", "-1", "1e400", "9223372036854775808", "0x10", "1e2"}},
      {"seeds",
       read_seeds,
       {"0-9", "3", "0,2,5-7"},
       {",", "-", "9223372036854775807", "9223372036854775808", "-9999", "10000"}},
      {"grid_axis",
       read_grid_axis,
       {"k=1,10,100", "lr=1e-3,0.5", "method=aimle,ste", "quiet=yes,no"},
       {",", "=", "data=", "_", "-", "inf", "nan", "1e2", "true"}}};
  return kTargets;
}

}  // namespace aimle::fuzz
