// Word vectors: read from a file, or learned from the training text.
//
// File: a word and its numbers per line, separated by white space ("review+wiki.filtered.200.txt"
// of the BeerAdvocate data). A first line that starts with '#' is a header.
//
// Learned: the positive pointwise mutual information of a word w with the words c around it,
//
//   M[w, c] = max(0, log(n(w, c) / n(w)) - log(n(c)^0.75 / sum_c' n(c')^0.75)),
//
// where c runs over the most frequent words and n counts pairs within `window` words. M is
// approximated with rank `dimensions`, M ~ U S V^T; the vector of w is row w of U sqrt(S), scaled
// so that an entry has mean square 0.1. Skip-gram with negative sampling factorises the same matrix
// implicitly (Levy & Goldberg, NIPS 2014; context smoothing 0.75: Levy, Goldberg & Dagan, TACL
// 2015), but in random order; here the same text always gives the same vectors. V comes from
// subspace iteration on M^T M. Takes seconds for 25,000 film reviews.
//
//   auto vectors = cached_word_vectors(corpus, {.dimensions = 100}, folder / "vectors.txt");
#pragma once

#include <filesystem>

#include "aimle/base/parallel.h"
#include "experiments/data/gzip.h"
#include "experiments/l2x/reviews.h"

namespace aimle::experiments::l2x {

struct WordVectors {
  int64_t dimensions = 0;
  std::vector<float> values;  // [vocabulary size, dimensions]; rows without a vector are zero
  int64_t missing = 0;        // words of the vocabulary without a vector
};

struct LearnVectors {
  int64_t dimensions = 100;
  int64_t window = 4;
  int64_t contexts = 1000;
  int iterations = 12;
};

WordVectors learn_word_vectors(const Reviews& train, const Vocabulary& vocabulary,
                               const LearnVectors& settings, const Executor& executor);

/// Under kMended, <UNK> and words of the vocabulary that the file lacks get the mean of the others.
WordVectors read_word_vectors(const std::filesystem::path& path, const Vocabulary& vocabulary,
                              Rules rules);

/// The same from an open file.
WordVectors read_word_vectors(data::LineReader& reader, const Vocabulary& vocabulary, Rules rules);

/// The vectors in `cache` if its header shows that they were learned from this text with these
/// settings; otherwise learns them and writes the file (atomically).
WordVectors cached_word_vectors(const Corpus& corpus, const LearnVectors& settings,
                                const std::filesystem::path& cache, const Executor& executor);

/// The header: "# aimle word vectors | NAME | reviews ... words ... checksum ... | settings".
std::string vectors_header(const Corpus& corpus, const LearnVectors& settings);

}  // namespace aimle::experiments::l2x
