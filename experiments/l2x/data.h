// The reviews for learning to explain: generated ones with planted rationales, the BeerAdvocate
// files, or film reviews, with a vector for every word.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "experiments/engine/options.h"
#include "experiments/l2x/reviews.h"

namespace aimle::experiments::l2x {

/// Reviews as rows of equal length, on the run's device.
struct ReviewRows {
  at::Tensor words;    // int32 [count, length]
  at::Tensor real;     // bool [count, length]: not padding
  at::Tensor ratings;  // [count]

  int64_t count() const { return words.size(0); }
};

struct Data {
  Corpus corpus;
  Rules rules = Rules::kMended;
  at::Tensor vectors;  // [vocabulary, dimensions]
  ReviewRows train, heldout, annotated;
  int64_t shortest = 0;  // words of the shortest review
};

std::vector<Option> data_options();

/// From the folder `data`: BeerAdvocate's files, or `imdb` and `eraser_movies`; generated if empty.
Data load_data(const Settings& settings);

}  // namespace aimle::experiments::l2x
