#include "experiments/l2x/l2x.h"

#include <ATen/Functions.h>

#include <memory>

#include "aimle/torch/functions.h"
#include "experiments/engine/learner.h"
#include "experiments/engine/randomness.h"
#include "experiments/l2x/data.h"
#include "experiments/l2x/model.h"
#include "experiments/process/interrupt.h"

namespace aimle::experiments::l2x {
namespace {

constexpr int64_t kEvaluationBatch = 250;

/// Some rows of a set of reviews, ready for the model.
struct Words {
  at::Tensor vectors;              // [B, L, dims]
  std::optional<at::Tensor> mask;  // bool [B, L]
  std::optional<at::Tensor> k;     // int64 [B], if a review may have fewer than k words
  at::Tensor count;                // [B]: words to choose
  at::Tensor ratings;              // [B]
};

class Explainer : public Learner<Data, L2xModel> {
 public:
  Explainer(const Settings& settings, const std::shared_ptr<const Data>& data)
      : Learner(settings, data, L2xModel(data->vectors.size(1))),
        k_(settings.get<int64_t>("k")),
        masked_(data_->rules == Rules::kMended) {
    // Methods for one of n are trained on one word and tested on k words.
    takes_k_ = method_.applies_to(topk(k_));
    const SolverSpec solver = takes_k_ ? topk(k_) : argmax();
    use(settings, solver, chosen_estimator_options(settings),
        {.lr = settings.get<double>("lr"), .eps = 1e-7});
    const auto seed = static_cast<uint32_t>(settings.get<int64_t>("seed"));
    const Split split = split_heldout(data_->heldout.count(), seed);
    validation_ = at::tensor(split.validation, at::kLong).to(device_);
    test_ = at::tensor(split.test, at::kLong).to(device_);
  }

  Scalars step(const Batch& batch) {
    const Words words = gather(data_->train, batch.rows);
    const at::Tensor key = batch.noise_key();
    const LayerCall call = {
        .mask = words.mask, .row_data = takes_k_ ? words.k : std::nullopt, .key = key};
    const at::Tensor theta = model_->selector(words.vectors, words.mask, subkey(key, 1));
    const at::Tensor scored = averaging(theta, given_samples_);
    const at::Tensor z = with_samples((*estimator_)(scored, call), scored, 1);  // [B, S, L]
    const at::Tensor rating = model_->predictor(words.vectors, z, words.count);
    const at::Tensor errors = (rating - words.ratings.unsqueeze(1)).square();
    const at::Tensor losses = errors.detach();
    descend(with_surrogate(batch.mean(errors.sum(1)), batch, scored, z, losses, call));
    return with_stats({{"loss", losses.mean() * 100.0}});
  }

  Metrics evaluate(const at::Tensor&) {
    const at::NoGradGuard no_grad;
    return {{"val_loss", squared_error(validation_)},
            {"test_loss", squared_error(test_)},
            {"precision", 100.0 * precision()}};
  }

  /// A few annotated reviews with their words, for the report.
  Json exhibits(const at::Tensor&) {
    const at::NoGradGuard no_grad;
    const int64_t count = std::min<int64_t>(8, data_->annotated.count());
    const Words words = gather(data_->annotated, at::arange(count, at::device(device_)));
    const at::Tensor chosen = choose(words);
    const at::Tensor rating = model_->predictor(words.vectors, chosen.unsqueeze(1), words.count);
    Json result = Json::array();
    for (int64_t i = 0; i < count; ++i) {
      result.push_back(describe(i, chosen[i].cpu(), rating[i][0].item<double>()));
    }
    return result;
  }

 private:
  Words gather(const ReviewRows& reviews, const at::Tensor& rows) const {
    Words words;
    words.vectors = look_up(data_->vectors, reviews.words.index_select(0, rows));
    words.ratings = reviews.ratings.index_select(0, rows);
    if (!masked_) {
      words.count = at::full({rows.size(0)}, static_cast<double>(k_), words.ratings.options());
      return words;
    }
    words.mask = reviews.real.index_select(0, rows);
    const at::Tensor k = words.mask->sum(1).clamp_max(k_);
    if (data_->shortest < k_) words.k = k;
    words.count = k.to(at::kFloat);
    return words;
  }

  /// The k best words of every review, [B, L].
  at::Tensor choose(const Words& words) {
    const at::Tensor theta = model_->selector(words.vectors, words.mask, std::nullopt);
    if (masked_) return solve(topk(k_), theta, {.mask = words.mask, .row_data = words.k});
    // The authors take all scores that are not below the k-th best: more than k if there are ties.
    const at::Tensor kth = std::get<0>(theta.topk(k_, -1)).select(-1, k_ - 1);
    return theta.ge(kth.unsqueeze(-1)).to(theta.scalar_type());
  }

