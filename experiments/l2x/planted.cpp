#include "experiments/l2x/planted.h"

#include <algorithm>
#include <cmath>

#include "aimle/base/check.h"
#include "aimle/noise/normal.h"
#include "aimle/noise/philox.h"
#include "experiments/l2x/planted_words.h"

namespace aimle::experiments::l2x {
namespace {

constexpr int kLevels = 5;
constexpr size_t kMinWords = 30;

/// What the difficulties differ in.
struct Form {
  bool shared_words;          // every aspect is described by the words of all four
  float common, own;          // standard deviations of the two parts of a quality
  size_t fewest_distracting;  // pairs of quality words about another aspect
  size_t most_distracting;
  float rating_noise;  // standard deviation
  bool fillers;        // neutral sentences between the aspects
  size_t max_words;
};

constexpr Form kEasy = {.shared_words = false,
                        .common = 0.14f,
                        .own = 0.26f,
                        .fewest_distracting = 0,
                        .most_distracting = 3,
                        .rating_noise = 0.02f,
                        .fillers = true,
                        .max_words = 150};
constexpr Form kHard = {.shared_words = true,
                        .common = 0.25f,
                        .own = 0.15f,
                        .fewest_distracting = 1,
                        .most_distracting = 4,
                        .rating_noise = 0.2f,
                        .fillers = false,
                        .max_words = 110};

std::vector<std::string_view> cut(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// Random numbers of one review.
class Draws {
 public:
  Draws(Key key, uint32_t review) : key_(key), review_(review) {}
  uint32_t word() {
    if (at_ == 0) words_ = noise_words(key_, review_, 0, block_++);
    const uint32_t word = words_.w[at_];
    at_ = (at_ + 1) % 4;
    return word;
  }
  /// Uniform among 0 ... n - 1 (n is small).
  size_t below(size_t n) { return static_cast<size_t>(uint64_t{word()} * n >> 32); }
  float gaussian() { return normal(word()); }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[below(list.size())];
  }

 private:
  Key key_;
  uint32_t review_;
  uint32_t block_ = 0;
  int at_ = 0;
  PhiloxWords words_{};
};

/// The templates, split once.
struct Language {
  std::array<std::array<std::vector<std::string_view>, kLevels>, 4> quality;
  std::array<std::vector<std::string_view>, 4> sentences;
  std::array<std::vector<std::string_view>, 4> shared_sentences;
  std::vector<std::string_view> fillers = cut(kFillers, '|');
  std::array<std::vector<std::string_view>, 3> verdicts;

  Language() {
    for (size_t aspect = 0; aspect < 4; ++aspect) {
      sentences[aspect] = cut(kAspectSentences[aspect], '|');
      shared_sentences[aspect] = cut(kSharedSentences[aspect], '|');
      for (size_t level = 0; level < kLevels; ++level) {
        quality[aspect][level] = cut(kQualityWords[aspect][level], ' ');
      }
    }
    for (size_t verdict = 0; verdict < 3; ++verdict)
      verdicts[verdict] = cut(kVerdicts[verdict], '|');
  }
};

struct Text {
  std::vector<std::string_view> words;
  std::vector<WordRange> rationale;
  float rating = 0;
};

class Writer {
 public:
  Writer(const Language& language, const Form& form, Draws draws)
      : language_(language), form_(form), draws_(draws) {}

  Text write(int asked, int planted) {
    do {
      draft(asked, planted);
    } while (text_.words.size() > form_.max_words);
    return std::move(text_);
  }

 private:
  void draft(int asked, int planted) {
    text_ = {};
    levels_ = 0;
    std::array<float, 4> quality;
    const float common = draws_.gaussian();
    for (float& q : quality) q = 0.5f + form_.common * common + form_.own * draws_.gaussian();

    plain(draws_.one_of(language_.fillers));
    std::array<int, 4> order{0, 1, 2, 3};
    for (size_t i = 3; i > 0; --i) std::swap(order[i], order[draws_.below(i + 1)]);
    for (const int aspect : order) {
      int words = aspect == asked ? planted : distracting_words();
      while (words > 0) words -= sentence(aspect, quality[aspect], words, aspect == asked);
      if (form_.fillers && draws_.below(2) == 0) plain(draws_.one_of(language_.fillers));
    }
    float mean = 0;
    for (const float q : quality) mean += q / 4;
    const float verdict = 3 * (mean + 0.2f * draws_.gaussian());
    plain(draws_.one_of(language_.verdicts[verdict < 1 ? 0 : verdict < 2 ? 1 : 2]));
    while (text_.words.size() < kMinWords) plain(draws_.one_of(language_.fillers));

    const float exact = static_cast<float>(levels_) / static_cast<float>(4 * planted);
    text_.rating = std::clamp(exact + form_.rating_noise * draws_.gaussian(), 0.0f, 1.0f);
  }

