#include "experiments/l2x/data.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "aimle/torch/tensor/executor.h"
#include "experiments/l2x/beer.h"
#include "experiments/l2x/films.h"
#include "experiments/l2x/planted.h"
#include "experiments/l2x/word_vectors.h"
#include "experiments/process/failure.h"

namespace aimle::experiments::l2x {
namespace {

namespace fs = std::filesystem;

int aspect_of(const Settings& settings) {
  const auto found = std::ranges::find(kAspects, settings.get<std::string>("aspect"));
  return static_cast<int>(found - kAspects.begin());
}

bool is_films(const fs::path& folder) { return fs::is_directory(folder / "imdb"); }

Corpus load_corpus(const Settings& settings, Rules rules) {
  const fs::path folder = settings.get<std::string>("data");
  if (folder.empty()) {
    return generate({.train = settings.get<int64_t>("examples"),
                     .heldout = settings.get<int64_t>("heldout"),
                     .annotated = settings.get<int64_t>("annotated"),
                     .aspect = aspect_of(settings),
                     .planted = static_cast<int>(settings.get<int64_t>("planted")),
                     .difficulty = settings.get<std::string>("difficulty") == "hard"
                                       ? Difficulty::kHard
                                       : Difficulty::kEasy,
                     .seed = settings.get<uint64_t>("data_seed")});
  }
  if (is_films(folder)) {
    return load_films({.imdb = folder / "imdb",
                       .eraser = folder / "eraser_movies",
                       .max_train = settings.get<int64_t>("examples"),
                       .max_heldout = settings.get<int64_t>("heldout")});
  }
  return load_beer(folder, aspect_of(settings), rules);
}

WordVectors load_vectors(const Settings& settings, const Corpus& corpus, Rules rules) {
  const fs::path folder = settings.get<std::string>("data");
  const fs::path file = settings.get<std::string>("vectors");
  if (!folder.empty() && !is_films(folder)) {
    return read_word_vectors(file.empty() ? folder / "review+wiki.filtered.200.txt" : file,
                             corpus.vocabulary, rules);
  }
  const LearnVectors how = {.dimensions = settings.get<int64_t>("dimensions")};
  if (!file.empty()) return cached_word_vectors(corpus, how, file, ops::torch_threads());
  return learn_word_vectors(corpus.train, corpus.vocabulary, how, ops::torch_threads());
}

/// Words of the shortest and of the longest review, kLength at most.
std::pair<int64_t, int64_t> range_of_lengths(const Corpus& corpus) {
  int64_t shortest = kLength, longest = 0;
  for (const Reviews* reviews : {&corpus.train, &corpus.heldout, &corpus.annotated}) {
    for (int64_t i = 0; i < reviews->count(); ++i) {
      const int64_t size = std::min(kLength, std::ssize(reviews->review(i)));
      shortest = std::min(shortest, size);
      longest = std::max(longest, size);
    }
  }
  return {shortest, longest};
}

ReviewRows to_rows(const Reviews& reviews, Rules rules, int64_t length, at::Device device) {
  std::vector<int64_t> all(static_cast<size_t>(reviews.count()));
  std::iota(all.begin(), all.end(), int64_t{0});
  const at::Tensor ids = at::empty({reviews.count(), length}, at::kLong);
  const at::Tensor real = at::empty({reviews.count(), length}, at::kBool);
  write_rows(reviews, all, rules, length, ids.data_ptr<int64_t>(), real.data_ptr<bool>());
  auto* ratings = const_cast<float*>(reviews.ratings.data());
  return {.words = ids.to(device, at::kInt),
          .real = real.to(device),
          .ratings = at::from_blob(ratings, {reviews.count()}, at::kFloat)
                         .to(device, at::kFloat, /*non_blocking=*/false, /*copy=*/true)};
}

}  // namespace

std::vector<Option> data_options() {
  const auto size = [](const char* name, int64_t value, const char* help) {
    return Option{.name = name, .value = value, .help = help, .low = 2, .high = 1e7};
  };
  return in_data_group(
      {{.name = "aspect",
        .value = "taste",
        .help = "Aspect that the rating is about",
        .choices = {kAspects.begin(), kAspects.end()}},
       {.name = "rules",
        .value = "mended",
        .help =
            "Padding, unknown words and precision: masked and fixed, or as in the authors' code",
        .choices = {"mended", "reference"}},
       {.name = "length",
        .value = 0,
        .help = "Words per row; 0: those of the longest review, at most 350",
        .low = 0,
        .high = 1e5},
       size("examples", 10000,
            "Training reviews: number to generate, or maximum of the film reviews"),
       size("heldout", 2000, "Reviews for validation and test, half of them each"),
       size("annotated", 500, "Reviews with rationales, for precision"),
       {.name = "planted",
        .value = 10,
        .help = "Words of a generated review that determine its rating",
        .low = 1,
        .high = 12},
       {.name = "difficulty",
        .value = "easy",
        .help = "Generated reviews. easy: every aspect has its own words; hard: only the context "
                "tells the aspect of a word, aspects are correlated, ratings are noisy",
        .choices = {"easy", "hard"}},
       {.name = "data_seed", .value = 0, .help = "Seed of the generated data", .low = 0},
       {.name = "vectors",
        .value = "",
        .help = "File of word vectors; if the data have none, learned vectors are stored in it"},
       {.name = "dimensions",
        .value = 100,
        .help = "Dimensions of learned word vectors",
        .low = 1,
        .high = 1000}});
}

Data load_data(const Settings& settings) {
  const at::Device device(settings.get<std::string>("device"));
  Data data;
  data.rules =
      settings.get<std::string>("rules") == "reference" ? Rules::kReference : Rules::kMended;
  data.corpus = load_corpus(settings, data.rules);
  WordVectors vectors = load_vectors(settings, data.corpus, data.rules);
  data.vectors = at::from_blob(vectors.values.data(),
                               {data.corpus.vocabulary.size(), vectors.dimensions}, at::kFloat)
                     .to(device, at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  const Corpus& corpus = data.corpus;
  const auto [shortest, longest] = range_of_lengths(corpus);
  const auto given = settings.get<int64_t>("length");
  const int64_t length = given == 0 ? longest : given;
  data.train = to_rows(corpus.train, data.rules, length, device);
  data.heldout = to_rows(corpus.heldout, data.rules, length, device);
  data.annotated = to_rows(corpus.annotated, data.rules, length, device);
  data.shortest = shortest;
  return data;
}

}  // namespace aimle::experiments::l2x