  double squared_error(const at::Tensor& rows) {
    at::Tensor sum = at::zeros({}, at::device(device_).dtype(at::kDouble));
    for (const at::Tensor& some : rows.split(kEvaluationBatch)) {
      stop_if_interrupted();
      const Words words = gather(data_->heldout, some);
      const at::Tensor rating =
          model_->predictor(words.vectors, choose(words).unsqueeze(1), words.count).squeeze(1);
      sum += (rating - words.ratings).square().sum().to(at::kDouble);
    }
    return 100.0 * sum.item<double>() / static_cast<double>(rows.size(0));
  }

  double precision() {
    SubsetPrecision precision(data_->rules, k_);
    const int64_t count = data_->annotated.count();
    const at::Tensor all = at::arange(count, at::device(device_));
    int64_t review = 0;
    for (const at::Tensor& some : all.split(kEvaluationBatch)) {
      stop_if_interrupted();
      const at::Tensor chosen = choose(gather(data_->annotated, some)).cpu().contiguous();
      for (int64_t i = 0; i < chosen.size(0); ++i, ++review) {
        const auto length = static_cast<size_t>(chosen.size(1));
        precision.add(data_->corpus.annotated, review,
                      {chosen.data_ptr<float>() + i * chosen.size(1), length});
      }
    }
    return precision.value();
  }

  Json describe(int64_t review, const at::Tensor& chosen, double rating) const {
    const Reviews& reviews = data_->corpus.annotated;
    const std::span<const int32_t> ids = reviews.review(review);
    const auto shown = std::min(static_cast<int64_t>(ids.size()), chosen.size(0));
    const int64_t first = masked_ ? 0 : chosen.size(0) - shown;  // the authors pad in front
    Json words = Json::array(), picked = Json::array(), marked = Json::array();
    for (int64_t i = 0; i < shown; ++i) {
      words.push_back(std::string(data_->corpus.vocabulary.word(ids[static_cast<size_t>(i)])));
      if (chosen[first + i].item<double>() > 0.5) picked.push_back(i);
      bool inside = false;
      for (const WordRange& range : reviews.rationales[static_cast<size_t>(review)]) {
        inside = inside || (range.begin <= i && i < range.end);
      }
      if (inside) marked.push_back(i);
    }
    return {{"words", words},
            {"chosen", picked},
            {"annotated", marked},
            {"rating", reviews.ratings[static_cast<size_t>(review)]},
            {"predicted", rating}};
  }

  int64_t k_;
  bool masked_;
  bool takes_k_ = true;           // whether the method chooses k words instead of one
  at::Tensor validation_, test_;  // rows of the held-out reviews
};

Training begin(const Settings& settings, const std::shared_ptr<const Data>& data) {
  return training_of(std::make_shared<Explainer>(settings, data), data->train.count());
}

}  // namespace

Experiment experiment() {
  const Option k = {.name = "k", .value = 10, .help = "Words to choose", .low = 1, .high = 1000};
  return {
      .name = "l2x",
      .summary = "Choosing the words that explain a rating",
      .options = combined({{k}, data_options()}),
      .presets = {{.name = "paper",
                   .help = "the paper's settings; its noise temperatures differ by method, aspect "
                           "and k",
                   .values = with_paper_target({{"epochs", 20},
                                                {"batch", 40},
                                                {"nb_samples", "1"},
                                                {"theta_noise_temperature", "1"},
                                                {"lambda", "1000"}})},
                  {.name = "reference",
                   .help = "the authors' code: unmasked padding in front, their precision, one "
                           "lambda per batch; for AIMLE their eta",
                   .values = with_reference_target({{"rules", "reference"},
                                                    {"length", 350},
                                                    {"epochs", 20},
                                                    {"batch", 40},
                                                    {"nb_samples", "1"},
                                                    {"theta_noise_temperature", "1"},
                                                    {"step", "1e-4"},
                                                    {"lambda", "1000"}})},
                  {.name = "quick",
                   .help = "small, for a CPU: about a minute",
                   .values = {{"epochs", 5}, {"examples", 4000}}}},
      .defaults = {{"epochs", 20}, {"batch", 40}, {"lambda", "1000"}},
      .maximised = {"precision"},
      .load = loading(load_data, begin),
  };
}

}  // namespace aimle::experiments::l2x
