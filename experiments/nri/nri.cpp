#include "experiments/nri/nri.h"

#include <ATen/Functions.h>

#include <memory>

#include "aimle/torch/functions.h"
#include "experiments/engine/learner.h"
#include "experiments/engine/randomness.h"
#include "experiments/nri/choice.h"
#include "experiments/nri/data.h"
#include "experiments/nri/evidence.h"
#include "experiments/nri/model.h"
#include "experiments/nri/scores.h"
#include "experiments/process/interrupt.h"

namespace aimle::experiments::nri {
namespace {

constexpr int64_t kVertices = 10;
constexpr int64_t kEvaluationBatch = 100;  // affects batch norm's statistics in the authors' test

/// A learning rate and a temperature of the noise.
struct Tuned {
  double lr = 0;
  std::string noise_temperature;
};

/// The authors' values for their methods; for others those of the central AIMLE.
Tuned tuned(const std::string& method, int64_t frames) {
  const bool forward = method == "aimle_forward" || method == "imle";
  if (method == "sst") return {.lr = 1e-4, .noise_temperature = ""};
  if (frames < 20) return forward ? Tuned{1e-4, "1"} : Tuned{5e-4, "0.1"};
  return {5e-4, forward ? "0.1" : "1"};
}

class TreeLearner : public Learner<Data, NriModel> {
 public:
  TreeLearner(const Settings& settings, const std::shared_ptr<const Data>& data)
      : Learner(settings, data,
                NriModel(NriShape{.vertices = kVertices,
                                  .frames = data->train.paths.size(2),
                                  .hidden = settings.get<int64_t>("hidden")})),
        solver_(spanning_tree(kVertices)),
        wiring_(kVertices, device_),
        horizon_(settings.get<int64_t>("horizon")),
        authors_(settings.get<std::string>("evaluation") == "authors"),
        best_(at::full({}, -1e300, at::kDouble)) {
    const int64_t frames = data_->train.paths.size(2);
    if (horizon_ == 0) horizon_ = std::min<int64_t>(frames - 1, 10);
    const Tuned found = tuned(method_.name, frames);
    EstimatorOptions options = chosen_estimator_options(settings);
    if (method_.takes("noise") && !options.noise) options.noise = default_noise(method_, kVertices);
    if (method_.takes("theta_noise_temperature") && !options.theta_noise_temperature &&
        !found.noise_temperature.empty()) {
      set_option(options, "theta_noise_temperature", found.noise_temperature);
    }
    noisy_ = method_.name == "sst" || method_.name == "ste";
    noise_ = options.noise.value_or(NoiseSpec{});
    noise_temperature_ = options.theta_noise_temperature.value_or(1.0);
    const bool noise_free = noise_.kind == NoiseKind::kNone || method_.name == "dbb";
    tree_temperature_ = noise_free ? 0.0 : noise_temperature_;
    gradient_ = link_gradient(settings, options);
    links_ = method_.soft && !options.hard.value_or(false) ? Links::kAny : Links::kTrees;
    const double lr = settings.get<double>("lr");
    use(settings, solver_, options, {.lr = lr > 0 ? lr : found.lr});
  }

  std::map<std::string, at::Tensor> state_tensors() const {
    std::map<std::string, at::Tensor> result = Learner::state_tensors();
    result["best"] = best_;
    return result;
  }

  Scalars step(const Batch& batch) {
    const at::Tensor paths = data_->train.paths.index_select(0, batch.rows);
    const at::Tensor theta = scores(paths);
    const at::Tensor scored = averaging(theta, given_samples_);
    const auto [z, links] = choose(*estimator_, wiring_, gradient_, scored, batch.noise_key());
    const at::Tensor nll =
        path_nll(paths, model_->decoder(paths, links, horizon_, wiring_, links_));
    const at::Tensor kl = score_kl(theta, kVertices);
    const at::Tensor losses = nll.detach();
    descend(with_surrogate(batch.mean(nll.sum(1) + kl), batch, scored, z, losses));
    return with_stats({{"loss", (losses.mean(1) + kl.detach()).mean()},
                       {"train_nll", losses.mean()},
                       {"train_kl", kl.detach().mean()}});
  }

