#include "experiments/warcraft/warcraft.h"

#include <ATen/Functions.h>

#include <memory>
#include <numeric>
#include <utility>

#include "aimle/torch/functions.h"
#include "experiments/engine/learner.h"
#include "experiments/process/interrupt.h"
#include "experiments/warcraft/data.h"
#include "experiments/warcraft/model.h"
#include "experiments/warcraft/pictures.h"

namespace aimle::experiments::warcraft {
namespace {

constexpr int64_t kEvaluationBatch = 200;

bool is_baseline(const Settings& settings) {
  return settings.get<std::string>("model") == "resnet18";
}

class Pathfinder : public Learner<Data, PathNet> {
 public:
  Pathfinder(const Settings& settings, const std::shared_ptr<const Data>& data)
      : Learner(
            settings, data,
            PathNet(is_baseline(settings) ? PathNetImpl::Kind::kMask : PathNetImpl::Kind::kCosts,
                    data->cells)),
        baseline_(is_baseline(settings)),
        fenchel_young_(settings.get<std::string>("loss") == "fenchel_young"),
        schedule_(settings.get<bool>("schedule")),
        lr_(settings.get<double>("lr")),
        steps_per_epoch_((data_->train.maps.count - 1) / settings.get<int64_t>("batch") + 1),
        solver_(grid_path()) {
    EstimatorOptions options = chosen_estimator_options(settings);
    perturbation_.nb_samples = options.nb_samples.value_or(1);
    perturbation_.temperature = settings.get<double>("fenchel_young_temperature");
    if (options.noise && fenchel_young_) perturbation_.noise = *options.noise;
    if (!options.noise && method_.takes("theta_noise_temperature")) {
      options.noise = NoiseSpec{.kind = NoiseKind::kSumOfGamma, .k = data_->cells};
    }
    if (options.noise) options.noise->centred = false;  // as in the published runs
    use(settings, solver_, options, {.lr = lr_});
  }

  Scalars step(const Batch& batch) {
    model_->train();
    const at::Tensor label = data_->train.paths.index_select(0, batch.rows);
    const at::Tensor out = look(data_->train.images.index_select(0, batch.rows));
    const at::Tensor losses = loss(out, label, batch.noise_key());
    descend(batch.mean(losses.sum(1)));
    const Scalars result = {{"loss", losses.detach().mean()}};
    return solves() ? with_stats(result) : result;
  }

  /// The learning rate of the public code: a tenth from epoch 30 on, a hundredth from 40 on.
  bool schedule(int64_t step) {
    if (!schedule_) return false;
    const int64_t epoch = step / steps_per_epoch_;
    const double lr = lr_ * (epoch < 30 ? 1.0 : epoch < 40 ? 0.1 : 0.01);
    adam_->set_lr(lr);
    return std::exchange(present_lr_, lr) != lr;
  }

  Metrics evaluate(const at::Tensor&) {
    Metrics metrics;
    measure("test", data_->test, metrics);
    if (data_->validation.maps.count > 0) measure("val", data_->validation, metrics);
    return metrics;
  }

  Scalars watch() const { return solves() ? Learner::watch() : Scalars(); }

  std::vector<Picture> pictures(const at::Tensor&) {
    const at::NoGradGuard no_grad;
    model_->eval();
    const Split& test = data_->test;
    const int64_t count = std::min<int64_t>(5, test.maps.count);
    const at::Tensor images = test.images.narrow(0, 0, count);
    const at::Tensor out = look(images);
    const at::Tensor shown = baseline_ ? out.sigmoid() : out;
    return {{"paths", draw_paths(images, test.paths.narrow(0, 0, count), predict(out), shown)}};
  }

 private:
  bool solves() const { return !baseline_ && !fenchel_young_; }

  at::Tensor look(const at::Tensor& images) { return model_->forward(data_->pictures(images)); }

  /// One loss for every example and sample, [B, S].
  at::Tensor loss(const at::Tensor& out, const at::Tensor& label, const at::Tensor& key) {
    if (baseline_) return cross_entropy(out, label);
    if (fenchel_young_) {
      return perturbed_fenchel_young_loss(out, label, solver_, perturbation_, {.key = key})
          .unsqueeze(1);
    }
    const at::Tensor costs = averaging(out, given_samples_);
    const at::Tensor z = with_samples((*estimator_)(costs, {.key = key}), costs, 1);
    const at::Tensor losses = hamming(z, label);
    return estimator_->needs_losses() ? estimator_->surrogate(costs, z, losses) : losses;
  }

  static at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& label) {
    return (at::softplus(logits) - label * logits).mean({1, 2}).unsqueeze(1);
  }

  at::Tensor predict(const at::Tensor& out) const {
    return baseline_ ? out.gt(0).to(at::kFloat) : solve(solver_, out);
  }

