#include "experiments/l2x/films.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "experiments/data/file_error.h"
#include "experiments/data/json_text.h"

namespace aimle::experiments::l2x {
namespace {

using Path = std::filesystem::path;
using nlohmann::json;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 128;
}

/// "does" + "n't", "it" + "'s": the word up to where its ending starts.
size_t ending_at(std::string_view word) {
  if (word.size() > 3 && word.ends_with("n't")) return word.size() - 3;
  const size_t apostrophe = word.rfind('\'');
  return apostrophe == std::string_view::npos || apostrophe == 0 ? word.size() : apostrophe;
}

/// Which reviews to keep: all, or `most` of them spread over the file (which is sorted by class).
std::vector<FilmReview> read_some(const Path& path, int64_t most) {
  data::LineReader reader(path);
  std::vector<FilmReview> reviews = read_film_reviews(reader);
  const auto count = static_cast<int64_t>(reviews.size());
  if (count == 0) data::fail(path, "expected at least one review");
  if (most == 0 || most >= count) return reviews;
  std::vector<FilmReview> some;
  for (int64_t i = 0; i < most; ++i) some.push_back(std::move(reviews[i * count / most]));
  return some;
}

json parse_object(const Path& path, const std::string& text, int64_t line) {
  json object = data::parse_json(path, text, line);
  if (!object.is_object()) data::fail_line(path, line, "expected a JSON object");
  return object;
}

const std::string& text_of(const Path& path, int64_t line, const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) {
    data::fail_line(path, line, "expected a text under \"", key, "\"");
  }
  return found->get_ref<const std::string&>();
}

int64_t number_of(const Path& path, int64_t line, const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) {
    data::fail_line(path, line, "expected a whole number under \"", key, "\"");
  }
  return found->get<int64_t>();
}

std::vector<int32_t> split_words(std::string_view text, const Vocabulary& vocabulary) {
  constexpr std::string_view kSpace = " \t\n\r\f\v";
  std::vector<int32_t> ids;
  for (size_t at = text.find_first_not_of(kSpace); at != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kSpace, at), text.size());
    ids.push_back(vocabulary.find(text.substr(at, end - at)));
    at = text.find_first_not_of(kSpace, end);
  }
  return ids;
}

struct Annotation {
  std::string name;
  json object;
  int64_t line;
};

std::vector<Annotation> read_lines(data::LineReader& reader) {
  const Path& path = reader.path();
  std::vector<Annotation> out;
  std::string line;
  while (reader.next(line)) {
    json object = parse_object(path, line, reader.number());
    std::string name = text_of(path, reader.number(), object, "annotation_id");
    out.push_back({std::move(name), std::move(object), reader.number()});
  }
  return out;
}

void add_annotations(const Path& path, const std::vector<Annotation>& annotations,
                     const std::set<std::string>& leave_out, const json& documents,
                     const Vocabulary& vocabulary, Reviews& reviews) {
  for (const auto& [name, object, line] : annotations) {
    if (leave_out.contains(name)) continue;
    const auto document = documents.find(name);
    if (document == documents.end() || !document->is_string()) {
      data::fail_line(path, line, "expected a document '", name, "' in docs.json");
    }
    const auto ids = split_words(document->get_ref<const std::string&>(), vocabulary);
    const auto size = static_cast<int64_t>(ids.size());
    const std::string& verdict = text_of(path, line, object, "classification");
    if (verdict != "POS" && verdict != "NEG") {
      data::fail_line(path, line, "expected POS or NEG but got '", verdict, "'");
    }
    const auto evidences = object.find("evidences");
    if (evidences == object.end() || !evidences->is_array()) {
      data::fail_line(path, line, "expected a list under \"evidences\"");
    }
    std::vector<WordRange> ranges;
    for (const json& group : *evidences) {
      if (!group.is_array()) data::fail_line(path, line, "expected lists in \"evidences\"");
      for (const json& evidence : group) {
        if (!evidence.is_object()) data::fail_line(path, line, "expected objects as evidence");
        if (const std::string& named = text_of(path, line, evidence, "docid"); named != name) {
          data::fail_line(path, line, "expected evidence from the document '", name,
                          "' but its docid is '", named, "'");
        }
        const WordRange range{number_of(path, line, evidence, "start_token"),
                              number_of(path, line, evidence, "end_token")};
        if (range.begin < 0 || range.begin > range.end || range.end > size) {
          data::fail_line(path, line, "expected 0 <= start_token <= end_token <= ", size,
                          " but got ", range.begin, " and ", range.end);
        }
        ranges.push_back(range);
      }
    }
    reviews.add(ids, verdict == "POS" ? 1.0f : 0.0f);
    reviews.rationales.push_back(std::move(ranges));
  }
}

