// Reviews, ratings and rationales: the data of learning to explain (L2X).
//
// A review is a list of words with a rating in [0, 1]; the task is to predict the rating from k of
// its words. Some reviews carry a rationale, the ranges of words that a person marked (or that a
// generator planted) as the reason; subset precision is the share of the chosen words inside them.
// Chen et al., "Learning to explain", ICML 2018; McAuley, Leskovec & Jurafsky, ICDM 2012.
//
// Two sets of rules turn words into rows of ids; kReference follows the authors' code:
//
//                       kMended (default)                kReference
//   end of a line       removed                          kept in the last word, "beer\n"
//   unknown words       <UNK> everywhere                 <UNK>; in annotated reviews <PAD>
//   rows of `length`    words, then padding, masked      padding, then words, not masked
//   longer reviews      their first `length` words       the same
//   a chosen word       counts if it is a word           counts if it is not <PAD>
//   subset precision    chosen words inside a range /    ranges that contain a chosen word, summed,
//                       chosen words                     / max(chosen words, k), summed
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace aimle::experiments::l2x {

enum class Rules { kMended, kReference };

inline constexpr int32_t kPad = 0, kStart = 1, kUnknown = 2, kFirstWord = 3;
inline constexpr int64_t kLength = 350;
inline constexpr std::array<std::string_view, 4> kAspects{"appearance", "aroma", "palate", "taste"};

/// Words numbered from 3 in the order in which they are added.
class Vocabulary {
 public:
  /// The id of a word, new or old.
  int32_t add(std::string_view word);
  /// The id of a word, or `otherwise`.
  int32_t find(std::string_view word, int32_t otherwise = kUnknown) const;
  /// "<PAD>", "<START>", "<UNK>" or a word.
  std::string_view word(int32_t id) const;
  /// Ids run from 0 to size() - 1.
  int32_t size() const { return kFirstWord + static_cast<int32_t>(words_.size()); }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::vector<std::string> words_;
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
};

/// Words begin ... end - 1 of a review.
struct WordRange {
  int64_t begin = 0;
  int64_t end = 0;
  bool operator==(const WordRange&) const = default;
};

/// Any number of reviews, their words one after another.
struct Reviews {
  std::vector<int32_t> words;
  std::vector<int64_t> starts{0};  // review i is words[starts[i]] ... words[starts[i + 1] - 1]
  std::vector<float> ratings;      // in [0, 1]
  std::vector<std::vector<WordRange>> rationales;  // one list per review, or none at all

  int64_t count() const { return static_cast<int64_t>(ratings.size()); }
  std::span<const int32_t> review(int64_t i) const {
    return {words.data() + starts[i], static_cast<size_t>(starts[i + 1] - starts[i])};
  }
  void add(std::span<const int32_t> ids, float rating);
};

/// The data of an experiment, from any source.
struct Corpus {
  std::string name;  // for display: "generated reviews, taste", "BeerAdvocate, aroma", ...
  Vocabulary vocabulary;
  Reviews train;
  Reviews heldout;    // validation and test, split differently for every seed
  Reviews annotated;  // with rationales
};

/// Rows of `length` ids for some reviews, [indices, length]; `real` (may be null) marks words.
void write_rows(const Reviews& reviews, std::span<const int64_t> indices, Rules rules,
                int64_t length, int64_t* ids, bool* real);

/// scikit-learn's train_test_split(test_size=0.5, random_state=seed): of NumPy's permutation the
/// first half, rounded up, is the test set, the rest the validation set.
struct Split {
  std::vector<int64_t> test;
  std::vector<int64_t> validation;
};
Split split_heldout(int64_t count, uint32_t seed);

/// Subset precision over many reviews (micro-average).
class SubsetPrecision {
 public:
  SubsetPrecision(Rules rules, int64_t k) : rules_(rules), k_(k) {}
  /// `chosen` is the row of this review as laid out by write_rows, non-zero = chosen.
  void add(const Reviews& reviews, int64_t review, std::span<const float> chosen);
  double value() const { return total_ > 0 ? correct_ / total_ : 0; }

 private:
  Rules rules_;
  int64_t k_;
  double correct_ = 0;
  double total_ = 0;
};

}  // namespace aimle::experiments::l2x