  Metrics evaluate(const at::Tensor& key) {
    const at::NoGradGuard no_grad;
    Metrics metrics;
    model_->eval();
    measure("val", data_->validation, key, metrics);
    const double elbo = metrics.front().second;
    if (elbo >= best_.item<double>()) {
      const std::vector<at::Tensor> kept = copies(model_->buffers());
      const auto put_back = [&] {
        const std::vector<at::Tensor> buffers = model_->buffers();
        for (size_t i = 0; i < kept.size(); ++i) buffers[i].copy_(kept[i]);
      };
      model_->train(authors_);
      try {
        measure("test", data_->test, subkey(key, 1), metrics);
      } catch (const Interrupted&) {
        put_back();
        throw;
      }
      put_back();
      best_.fill_(elbo);
    }
    model_->train();
    return metrics;
  }

  /// A few graphs of the test set, for the report.
  Json exhibits(const at::Tensor&) {
    const at::NoGradGuard no_grad;
    const int64_t count = std::min<int64_t>(6, data_->test.count());
    const at::Tensor paths = data_->test.paths.narrow(0, 0, count);
    model_->eval();
    const at::Tensor pairs = solve(solver_, scores(paths));
    const at::Tensor links = wiring_.both_ways(pairs).unsqueeze(1);
    const at::Tensor predicted =
        model_->decoder(paths, links, paths.size(2) - 1, wiring_, Links::kTrees).select(1, 0);
    model_->train();
    return describe_graphs(paths, data_->test.trees.narrow(0, 0, count), pairs, predicted);
  }

 private:
  at::Tensor scores(const at::Tensor& paths) {
    return wiring_.symmetric(model_->encoder(paths, wiring_));
  }

  static std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
    std::vector<at::Tensor> result;
    for (const at::Tensor& tensor : tensors) result.push_back(tensor.clone());
    return result;
  }

  at::Tensor perturbed_tree(const at::Tensor& theta, const NoiseSpec& noise, double temperature,
                            const at::Tensor& key) const {
    const at::Tensor eps =
        sample_noise(noise, key, theta.sizes().slice(0, 1), 1, theta.sizes().slice(1)).squeeze(1);
    return solve(solver_, theta + eps * temperature);
  }

  /// Sum over the graphs of the nll of one tree each.
  at::Tensor tree_nll(const at::Tensor& paths, const at::Tensor& tree) {
    const at::Tensor links = wiring_.both_ways(tree).unsqueeze(1);
    return path_nll(paths, model_->decoder(paths, links, 1, wiring_, Links::kTrees)).sum();
  }

  /// Sums over the graphs of nll and KL of trees drawn from the scores (evidence.h), by n: [2].
  at::Tensor tree_evidence(const at::Tensor& paths, const at::Tensor& theta,
                           const at::Tensor& key) {
    const at::Tensor tree = draw_tree(theta, kVertices, tree_temperature_, key);
    const at::Tensor kl = tree_kl(theta, kVertices, tree_temperature_).sum();
    return at::stack({tree_nll(paths, tree).to(at::kDouble), kl / double{kVertices}});
  }

  void measure(const std::string& split, const Split& data, const at::Tensor& key,
               Metrics& metrics) {
    at::Tensor sums = at::zeros({10}, at::device(device_).dtype(at::kDouble));
    for (int64_t first = 0; first < data.count(); first += kEvaluationBatch) {
      stop_if_interrupted();
      const int64_t count = std::min(kEvaluationBatch, data.count() - first);
      const at::Tensor paths = data.paths.narrow(0, first, count);
      const at::Tensor theta = scores(paths);
      const at::Tensor batch_key = subkey(key, 2 + 2 * first);
      const at::Tensor tree = authors_ && noisy_
                                  ? perturbed_tree(theta, noise_, noise_temperature_, batch_key)
                                  : solve(solver_, theta);
      const at::Tensor scored =
          authors_ ? perturbed_tree(theta, {}, 1.0, subkey(batch_key, 1)) : tree;
      const at::Tensor nll = tree_nll(paths, tree), kl = score_kl(theta, kVertices).sum();
      const at::Tensor truth = data.trees.narrow(0, first, count);
      sums += at::cat({at::stack({nll, kl}).to(at::kDouble), score_trees(truth, scored),
                       tree_evidence(paths, theta, subkey(batch_key, 2))});
    }
    const at::Tensor means = (sums / data.count()).cpu();
    const auto mean = [&](int64_t i) { return means[i].item<double>(); };
    const bool complement = authors_ && mean(5) > mean(2);
    const int64_t scored = complement ? 5 : 2;
    metrics.emplace_back(split + "_elbo", -mean(0) - mean(1));
    metrics.emplace_back(split + "_nll", mean(0));
    metrics.emplace_back(split + "_kl", mean(1));
    metrics.emplace_back(split + "_tree_elbo", -mean(8) - mean(9));
    metrics.emplace_back(split + "_tree_nll", mean(8));
    metrics.emplace_back(split + "_tree_kl", mean(9));
    metrics.emplace_back(split + "_precision", 100.0 * mean(scored));
    metrics.emplace_back(split + "_recall", 100.0 * mean(scored + 1));
    metrics.emplace_back(split + "_accuracy", 100.0 * mean(scored + 2));
  }