std::vector<Annotation> read_lines(const Path& path) {
  data::LineReader reader(path);
  return read_lines(reader);
}

Reviews read_rationales(const Path& folder, const Vocabulary& vocabulary) {
  const Path docs = data::plain_or_gz(folder / "docs.json");
  const json documents = parse_object(docs, data::read_text(docs), 1);
  std::set<std::string> validation;
  const Path val = data::plain_or_gz(folder / "val.jsonl");
  const std::vector<Annotation> val_lines = read_lines(val);
  for (const Annotation& annotation : val_lines) validation.insert(annotation.name);
  Reviews reviews;
  const Path train = data::plain_or_gz(folder / "train.jsonl");
  add_annotations(train, read_lines(train), validation, documents, vocabulary, reviews);
  add_annotations(val, val_lines, {}, documents, vocabulary, reviews);
  const Path test = data::plain_or_gz(folder / "test.jsonl");
  add_annotations(test, read_lines(test), {}, documents, vocabulary, reviews);
  return reviews;
}

}  // namespace

std::vector<std::string> tokenise(std::string_view text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '<') {
      const size_t end = text.find('>', at);
      if (end != std::string_view::npos && text.substr(at, 3) == "<br") {
        at = end + 1;
        continue;
      }
    }
    std::string word;
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    while (at < text.size() && (is_letter(lower(text[at])) ||
                                (text[at] == '\'' && !word.empty() && at + 1 < text.size() &&
                                 is_letter(lower(text[at + 1]))))) {
      word += lower(text[at++]);
    }
    if (word.empty()) {
      const char c = text[at++];
      if (c > ' ') words.emplace_back(1, c);
      continue;
    }
    const size_t ending = ending_at(word);
    words.push_back(word.substr(0, ending));
    if (ending < word.size()) words.push_back(word.substr(ending));
  }
  return words;
}

std::vector<FilmReview> read_film_reviews(data::LineReader& reader) {
  const Path& path = reader.path();
  std::vector<FilmReview> reviews;
  std::string line;
  while (reader.next(line)) {
    const size_t first = line.find('\t');
    const size_t second = first == std::string::npos ? first : line.find('\t', first + 1);
    if (second == std::string::npos) {
      data::fail_line(path, reader.number(), "expected rating, tab, name, tab, text");
    }
    const std::string_view digits = std::string_view(line).substr(0, first);
    int rating = 0;
    for (const char digit : digits.substr(0, 3)) {
      rating = digit >= '0' && digit <= '9' ? rating * 10 + (digit - '0') : 999;
    }
    if (rating < 1 || rating > 10) {
      data::fail_line(path, reader.number(), "expected a rating from 1 to 10 but got '", digits,
                      "'");
    }
    FilmReview review{.rating = static_cast<float>(rating - 1) / 9,
                      .words = tokenise(std::string_view(line).substr(second + 1))};
    if (review.words.empty()) data::fail_line(path, reader.number(), "expected words in the text");
    reviews.push_back(std::move(review));
  }
  return reviews;
}

Reviews read_film_annotations(data::LineReader& reader, const json& documents,
                              const Vocabulary& vocabulary) {
  Reviews reviews;
  add_annotations(reader.path(), read_lines(reader), {}, documents, vocabulary, reviews);
  return reviews;
}

Corpus load_films(const Films& settings) {
  Corpus corpus;
  corpus.name = "film reviews with ERASER's rationales (substitute for BeerAdvocate)";
  const auto train = read_some(data::plain_or_gz(settings.imdb / "train.tsv"), settings.max_train);
  std::unordered_map<std::string_view, int64_t> counts;
  for (const FilmReview& review : train) {
    for (const std::string& word : review.words) ++counts[word];
  }
  std::vector<int32_t> ids;
  for (const FilmReview& review : train) {
    ids.clear();
    for (const std::string& word : review.words) {
      ids.push_back(counts[word] >= settings.min_count ? corpus.vocabulary.add(word) : kUnknown);
    }
    corpus.train.add(ids, review.rating);
  }
  const auto heldout =
      read_some(data::plain_or_gz(settings.imdb / "test.tsv"), settings.max_heldout);
  for (const FilmReview& review : heldout) {
    ids.clear();
    for (const std::string& word : review.words) ids.push_back(corpus.vocabulary.find(word));
    corpus.heldout.add(ids, review.rating);
  }
  corpus.annotated = read_rationales(settings.eraser, corpus.vocabulary);
  return corpus;
}

}  // namespace aimle::experiments::l2x
