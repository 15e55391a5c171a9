// Film reviews with human rationales, a substitute for the BeerAdvocate files.
//
//   imdb/{train,test}.tsv.gz            rating (1 to 10), a tab, a name, a tab, raw text
//   eraser_movies/docs.json.gz          one JSON object: name -> text, words split by white space
//   eraser_movies/{train,val,test}.jsonl.gz
//       a JSON object per line: "annotation_id", "classification" ("POS" or "NEG"), "evidences", a
//       list of lists of {"docid", "start_token", "end_token"}, half-open word ranges
//
// Maas et al., "Learning word vectors for sentiment analysis", ACL 2011; Zaidan, Eisner & Piatko,
// NAACL 2007, via DeYoung et al., "ERASER", ACL 2020. The ratings train and test a model; the
// rationales, from reviews of another source, are only used for evaluation. ERASER's train also
// lists the documents of val: they are left out there, so that every document occurs once.
//
// A rating r becomes (r - 1) / 9. Raw text is tokenised as in the annotated documents: lower case,
// no HTML breaks, separate punctuation, "does n't" and "it 's". Words that occur fewer than
// `min_count` times in the training text are unknown.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "experiments/data/gzip.h"
#include "experiments/l2x/reviews.h"

namespace aimle::experiments::l2x {

struct Films {
  std::filesystem::path imdb;
  std::filesystem::path eraser;
  int64_t min_count = 5;
  /// Maximum number of training reviews, every n-th of the file; 0 = all.
  int64_t max_train = 0;
  int64_t max_heldout = 0;
};

Corpus load_films(const Films& settings);

struct FilmReview {
  float rating = 0;  // in [0, 1]
  std::vector<std::string> words;
};

/// One file each: rated reviews, and annotations of `documents` (name -> text). Evidence from
/// another document than its annotation is an error.
std::vector<FilmReview> read_film_reviews(data::LineReader& reader);
Reviews read_film_annotations(data::LineReader& reader, const nlohmann::json& documents,
                              const Vocabulary& vocabulary);

/// The words of raw text.
std::vector<std::string> tokenise(std::string_view text);

}  // namespace aimle::experiments::l2x
