// The BeerAdvocate files of Lei, Barzilay & Jaakkola, "Rationalizing neural predictions", 2016.
//
//   reviews.aspectA.train.txt[.gz], reviews.aspectA.heldout.txt[.gz]
//       a review per line: ratings in [0, 1], separated by spaces, a tab, words separated by
//       spaces; rating A (0 appearance, 1 aroma, 2 palate, 3 taste) is used
//   annotations.json[.gz]
//       a JSON object per line: "x" the list of words, "A" the list of [begin, end) word ranges
//
// Word ids are assigned in the order of the training file; words that occur only in the other two
// files are unknown (reviews.h explains what that means under either set of rules).
//
//   auto corpus = aimle::experiments::l2x::load_beer(folder, 3, Rules::kMended);
#pragma once

#include <filesystem>

#include "experiments/data/gzip.h"
#include "experiments/l2x/reviews.h"

namespace aimle::experiments::l2x {

Corpus load_beer(const std::filesystem::path& folder, int aspect, Rules rules);

/// One file each: rated reviews, whose words are added to the vocabulary, and annotated reviews.
Reviews read_beer_training(data::LineReader& reader, int aspect, Rules rules,
                           Vocabulary& vocabulary);
Reviews read_beer_annotations(data::LineReader& reader, int aspect, Rules rules,
                              const Vocabulary& vocabulary);

/// The path of `reviews.aspectA.PART.txt`, plain or gzipped.
std::filesystem::path beer_file(const std::filesystem::path& folder, int aspect,
                                const std::string& part);

}  // namespace aimle::experiments::l2x
