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
#include <ATen/ops/ones_like.h>
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

void Relaxation::refuse_bad_rows(const at::Tensor& scores, const LayerCall& call) const {
  if (scores.is_cpu()) solve(solver(), scores.detach(), {.k = call.k});
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
    refuse_bad_rows(scores, call);
    const at::Tensor x = perturbed(scores, call);
    return shown(x, at::softmax(x.div(temperature()), -1), call);
  }
};

/// Relaxations of top-k that do something k times.
class Rounds : public Relaxation {
 public:
  using Relaxation::Relaxation;

 protected:
  struct Soft {
    at::Tensor x;     // scores [*batch, S, n]
    at::Tensor soft;  // and their soft sample
  };
  /// In rounds() >= 1 rounds, of which k rows [*batch, 1], where given, make use.
  virtual Soft soften(const at::Tensor& scores, const LayerCall& call,
                      const std::optional<at::Tensor>& k) const = 0;

  int64_t rounds() const { return solver().args.at(0); }

 private:
  at::Tensor samples(const at::Tensor& scores, const LayerCall& call) const final {
    check_k(call.k);
    refuse_bad_rows(scores, call);
    if (rounds() == 0) {
      const at::Tensor x = perturbed(scores, call);
      return shown(x, x.masked_fill(at::ones_like(x, at::kBool), 0.0), call);
    }
    const std::optional<at::Tensor> k = per_sample(call).k;
    auto [x, soft] = soften(scores, call, k);
    if (k) {
      constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
      soft = soft.masked_fill(out_of_range(*k).unsqueeze(-1), kNaN);
    }
    return shown(x, soft, call);
  }

  at::Tensor out_of_range(const at::Tensor& k) const { return k.lt(0).logical_or(k.gt(rounds())); }

  /// Only where looking at the values needs no synchronisation.
  void check_k(const std::optional<at::Tensor>& k) const {
    if (!k || !k->is_cpu()) return;
    TORCH_CHECK_VALUE(!out_of_range(*k).any().item<bool>(), "[aimle::", name(),
                      "] expected 0 <= k <= ", rounds(), ", the solver's k, in every row");
  }
};

/// Round i takes a_i = softmax(w_i / t) and leaves w_{i+1} = w_i + log(1 - a_i), so that what was
/// taken in any earlier round stays down. Entries in (0, 1) that sum to k.
class SoftSub final : public Rounds {
 public:
  using Rounds::Rounds;

 private:
  Soft soften(const at::Tensor& scores, const LayerCall& call,
              const std::optional<at::Tensor>& k) const override {
    const at::Tensor x = perturbed(scores, call);
    const double tiny = ops::smallest_normal(x);
    at::Tensor w = x, soft = at::zeros_like(x);
    for (int64_t i = 0; i < rounds(); ++i) {
      const at::Tensor taken = at::softmax(w.div(temperature()), -1);
      soft = soft.add(k ? taken.mul(k->gt(i).unsqueeze(-1)) : taken);
      w = w.add(at::rsub(taken, 1).clamp_min(tiny).log());
    }
    return {x, soft};
  }
};

class L2X final : public Rounds {
 public:
  using Rounds::Rounds;

 private:
  Soft soften(const at::Tensor& scores, const LayerCall& call,
              const std::optional<at::Tensor>& k) const override {
    const at::Tensor rows = scores.unsqueeze(-2);
    const at::Tensor x = rows.unsqueeze(-2).add(draws(scores, call, rounds()));
    at::Tensor concrete = at::softmax(x.div(temperature()), -1);
    if (k) {
      const at::Tensor used = k->unsqueeze(-1).gt(at::arange(rounds(), k->options()));
      concrete = at::where(used.unsqueeze(-1), concrete, 0.0);
    }
    return {rows, concrete.amax(-2)};
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
