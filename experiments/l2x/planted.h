// Generated beer reviews with planted rationales: the data of the experiment without files, for
// which the true rationales are known.
//
// A review has four aspects (appearance, aroma, palate, taste), each with a quality in [0, 1]; the
// qualities have a weak common part, so the words about one aspect carry some information about the
// others. Its sentences are plain beer talk with slots for quality words; every aspect has its own
// words for each of five levels. The chosen aspect fills exactly `planted` words, whose mean level
// (plus noise of sd 0.02) is the rating: all of them matter, and given them nothing else does. The
// other aspects, and a verdict at the end, are distractors.
//
//   ... pours [gorgeous radiant] with a [sparkling] head ; smells [floral] and faintly [musty] ...
//
// Reviews are 30 to 150 words long.
//
// Hard reviews hide the rationale in its context: all aspects are described by the same quality
// words, and only the noun that follows tells which aspect a word is about. The aspects are strongly
// correlated, so the words about the others predict the rating nearly as well, and the rating has
// noise of sd 0.2. Every other aspect has 2 to 8 quality words; reviews have at most 110 words.
//
//   ... a [floral sublime] flavor and a [tasty] aftertaste . [radiant] hops and [juicy] malt ...
//
// The noun is one of the three words after a quality word, inside the seven words that the selector
// reads around every word, so a precision of 100 % is possible if k is at most `planted`.
//
// Review i of a split depends on (seed, split, aspect, i) and the form of the reviews alone.
//
//   auto corpus = aimle::experiments::l2x::generate({.aspect = 3});
#pragma once

#include "experiments/l2x/reviews.h"

namespace aimle::experiments::l2x {

enum class Difficulty { kEasy, kHard };

struct Planted {
  int64_t train = 10'000;
  int64_t heldout = 2'000;
  int64_t annotated = 500;
  int aspect = 3;
  int planted = 10;
  Difficulty difficulty = Difficulty::kEasy;
  uint64_t seed = 0;
};

/// `train` and `heldout` have rationales too, since they are known for all reviews.
Corpus generate(const Planted& settings);

}  // namespace aimle::experiments::l2x