  void measure(const std::string& name, const Split& split, Metrics& metrics) {
    const at::NoGradGuard no_grad;
    model_->eval();
    std::vector<at::Tensor> predictions;
    at::Tensor sum = at::zeros({}, at::device(device_).dtype(at::kDouble));
    for (int64_t first = 0; first < split.maps.count; first += kEvaluationBatch) {
      stop_if_interrupted();
      const int64_t count = std::min(kEvaluationBatch, split.maps.count - first);
      const at::Tensor label = split.paths.narrow(0, first, count);
      const at::Tensor out = look(split.images.narrow(0, first, count));
      const at::Tensor z = predict(out);
      sum += (baseline_ ? cross_entropy(out, label) : hamming(z.unsqueeze(1), label)).sum();
      predictions.push_back(z);
    }
    const at::Tensor paths = at::cat(predictions).to(at::kByte).cpu().contiguous();
    std::vector<int64_t> all(static_cast<size_t>(split.maps.count));
    std::iota(all.begin(), all.end(), 0);
    const PathScores scores = score_paths(
        split.maps, all, {paths.data_ptr<uint8_t>(), static_cast<size_t>(paths.numel())});
    metrics.emplace_back(name + "_loss",
                         sum.item<double>() / static_cast<double>(split.maps.count));
    metrics.emplace_back(name + "_optimal", scores.optimal);
    metrics.emplace_back(name + "_perfect_match", scores.perfect_match);
    metrics.emplace_back(name + "_cost_ratio", scores.cost_ratio);
    metrics.emplace_back(name + "_valid", scores.valid);
  }

  bool baseline_;
  bool fenchel_young_;
  bool schedule_;
  double lr_;
  double present_lr_ = lr_;
  int64_t steps_per_epoch_;
  SolverSpec solver_;
  PerturbationOptions perturbation_;
};

Training begin(const Settings& settings, const std::shared_ptr<const Data>& data) {
  return training_of(std::make_shared<Pathfinder>(settings, data), data->train.maps.count);
}

std::vector<Option> options() {
  const std::vector<Option> own = {
      {.name = "model",
       .value = "comb_resnet18",
       .help = "Costs for a solver, or the baseline that predicts the cells of the path directly",
       .choices = {"comb_resnet18", "resnet18"}},
      {.name = "loss",
       .value = "hamming",
       .help = "Hamming distance with the estimator, or the perturbed Fenchel-Young loss",
       .choices = {"hamming", "fenchel_young"}},
      {.name = "fenchel_young_temperature",
       .value = 0.1,
       .help = "Temperature of the noise (normal by default) of the Fenchel-Young loss",
       .low = 1e-9},
      {.name = "schedule",
       .value = false,
       .help = "Divide the learning rate by 10 from epoch 30 on, by 100 from epoch 40 on",
       .group = "Training"},
  };
  return combined({own, data_options()});
}

}  // namespace

Experiment experiment() {
  return {
      .name = "warcraft",
      .summary = "Shortest paths on terrain maps, learned from pictures",
      .options = options(),
      .presets = {{.name = "paper",
                   .help = "the paper's settings",
                   .values = with_paper_target({{"epochs", 50},
                                                {"batch", 70},
                                                {"lr", 5e-4},
                                                {"step", "0.01"},
                                                {"theta_noise_temperature", "0.01"},
                                                {"target_noise_temperature", "0.01"},
                                                {"lambda", "20"}})},
                  {.name = "reference",
                   .help = "the authors' code: one lambda per batch, no validation",
                   .values = with_reference_target({{"epochs", 50},
                                                    {"batch", 70},
                                                    {"lr", 5e-4},
                                                    {"theta_noise_temperature", "0.01"},
                                                    {"target_noise_temperature", "0.01"},
                                                    {"lambda", "20"},
                                                    {"validation", 0}})},
                  {.name = "blackbox",
                   .help = "Vlastelica et al.: dbb, lambda 20, decreasing learning rate",
                   .values = {{"epochs", 50},
                              {"batch", 70},
                              {"lr", 5e-4},
                              {"method", "dbb"},
                              {"lambda", "20"},
                              {"schedule", true}}},
                  {.name = "quick",
                   .help = "small, for a CPU: about a minute",
                   .values = {{"epochs", 4},
                              {"examples", 1000},
                              {"validation", 100},
                              {"test_examples", 100}}}},
      .defaults = {{"epochs", 20},
                   {"batch", 70},
                   {"lr", 5e-4},
                   {"lambda", "20"},
                   {"theta_noise_temperature", "0.01"},
                   {"target_noise_temperature", "0.01"}},
      .select = "val_optimal",
      .maximised = {"test_optimal", "test_perfect_match", "test_valid", "val_optimal",
                    "val_perfect_match", "val_valid"},
      .load = loading(load_data, begin),
  };
}

}  // namespace aimle::experiments::warcraft
