#include "experiments/l2x/beer.h"

#include <nlohmann/json.hpp>

#include "aimle/base/check.h"
#include "aimle/base/numbers.h"
#include "experiments/data/file_error.h"
#include "experiments/data/json_text.h"

namespace aimle::experiments::l2x {
namespace {

using Path = std::filesystem::path;

/// Number `aspect` of the space-separated ratings before the tab.
float rating_of(const data::LineReader& reader, std::string_view ratings, int aspect) {
  for (int at = 0; at < aspect; ++at) {
    const size_t space = ratings.find(' ');
    if (space == std::string_view::npos) {
      data::fail_line(reader.path(), reader.number(), "expected at least ", aspect + 1,
                      " ratings before the tab but got ", at + 1);
    }
    ratings.remove_prefix(space + 1);
  }
  ratings = ratings.substr(0, ratings.find(' '));
  const auto rating = parse_number<float>(ratings);
  if (!rating || !(*rating >= 0 && *rating <= 1)) {
    data::fail_line(reader.path(), reader.number(), "expected a rating in [0, 1] but got '",
                    ratings, "'");
  }
  return *rating;
}

template <class Id>
Reviews read_reviews(data::LineReader& reader, int aspect, Rules rules, const Id& id_of) {
  const Path& path = reader.path();
  Reviews reviews;
  std::string line;
  std::vector<int32_t> ids;
  while (reader.next(line)) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) {
      data::fail_line(path, reader.number(), "expected ratings, a tab and words but found no tab");
    }
    const float rating = rating_of(reader, std::string_view(line).substr(0, tab), aspect);
    if (rules == Rules::kReference) line += '\n';
    std::string_view rest = std::string_view(line).substr(tab + 1);
    ids.clear();
    while (true) {
      const size_t space = rest.find(' ');
      const std::string_view word = rest.substr(0, space);
      // Python's split(" ") returns empty words between two spaces; kMended has none.
      if (rules == Rules::kReference || !word.empty()) ids.push_back(id_of(word));
      if (space == std::string_view::npos) break;
      rest.remove_prefix(space + 1);
    }
    if (ids.empty()) data::fail_line(path, reader.number(), "expected words after the tab");
    reviews.add(ids, rating);
  }
  if (reviews.count() == 0) data::fail(path, "expected at least one review");
  return reviews;
}

std::vector<WordRange> ranges_of(const Path& path, int64_t line, const nlohmann::json& list,
                                 int64_t words) {
  std::vector<WordRange> ranges;
  for (const auto& pair : list) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_integer() ||
        !pair[1].is_number_integer()) {
      data::fail_line(path, line, "expected a range [begin, end] but got ", pair.dump());
    }
    const WordRange range{pair[0].get<int64_t>(), pair[1].get<int64_t>()};
    if (range.begin < 0 || range.begin > range.end || range.end > words) {
      data::fail_line(path, line, "expected 0 <= begin <= end <= ", words, " but got ",
                      pair.dump());
    }
    ranges.push_back(range);
  }
  return ranges;
}

}  // namespace

Reviews read_beer_training(data::LineReader& reader, int aspect, Rules rules,
                           Vocabulary& vocabulary) {
  return read_reviews(reader, aspect, rules,
                      [&](std::string_view word) { return vocabulary.add(word); });
}

Reviews read_beer_annotations(data::LineReader& reader, int aspect, Rules rules,
                              const Vocabulary& vocabulary) {
  const int32_t unknown = rules == Rules::kReference ? kPad : kUnknown;
  const std::string key = std::to_string(aspect);
  const Path& path = reader.path();
  Reviews reviews;
  std::string line;
  std::vector<int32_t> ids;
  while (reader.next(line)) {
    const auto json = data::parse_json(path, line, reader.number());
    if (!json.is_object()) data::fail_line(path, reader.number(), "expected a JSON object");
    const auto words = json.find("x");
    const auto ranges = json.find(key);
    if (words == json.end() || !words->is_array() || words->empty()) {
      data::fail_line(path, reader.number(), "expected a list of words under \"x\"");
    }
    if (ranges == json.end() || !ranges->is_array()) {
      data::fail_line(path, reader.number(), "expected a list of ranges under \"", key, "\"");
    }
    ids.clear();
    for (const auto& word : *words) {
      if (!word.is_string()) {
        data::fail_line(path, reader.number(), "expected words under \"x\" but got ", word.dump());
      }
      ids.push_back(vocabulary.find(word.get_ref<const std::string&>(), unknown));
    }
    reviews.add(ids, 0);
    reviews.rationales.push_back(
        ranges_of(path, reader.number(), *ranges, static_cast<int64_t>(ids.size())));
  }
  if (reviews.count() == 0) data::fail(path, "expected at least one annotated review");
  return reviews;
}

Path beer_file(const Path& folder, int aspect, const std::string& part) {
  AIMLE_CHECK(aspect >= 0 && aspect < std::ssize(kAspects),
              "[aimle l2x] expected aspect 0 to 3 but got ", aspect);
  return data::plain_or_gz(folder /
                           ("reviews.aspect" + std::to_string(aspect) + "." + part + ".txt"));
}

Corpus load_beer(const Path& folder, int aspect, Rules rules) {
  Corpus corpus;
  Vocabulary& vocabulary = corpus.vocabulary;
  data::LineReader train(beer_file(folder, aspect, "train"));
  corpus.train = read_beer_training(train, aspect, rules, vocabulary);
  corpus.name = "BeerAdvocate, " + std::string(kAspects[aspect]);
  data::LineReader heldout(beer_file(folder, aspect, "heldout"));
  corpus.heldout = read_reviews(heldout, aspect, rules,
                                [&](std::string_view word) { return vocabulary.find(word); });
  data::LineReader annotations(data::plain_or_gz(folder / "annotations.json"));
  corpus.annotated = read_beer_annotations(annotations, aspect, rules, vocabulary);
  return corpus;
}

}  // namespace aimle::experiments::l2x
