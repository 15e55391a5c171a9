// Relaxations: a soft sample replaces the discrete one, and autograd differentiates it.
//
//   gumbel_softmax   softmax((theta + G) / t): Jang, Gu, Poole, ICLR 2017; Maddison, Mnih, Teh,
//                    "The Concrete Distribution", ICLR 2017. One of n.
//   softsub          k rounds of softmax, each suppressing the entries already taken: Xie & Ermon,
//                    "Reparameterizable Subset Sampling via Continuous Relaxations", IJCAI 2019.
//   l2x              the entry-wise maximum of k independent concrete draws: Chen, Song,
//                    Wainwright, Jordan, "Learning to Explain", ICML 2018. At most k of n.
//
// The solver's k is the number of rounds or draws, and a k per row may be smaller, so that no value
// is read on the host. Larger ones are an error on the CPU and a row of NaN on a GPU or in compiled
// code.
#include <ATen/ops/arange.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "aimle/map/topk.h"
#include "aimle/torch/estimate/sampled.h"
#include "aimle/torch/tensor/dtype.h"

namespace aimle {
namespace {

/// Whether the values of a tensor are available: without waiting for a device, and not while
/// PyTorch traces.
bool can_be_read(const at::Tensor& tensor) {
  return tensor.is_cpu() && !tensor.unsafeGetTensorImpl()->is_python_dispatch();
}

/// If values are available, the solver reports errors of k or a mask.
void refuse_bad_rows(const SampleRequest& request) {
  if (!can_be_read(request.scores)) return;
  solve(request.solver, request.scores.detach(), {.row_data = request.row_data});
}

/// The number of rounds of softsub, or draws of l2x.
int64_t rounds_of(const SampleRequest& request) { return request.solver.get_if<TopK>()->k; }

/// Which rows have a k that exceeds the rounds. Throws ValueError if values are available.
at::Tensor bad_k(const char* name, const SampleRequest& request) {
  const at::Tensor& k = *request.row_data;
  at::Tensor bad = k.lt(0).logical_or(k.gt(rounds_of(request)));
  if (can_be_read(k) && bad.any().item<bool>()) {
    TORCH_CHECK_VALUE(false, "[aimle::", name, "] expected 0 <= k <= ", rounds_of(request),
                      ", the solver's k, in every row but got ",
                      k.masked_select(bad)[0].item<int64_t>());
  }
  return bad;
}

struct Softened {
  at::Tensor x;     // scores [*batch, S, n]
  at::Tensor soft;  // and their soft sample
};

/// One of the relaxations below, in rounds_of(request) >= 1 rounds, of which each row uses k
/// [*batch, 1], if given.
using Soften = Softened(const SampleRequest& request, const std::optional<at::Tensor>& k);

at::Tensor samples_in_rounds(const char* name, const SampleRequest& request, Soften* soften) {
  const at::Tensor bad = request.row_data ? bad_k(name, request) : at::Tensor();
  refuse_bad_rows(request);
  if (rounds_of(request) == 0) {
    const at::Tensor x = perturbed(request);
    return shown(request, x, x.masked_fill(at::ones_like(x, at::kBool), 0.0));
  }
  auto [x, soft] = soften(request, per_sample(request).row_data);
  if (request.row_data) {
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    soft = soft.masked_fill(bad.unsqueeze(-1).unsqueeze(-1), kNaN);
  }
  return shown(request, x, soft);
}

/// Round i takes a_i = softmax(w_i / t) and sets w_{i+1} = w_i + log(1 - a_i), which suppresses the
/// entries taken in all earlier rounds. Entries in (0, 1) that sum to k.
Softened soften_by_subtraction(const SampleRequest& request, const std::optional<at::Tensor>& k) {
  const at::Tensor x = perturbed(request);
  const double tiny = ops::smallest_normal(x);
  at::Tensor w = x, soft = at::zeros_like(x);
  for (int64_t i = 0; i < rounds_of(request); ++i) {
    const at::Tensor taken = at::softmax(w.div(request.temperature), -1);
    soft = soft.add(k ? taken.mul(k->gt(i).unsqueeze(-1)) : taken);
    w = w.add(at::rsub(taken, 1).clamp_min(tiny).log());
  }
  return {x, soft};
}

/// The entry-wise maximum of as many draws as there are rounds.
Softened soften_by_maximum(const SampleRequest& request, const std::optional<at::Tensor>& k) {
  const int64_t draws = rounds_of(request);
  const at::Tensor rows = request.scores.unsqueeze(-2);
  const at::Tensor x = rows.unsqueeze(-2).add(own_noise(request, draws));
  at::Tensor concrete = at::softmax(x.div(request.temperature), -1);
  if (k) {
    const at::Tensor used = k->unsqueeze(-1).gt(at::arange(draws, k->options()));
    concrete = at::where(used.unsqueeze(-1), concrete, 0.0);
  }
  return {rows, concrete.amax(-2)};
}

}  // namespace

at::Tensor shown(const SampleRequest& request, const at::Tensor& x, const at::Tensor& soft) {
  const bool discrete = request.hard || !request.key;
  return discrete ? straight_through(solved(request, x), soft) : soft;
}

at::Tensor gumbel_softmax_samples(const SampleRequest& request) {
  refuse_bad_rows(request);
  const at::Tensor x = perturbed(request);
  return shown(request, x, at::softmax(x.div(request.temperature), -1));
}

at::Tensor softsub_samples(const SampleRequest& request) {
  return samples_in_rounds("softsub", request, soften_by_subtraction);
}

at::Tensor l2x_samples(const SampleRequest& request) {
  return samples_in_rounds("l2x", request, soften_by_maximum);
}

double anneal(int64_t step, const Annealing& annealing) {
  TORCH_CHECK_VALUE(annealing.every >= 1, "[aimle::anneal] expected every >= 1 but got ",
                    annealing.every);
  const auto changed = static_cast<double>(step - step % annealing.every);
  return std::max(annealing.start * std::exp(-annealing.rate * changed), annealing.floor);
}

}  // namespace aimle
