#include "experiments/l2x/word_vectors.h"

#include <algorithm>
#include <cmath>

#include "aimle/base/check.h"
#include "aimle/base/numbers.h"
#include "experiments/data/file_error.h"
#include "experiments/process/atomic_file.h"

namespace aimle::experiments::l2x {
namespace {

using Path = std::filesystem::path;
constexpr std::string_view kSpace = " \t\r";

std::string_view next_field(std::string_view& rest) {
  const size_t begin = std::min(rest.find_first_not_of(kSpace), rest.size());
  const size_t end = std::min(rest.find_first_of(kSpace, begin), rest.size());
  const std::string_view field = rest.substr(begin, end - begin);
  rest.remove_prefix(end);
  return field;
}

/// The numbers after the word; an empty list for an empty line.
void parse_numbers(const data::LineReader& reader, std::string_view rest,
                   std::vector<float>& numbers) {
  numbers.clear();
  for (std::string_view field = next_field(rest); !field.empty(); field = next_field(rest)) {
    const auto value = parse_number<float>(field);
    if (!value || !std::isfinite(*value)) {
      data::fail_line(reader.path(), reader.number(), "expected a finite number but got '", field,
                      "'");
    }
    numbers.push_back(*value);
  }
}

struct Parsed {
  WordVectors vectors;
  std::vector<bool> present;
};

/// Lines "word numbers" until the end of the file; `line` holds the first of them.
Parsed parse_vectors(data::LineReader& reader, std::string line, const Vocabulary& vocabulary) {
  Parsed parsed;
  parsed.present.resize(static_cast<size_t>(vocabulary.size()));
  std::vector<float> numbers;
  WordVectors& vectors = parsed.vectors;
  do {
    std::string_view rest = line;
    const std::string_view word = next_field(rest);
    parse_numbers(reader, rest, numbers);
    const auto size = static_cast<int64_t>(numbers.size());
    if (vectors.dimensions == 0) {
      if (size == 0) {
        data::fail_line(reader.path(), reader.number(), "expected a word and its numbers");
      }
      vectors.dimensions = size;
      vectors.values.resize(static_cast<size_t>(size * vocabulary.size()));
    }
    if (size != vectors.dimensions) {
      data::fail_line(reader.path(), reader.number(), "expected ", vectors.dimensions,
                      " numbers after the word, as on the first line, but got ", size);
    }
    const int32_t id = word == vocabulary.word(kUnknown) ? kUnknown : vocabulary.find(word, kPad);
    if (id == kPad) continue;
    parsed.present[id] = true;
    std::ranges::copy(numbers, vectors.values.begin() + id * size);
  } while (reader.next(line));
  vectors.missing = std::count(parsed.present.begin() + kFirstWord, parsed.present.end(), false);
  return parsed;
}

void fill_missing(Parsed& parsed) {
  const int64_t d = parsed.vectors.dimensions;
  std::vector<double> mean(static_cast<size_t>(d));
  double count = 0;
  for (size_t id = kFirstWord; id < parsed.present.size(); ++id) {
    if (!parsed.present[id]) continue;
    ++count;
    for (int64_t i = 0; i < d; ++i) mean[i] += parsed.vectors.values[id * d + i];
  }
  if (count == 0) return;
  for (size_t id = kUnknown; id < parsed.present.size(); ++id) {
    if (parsed.present[id]) continue;
    for (int64_t i = 0; i < d; ++i) {
      parsed.vectors.values[id * d + i] = static_cast<float>(mean[i] / count);
    }
  }
}

bool fits_a_line(std::string_view word) {
  return !word.empty() && word.find_first_of(" \t\r\n\f\v") == std::string_view::npos;
}

void write_vectors(const Path& path, const std::string& header, const WordVectors& vectors,
                   const Vocabulary& vocabulary) {
  std::string text = header + "\n";
  for (int32_t id = kUnknown; id < vocabulary.size(); ++id) {
    if (!fits_a_line(vocabulary.word(id))) continue;
    text += vocabulary.word(id);
    for (int64_t i = 0; i < vectors.dimensions; ++i) {
      const float value = vectors.values[id * vectors.dimensions + i];
      text += ' ' + exact_number(value);
    }
    text += '\n';
  }
  write_atomically(path, std::string_view(text));
}

/// FNV-1a over the ids of the text.
uint64_t checksum(const Reviews& reviews) {
  uint64_t sum = 0xcbf29ce484222325;
  for (const int32_t id : reviews.words) {
    sum = (sum ^ static_cast<uint32_t>(id)) * 0x100000001b3;
  }
  return sum;
}

}  // namespace

WordVectors read_word_vectors(const Path& path, const Vocabulary& vocabulary, Rules rules) {
  data::LineReader reader(path);
  return read_word_vectors(reader, vocabulary, rules);
}

WordVectors read_word_vectors(data::LineReader& reader, const Vocabulary& vocabulary, Rules rules) {
  std::string line;
  if (!reader.next(line) || (line.starts_with('#') && !reader.next(line))) {
    data::fail(reader.path(), "expected a word and its numbers on every line but there is none");
  }
  Parsed parsed = parse_vectors(reader, std::move(line), vocabulary);
  if (rules == Rules::kMended) fill_missing(parsed);
  return std::move(parsed.vectors);
}

std::string vectors_header(const Corpus& corpus, const LearnVectors& settings) {
  std::ostringstream header;
  header << "# aimle word vectors | learned from " << corpus.name << ": " << corpus.train.count()
         << " reviews, " << corpus.train.words.size() << " words, checksum " << std::hex
         << checksum(corpus.train) << std::dec << " | vocabulary " << corpus.vocabulary.size()
         << ", dimensions " << settings.dimensions << ", window " << settings.window
         << ", contexts " << settings.contexts << ", iterations " << settings.iterations;
  return header.str();
}

WordVectors cached_word_vectors(const Corpus& corpus, const LearnVectors& settings,
                                const Path& cache, const Executor& executor) {
  const std::string header = vectors_header(corpus, settings);
  if (std::filesystem::exists(cache)) {
    data::LineReader reader(cache);
    std::string line;
    if (reader.next(line) && line == header && reader.next(line)) {
      return parse_vectors(reader, std::move(line), corpus.vocabulary).vectors;
    }
  }
  WordVectors vectors = learn_word_vectors(corpus.train, corpus.vocabulary, settings, executor);
  // Words that cannot be written on a line have no vector, so that the cache gives the same result.
  for (int32_t id = kFirstWord; id < corpus.vocabulary.size(); ++id) {
    if (fits_a_line(corpus.vocabulary.word(id))) continue;
    ++vectors.missing;
    std::fill_n(vectors.values.begin() + id * vectors.dimensions, vectors.dimensions, 0.0f);
  }
  write_vectors(cache, header, vectors, corpus.vocabulary);
  return vectors;
}

}  // namespace aimle::experiments::l2x