  int distracting_words() {
    const size_t choices = form_.most_distracting - form_.fewest_distracting + 1;
    return 2 * static_cast<int>(form_.fewest_distracting + draws_.below(choices));
  }

  void plain(std::string_view sentence) {
    for (const std::string_view word : cut(sentence, ' ')) text_.words.push_back(word);
  }

  /// Fills the two slots of a sentence with at most `most` quality words; returns how many.
  int sentence(int aspect, float quality, int most, bool asked) {
    int left = most;
    int slots = 2;
    const auto& sentences = form_.shared_words ? language_.shared_sentences : language_.sentences;
    for (const std::string_view word : cut(draws_.one_of(sentences[aspect]), ' ')) {
      if (word != "@") {
        text_.words.push_back(word);
        continue;
      }
      --slots;
      // Leaves something for the second slot, and never a single word for the next sentence.
      int count = std::min(std::max(left - slots, 1), 1 + static_cast<int>(draws_.below(3)));
      // A shared word has its noun among the next three words.
      if (slots == 0 && left - count == 1) count += form_.shared_words && count > 1 ? -1 : 1;
      count = std::min(count, left);
      phrase(aspect, quality, count, asked);
      left -= count;
    }
    return most - left;
  }

  void phrase(int aspect, float quality, int count, bool asked) {
    if (count == 0) return;
    const auto level = static_cast<size_t>(
        std::lround(std::clamp(4 * quality + 0.7f * draws_.gaussian(), 0.0f, 4.0f)));
    const auto begin = static_cast<int64_t>(text_.words.size());
    const size_t words_of = form_.shared_words ? draws_.below(4) : static_cast<size_t>(aspect);
    const auto& list = language_.quality[words_of][level];
    const size_t first = draws_.below(list.size());
    const size_t stride = 1 + 2 * draws_.below(list.size() / 2);  // odd, so no word is repeated
    for (int i = 0; i < count; ++i) {
      text_.words.push_back(list[(first + i * stride) % list.size()]);
    }
    if (asked) {
      text_.rationale.push_back({begin, begin + count});
      levels_ += static_cast<int>(level) * count;
    }
  }

  const Language& language_;
  const Form& form_;
  Draws draws_;
  Text text_;
  int levels_ = 0;
};

template <class Id>
Reviews write_reviews(const Planted& settings, const Language& language, uint64_t split,
                      int64_t count, const Id& id_of) {
  Reviews reviews;
  const Key key{.seed = settings.seed,
                .stream = split | static_cast<uint64_t>(settings.aspect) << 8};
  const Form& form = settings.difficulty == Difficulty::kHard ? kHard : kEasy;
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) {
    Text text = Writer(language, form, {key, static_cast<uint32_t>(i)})
                    .write(settings.aspect, settings.planted);
    ids.clear();
    for (const std::string_view word : text.words) ids.push_back(id_of(word));
    reviews.add(ids, text.rating);
    reviews.rationales.push_back(std::move(text.rationale));
  }
  return reviews;
}

}  // namespace

Corpus generate(const Planted& settings) {
  AIMLE_CHECK(settings.aspect >= 0 && settings.aspect < 4,
              "[aimle l2x] expected aspect 0 to 3 but got ", settings.aspect);
  AIMLE_CHECK(settings.planted >= 1 && settings.planted <= 15,
              "[aimle l2x] expected 1 to 15 planted words but got ", settings.planted);
  AIMLE_CHECK(settings.train >= 1 && settings.heldout >= 1 && settings.annotated >= 0,
              "[aimle l2x] expected at least one training and one held-out review but got ",
              settings.train, " and ", settings.heldout);
  const Language language;
  Corpus corpus;
  corpus.name = "generated reviews, " + std::string(kAspects[settings.aspect]);
  Vocabulary& vocabulary = corpus.vocabulary;
  corpus.train = write_reviews(settings, language, 0, settings.train,
                               [&](std::string_view word) { return vocabulary.add(word); });
  const auto known = [&](std::string_view word) { return vocabulary.find(word); };
  corpus.heldout = write_reviews(settings, language, 1, settings.heldout, known);
  corpus.annotated = write_reviews(settings, language, 2, settings.annotated, known);
  return corpus;
}

}  // namespace aimle::experiments::l2x
