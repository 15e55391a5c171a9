#include "cli/paper_entries.h"

#include <map>

#include "aimle/base/join.h"

namespace aimle::cli {
namespace {

const std::string kGenerated = " `--set {}.data=FOLDER` uses the files instead.";

std::string with_files(const std::string& text, const std::string& experiment) {
  std::string hint = kGenerated;
  return text + hint.replace(hint.find("{}"), 2, experiment);
}

std::vector<Entry> synth_entries() {
  const std::string same =
      "The authors' figures have no numbers; ours are compared with an independent simulation "
      "of their published procedure. b = |N(0, I)| as in their code, not N(0, I) as in the text.";
  return {
      {.name = "synth-samples",
       .title = "Gradients by number of samples",
       .paper = "Figure: cosine to the true gradient for S = 1 to 100 000 and n = 10, 20, 30, 50, "
                "32 seeds. The paper: AIMLE needs fewer samples than the others.",
       .substitute = same,
       .full = "Adaptive estimators are warmed up for 1500 steps (the authors' script: 100).",
       .quick = "8 seeds, n = 10 and 50, S up to 1000, warm-up of 100 steps, the paper's "
                "estimators only.",
       .commands = {{.name = "samples",
                     .full = "synth samples --preset paper",
                     .quick =
                         "synth samples --preset paper --n 10,50 --seeds 8 --samples 1,10,100,1000 "
                         "--warmup 100 --estimators "
                         "aimle,aimle_forward,imle,imle_central,ste,sfe"}}},
      {.name = "synth-lambda",
       .title = "Bias and sparsity by λ",
       .paper =
           "Figures: cosine and share of zeros as functions of λ (n = 50, 128 seeds), and the λ "
           "that AIMLE chooses. The paper: a small λ is unbiased and sparse, a large one biased "
           "and dense; AIMLE is in between.",
       .substitute = same,
       .quick = "8 seeds instead of 128, STE and SFE at 10 000 samples instead of 100 000, warm-up "
                "of 100 steps.",
       .commands =
           {{.name = "lambda",
             .full = "synth lambda --preset paper",
             .quick =
                 "synth lambda --preset paper --seeds 8 --reference_samples 10000 --warmup 100"}}},
  };
}

Entry dvae_entry(const std::string& k, const std::string& says, const std::string& others) {
  const std::string base = "train dvae --preset paper --k " + k;
  const std::string paper = base + " --epochs 100";
  const std::string quick = base +
                            " --nb_samples 10 --examples 1500 --validation 500 "
                            "--test_examples 500 --batch 50 --epochs 2";
  const std::string samples = " --grid nb_samples=1,5,10";
  // At k = 10 the authors' command uses c = 10, the paper 1. The forward difference cannot change
  // 10 entries.
  const std::string central = k == "10" ? " --method aimle --target_norm 10" : " --method aimle";
  return {
      .name = "dvae-k" + k,
      .title = "Discrete VAE, k = " + k,
      .paper =
          "Figure: test loss over 100 epochs on MNIST with S = 1, 5, 10, and λ over time. The "
          "paper: " +
          says +
          " Its test loss is BCE + KL/S, `test_loss` here; `test_nelbo` is a bound that is "
          "comparable across S.",
      .substitute = with_files(
          "Drawn digits instead of MNIST: losses are not comparable with those of MNIST.", "dvae"),
      .full = "12 000 digits unless the files are given; IMLE with λ = 1, 10, 100; one seed.",
      .quick =
          "1000 drawn digits in batches of 50, 2 epochs, S = 10 only, IMLE with λ = 10 only, "
          "one seed.",
      .commands = {
          {.name = "aimle", .full = paper + central + samples, .quick = quick + central},
          {.name = "aimle_forward",
           .full = paper + " --method aimle_forward" + samples,
           .quick = quick + " --method aimle_forward"},
          {.name = "imle",
           .full = paper + " --grid method=imle,imle_central" + samples + " --grid lambda=1,10,100",
           .quick = quick + " --lambda 10 --grid method=imle,imle_central"},
          {.name = "others",
           .full = paper + " --grid method=" + others + samples,
           .quick = quick + " --grid method=" + others}}};
}

/// A method in the tables of learning to explain, with the paper's temperature for k = 5, 10 and
/// 15: that of the noise, or of a relaxation.
struct Explainer {
  std::string method;
  std::string setting;
  std::vector<std::string> temperatures;
};

constexpr const char* kNoise = "theta_noise_temperature";
constexpr const char* kRelaxation = "temperature";

/// What the paper calls SST is gumbel_softmax: one draw of weights that sum to 1.
std::vector<Explainer> explainers(const std::string& aspect) {
  using Temperatures = std::vector<std::string>;
  const std::map<std::string, std::vector<Temperatures>> chosen = {
      // SoftSub, STE, "SST", AIMLE forward, AIMLE central
      {"appearance",
       {{"1", "2", "2"},
        {"0", "2", "1.5"},
        {"0.5", "0.5", "0.1"},
        {"3", "1", "3"},
        {"3", "1", "3"}}},
      {"aroma",
       {{"1", "2", "2"},
        {"0", "0", "0.5"},
        {"0.5", "0.1", "0.1"},
        {"1", "2", "1"},
        {"3", "2", "3"}}},
      {"palate",
       {{"2", "2", "2"},
        {"0.5", "0", "0"},
        {"0.5", "0.5", "0.5"},
        {"1", "2", "2"},
        {"1", "1", "2"}}},
      {"taste",
       {{"1", "2", "2"}, {"0", "0", "0"}, {"0.5", "0.1", "0.5"}, {"1", "2", "3"}, {"3", "1", "3"}}},
  };
  const std::vector<Temperatures>& own = chosen.at(aspect);
  return {{"softsub", kRelaxation, own[0]},
          {"ste", kNoise, own[1]},
          {"gumbel_softmax", kRelaxation, own[2]},
          {"imle", kNoise, {"1", "1", "1"}},
          {"imle_central", kNoise, {"0", "0", "0"}},
          {"aimle_forward", kNoise, own[3]},
          {"aimle", kNoise, own[4]},
          // Not in the paper: the method named in its table.
          {"sst", kRelaxation, {"1", "1", "1"}}};
}

/// One command for each temperature of a method, with the k that use it.
std::vector<Command> explainer_commands(const std::string& aspect) {
  const std::vector<std::string> ks = {"5", "10", "15"};
  std::vector<Command> commands;
  for (const Explainer& explainer : explainers(aspect)) {
    std::map<std::string, std::vector<std::string>> ks_of;  // by temperature
    for (size_t i = 0; i < ks.size(); ++i) ks_of[explainer.temperatures[i]].push_back(ks[i]);
    for (const auto& [temperature, list] : ks_of) {
      const std::string base = "train l2x --preset paper --aspect " + aspect + " --method " +
                               explainer.method + " --" + explainer.setting + " " + temperature;
      const bool is_quick = aspect == "taste" && explainer.temperatures[1] == temperature;
      commands.push_back({.name = explainer.method + "-" + temperature,
                          .full = base + " --grid k=" + join(list, ",") + " --seeds 0-9",
                          .quick = is_quick ? base + " --k 10 --examples 600 --heldout 200 "
                                                     "--annotated 100 --epochs 1"
                                            : ""});
    }
  }
  return commands;
}

std::vector<Entry> l2x_entries() {
  std::vector<Entry> entries;
  for (const std::string aspect : {"appearance", "aroma", "palate", "taste"}) {
    entries.push_back(
        {.name = "l2x-" + aspect,
         .title = "Learning to explain, " + aspect,
         .paper = "Table: test MSE × 100 and subset precision (%) for k = 5, 10, 15 on the " +
                  aspect +
                  " ratings of BeerAdvocate, mean ± sd of 10 runs. The paper: AIMLE's "
                  "central difference has the best precision throughout. Its rows \"SST\" are one "
                  "Gumbel-Softmax draw, `gumbel_softmax` here; `sst` is the method of that name, "
                  "which the paper did not run.",
         .substitute =
             with_files("Generated reviews with ten planted words instead of BeerAdvocate: "
                        "the values of both metrics are not comparable, only the order of the "
                        "methods.",
                        "l2x"),
         .full = "The temperatures are the paper's for each cell; `sst` has 1. They were chosen on "
                 "BeerAdvocate.",
         .quick = aspect == "taste" ? "600 reviews, k = 10 only, one epoch instead of 20, one seed."
                                    : "Not run in the quick form.",
         .commands = explainer_commands(aspect)});
  }
  return entries;
}

Entry nri_entry(const std::string& frames) {
  const std::string grid = " --grid method=aimle_forward,aimle,imle,imle_central,sst";
  return {
      .name = "nri-t" + frames,
      .title = "Latent trees, T = " + frames,
      .paper = "Table: test ELBO, edge precision and recall (%) for T = " + frames +
               ", mean ± sd over seeds. The paper: both AIMLEs have the better ELBO. That ELBO, "
               "`test_elbo`, is not a bound; `test_tree_elbo` is one.",
      .substitute = "The same data generator, with our own random numbers.",
      .full =
          "The authors' evaluation (`--preset reference`); SST and IMLE with one setting "
          "each, which the paper chose by validation.",
      .quick =
          "1000 examples, 40 steps of 32 instead of 50 000 of 128, width 64 instead of 256, "
          "noise-free trees for all methods, one seed.",
      .commands = {
          {.name = "methods",
           .full = "train nri --preset reference --frames " + frames + grid + " --seeds 0-7",
           .quick = "train nri --preset paper --frames " + frames + grid +
                    " --hidden 64 --examples 1000 --validation 200 --test_examples 200 "
                    "--epochs 2 --epoch_steps 20 --batch 32"}}};
}

Entry warcraft_entry(const std::string& cells) {
  const std::string paper = "train warcraft --preset paper --cells " + cells;
  const bool is_quick = cells == "12";
  const auto quick = [&](const std::string& options) {
    return is_quick ? "train warcraft --preset paper --cells 12 --examples 140 --validation 20 "
                      "--test_examples 50 --epochs 2 " +
                          options
                    : std::string();
  };
  return {
      .name = "warcraft-" + cells,
      .title = "Shortest paths, " + cells + " × " + cells,
      .paper =
          "Figure: share of test paths of optimal cost over 50 epochs on Warcraft maps. The "
          "paper: AIMLE without tuning matches IMLE, and both are far above a plain "
          "ResNet18. Ours are compared with the logs of IMLE's own repository, on the same data.",
      .substitute = with_files("Generated terrain maps with the real costs instead of Warcraft's.",
                               "warcraft"),
      .full = "The baseline ResNet18 has 50 epochs instead of 150; one seed.",
      .quick = is_quick ? "140 maps instead of 10 000, 2 epochs instead of 50, one seed, no DBB."
                        : "Not run in the quick form.",
      .commands = {{.name = "aimle",
                    .full = paper + " --grid method=aimle,aimle_forward --grid step=0.01,0.001",
                    .quick = quick("--grid method=aimle,aimle_forward")},
                   {.name = "imle",
                    .full = paper + " --grid method=imle,dbb",
                    .quick = quick("--method imle")},
                   {.name = "resnet18",
                    .full = paper + " --model resnet18",
                    .quick = quick("--model resnet18")}}};
}

}  // namespace

std::string Entry::experiment() const { return name.substr(0, name.find('-')); }

const std::vector<Entry>& paper_entries() {
  static const std::vector<Entry> entries = [] {
    std::vector<Entry> all = synth_entries();
    all.push_back(dvae_entry("10", "AIMLE far below IMLE and STE.", "ste"));
    all.push_back(dvae_entry(
        "1", "AIMLE central about as IMLE, far below STE, below Gumbel-Softmax for S = 5 and 10.",
        "ste,gumbel_softmax"));
    for (Entry& entry : l2x_entries()) all.push_back(std::move(entry));
    for (const char* frames : {"10", "20"}) all.push_back(nri_entry(frames));
    for (const char* cells : {"12", "18", "24", "30"}) all.push_back(warcraft_entry(cells));
    return all;
  }();
  return entries;
}

}  // namespace aimle::cli
