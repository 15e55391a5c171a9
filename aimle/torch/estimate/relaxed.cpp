// Relaxations: a soft sample takes the place of the discrete one, and autograd differentiates it.
//
//   gumbel_softmax   softmax((theta + G) / t): Jang, Gu, Poole, ICLR 2017; Maddison, Mnih, Teh,
//   "The
//                    Concrete Distribution", ICLR 2017. One of n.
//   softsub          k rounds of softmax, each pushing down what was taken before: Xie & Ermon,
//                    "Reparameterizable Subset Sampling via Continuous Relaxations", IJCAI 2019.
//   l2x              the largest of k independent concrete draws, entry by entry: Chen, Song,
//                    Wainwright, Jordan, "Learning to Explain", ICML 2018. At most k of n.
//
// A k per row may be smaller than the solver's, which is the number of rounds or draws: so no value
// is read on the host. Larger ones are an error on the CPU and a row of NaN elsewhere.
#include "aimle/torch/estimate/relaxed.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "aimle/torch/dtype.h"
#include "aimle/torch/estimate/builders.h"

namespace aimle {

Relaxation::Relaxation(const EstimatorInfo& info, SolverSpec solver,
                       const EstimatorOptions& options)
    : Sampled(info, std::move(solver), options), hard_(options.hard.value_or(false)) {
  state_["temperature"] = at::full({}, 0.0, at::kFloat);
  set_temperature(options.temperature.value_or(1.0));
}

void Relaxation::set_temperature(double temperature) {
  check_temperature(name(), temperature);
  state_.at("temperature").fill_(temperature);
}

at::Tensor Relaxation::shown(const at::Tensor& x, const at::Tensor& soft,
                             const LayerCall& call) const {
  return hard_ || !noisy() ? straight_through(solved(x, call), soft) : soft;
}

namespace {

class GumbelSoftmax final : public Relaxation {
 public:
  using Relaxation::Relaxation;

 private:
  at::Tensor samples(const at::Tensor& scores, const LayerCall& call) const override {
    const at::Tensor x = perturbed(scores, call);
    return shown(x, at::softmax(x.div(temperature()), -1), call);
  }
};

/// Relaxations of top-k that do something k times.
class Rounds : public Relaxation {
 public:
  using Relaxation::Relaxation;

 protected:
  int64_t rounds() const { return solver().args.at(0); }

  /// k [*batch, 1] per sample, checked where that needs no synchronisation.
  std::optional<at::Tensor> k_per_sample(const LayerCall& call) const {
    if (!call.k) return std::nullopt;
    if (call.k->is_cpu()) {
      TORCH_CHECK_VALUE(!out_of_range(*call.k).any().item<bool>(), "[aimle::", name(),
                        "] expected 0 <= k <= ", rounds(), ", the solver's k, in every row");
    }
    return call.k->unsqueeze(-1);
  }

  at::Tensor refused(const at::Tensor& soft, const std::optional<at::Tensor>& k) const {
    if (!k) return soft;
    return soft.masked_fill(out_of_range(*k).unsqueeze(-1),
                            std::numeric_limits<double>::quiet_NaN());
  }

 private:
  at::Tensor out_of_range(const at::Tensor& k) const { return k.lt(0).logical_or(k.gt(rounds())); }
};

/// Round i takes a_i = softmax(w_i / t) and leaves w_{i+1} = w_i + log(1 - a_i), so that what was
/// taken in any earlier round stays down. Entries in (0, 1) that sum to k.
class SoftSub final : public Rounds {
 public:
  using Rounds::Rounds;

 private:
  at::Tensor samples(const at::Tensor& scores, const LayerCall& call) const override {
    const std::optional<at::Tensor> k = k_per_sample(call);
    const at::Tensor x = perturbed(scores, call);
    const double tiny = ops::smallest_normal(x);
    at::Tensor w = x, soft = at::zeros_like(x);
    for (int64_t i = 0; i < rounds(); ++i) {
      const at::Tensor taken = at::softmax(w.div(temperature()), -1);
      soft = soft.add(k ? taken.mul(k->gt(i).unsqueeze(-1)) : taken);
      w = w.add(at::rsub(taken, 1).clamp_min(tiny).log());
    }
    return shown(x, refused(soft, k), call);
  }
};

class L2X final : public Rounds {
 public:
  using Rounds::Rounds;

 private:
  at::Tensor samples(const at::Tensor& scores, const LayerCall& call) const override {
    const std::optional<at::Tensor> k = k_per_sample(call);
    const at::Tensor rows = scores.unsqueeze(-2);
    if (rounds() == 0) return shown(rows, at::zeros_like(perturbed(scores, call)), call);
    const at::Tensor x = rows.unsqueeze(-2).add(draws(scores, call, rounds()));
    at::Tensor concrete = at::softmax(x.div(temperature()), -1);
    if (k) {
      const at::Tensor counted = at::arange(rounds(), k->options());
      const at::Tensor used = k->unsqueeze(-1).gt(counted).unsqueeze(-1);
      concrete = at::where(used, concrete, 0.0);
    }
    return shown(rows, refused(concrete.amax(-2), k), call);
  }
};

}  // namespace

std::unique_ptr<Estimator> build_gumbel_softmax(const EstimatorInfo& info, SolverSpec solver,
                                                const EstimatorOptions& options) {
  return std::make_unique<GumbelSoftmax>(info, std::move(solver), options);
}

std::unique_ptr<Estimator> build_softsub(const EstimatorInfo& info, SolverSpec solver,
                                         const EstimatorOptions& options) {
  return std::make_unique<SoftSub>(info, std::move(solver), options);
}

std::unique_ptr<Estimator> build_l2x(const EstimatorInfo& info, SolverSpec solver,
                                     const EstimatorOptions& options) {
  return std::make_unique<L2X>(info, std::move(solver), options);
}

double anneal(int64_t step, const Annealing& annealing) {
  TORCH_CHECK_VALUE(annealing.every >= 1, "[aimle::anneal] expected every >= 1 but got ",
                    annealing.every);
  const auto changed = static_cast<double>(step - step % annealing.every);
  return std::max(annealing.start * std::exp(-annealing.rate * changed), annealing.floor);
}

}  // namespace aimle