  SolverSpec solver_;
  Wiring wiring_;
  int64_t horizon_;
  bool authors_;
  at::Tensor best_;  // validation ELBO so far
  bool noisy_ = false;
  LinkGradient gradient_;
  Links links_ = Links::kAny;
  NoiseSpec noise_;
  double noise_temperature_ = 1.0;
  double tree_temperature_ = 1.0;  // of the distribution of trees (evidence.h)
};

Training begin(const Settings& settings, const std::shared_ptr<const Data>& data) {
  Training result = training_of(std::make_shared<TreeLearner>(settings, data), data->train.count());
  result.shuffle = settings.get<bool>("shuffle");
  result.epoch_steps = settings.get<int64_t>("epoch_steps");
  result.evaluate_first = true;
  return result;
}

}  // namespace

Experiment experiment() {
  const std::vector<Option> of_model = {
      {.name = "hidden", .value = 256, .help = "Width of all layers", .low = 1, .high = 1e5},
      {.name = "horizon",
       .value = 0,
       .help = "Frames predicted from one true frame in training; 0: all, at most 10",
       .low = 0,
       .high = 1000}};
  const std::vector<Option> of_training = in_group(
      "Training",
      {{.name = "lr",
        .value = 0.0,
        .help = "Learning rate of Adam; 0: the authors' for the method and the "
                "number of frames, 1e-4 or 5e-4",
        .low = 0},
       {.name = "epochs",
        .value = 2,
        .help = "Rounds of --epoch_steps steps, each followed by validation",
        .low = 1,
        .high = 1e6},
       {.name = "epoch_steps", .value = 500, .help = "Steps per epoch", .low = 1, .high = 1e7},
       {.name = "shuffle", .value = true, .help = "Shuffle the examples in every pass"},
       {.name = "directions",
        .value = "both",
        .help = "Gradient of a pair: sum over both links, or one link as in the authors' code",
        .choices = {"both", "one"}},
       {.name = "divide",
        .value = true,
        .help = "Divide the difference of imle and imle_central by lambda; the authors do not"},
       {.name = "evaluation",
        .value = "alike",
        .help = "Noise-free trees for every method, or as in the authors' code",
        .choices = {"alike", "authors"}}});
  return {
      .name = "nri",
      .summary = "Latent trees behind moving points",
      .options = combined({of_model, of_training, data_options()}),
      .presets =
          {{.name = "paper",
            .help = "the paper's settings, with the same evaluation for every method; lr 0: the "
                    "authors' for the method and number of frames",
            .values = with_paper_target({{"epochs", 100},
                                         {"epoch_steps", 500},
                                         {"batch", 128},
                                         {"lr", 0.0},
                                         {"nb_samples", "1"},
                                         {"hard", "true"},
                                         {"lambda", "10"}})},
           {.name = "reference",
            .help = "the authors' code: one lambda per batch, one direction, their noise and batch "
                    "norm; lr 0: theirs for the method and number of frames",
            .values = with_reference_target(
                {{"epochs", 100},
                 {"batch", 128},
                 {"lr", 0.0},
                 {"nb_samples", "1"},
                 // Theirs is 1 and counts links; an exchange changes four links, or two pairs.
                 {"target_norm", "0.5"},
                 {"initial_gbar", "0.5"},
                 {"hard", "true"},
                 {"directions", "one"},
                 {"divide", false},
                 // Unknown for theirs; the best of their 1, 10 and 100 on validation.
                 {"lambda", "1"},
                 {"evaluation", "authors"},
                 {"shuffle", false}})},
           {.name = "quick",
            .help = "small, for a CPU: about a minute",
            .values = {{"epochs", 4},
                       {"epoch_steps", 100},
                       {"batch", 64},
                       {"hidden", 64},
                       {"examples", 10000},
                       {"validation", 500},
                       {"test_examples", 500}}}},
      .defaults = {{"batch", 128}, {"lambda", "10"}},
      .select = "val_elbo",
      .maximised = {"val_elbo", "test_elbo", "val_tree_elbo", "test_tree_elbo", "val_precision",
                    "test_precision", "val_recall", "test_recall", "val_accuracy", "test_accuracy"},
      .load = loading(load_data, begin),
  };
}

}  // namespace aimle::experiments::nri
