// Gumbel-Rao: straight-through Gumbel-Softmax, averaged over the noise that gives the same choice.
//
// Paulus, Maddison, Krause, "Rao-Blackwellizing the Straight-Through Gumbel-Softmax Gradient
// Estimator", ICLR 2021. With z = argmax(theta + G), pi = softmax(theta), J(p) = diag(p) - p p' and
// d the gradient at z:
//
//   g = E[ J(softmax((theta + G) / t)) | z ] d / t
//
// d depends on G only through z, so averaging over G given z keeps the mean of the straight-through
// gradient and reduces its variance, without another call of the loss. For z with entry i, and
// independent E_j ~ Exp(1), the noise given z is
//
//   G_j = -log(pi_j E_i + (1 - z_j) E_j)
//
// The mean over `draws` of them replaces the expectation. Biased, as the straight-through gradient
// is: less for a smaller t, which has a higher variance.
#include <ATen/ops/rsub.h>
#include <ATen/ops/softmax.h>

#include "aimle/torch/estimate/sampled.h"
#include "aimle/torch/tensor/dtype.h"

namespace aimle {

at::Tensor gumbel_rao_samples(const SampleRequest& request) {
  if (!request.key) return gumbel_softmax_samples(request);
  // The first draw chooses z: that of gumbel_softmax for the same key.
  const at::Tensor noise = own_noise(request, 1 + request.draws);
  const at::Tensor rows = request.scores.unsqueeze(-2);
  const at::Tensor z = solved(request, rows.add(noise.select(-2, 0)));

  const at::Tensor e = noise.narrow(-2, 1, request.draws).neg().exp();
  const at::Tensor chosen = z.unsqueeze(-2), pi = at::softmax(rows.detach(), -1).unsqueeze(-2);
  const at::Tensor of_chosen = e.mul(chosen).sum(-1, /*keepdim=*/true);
  const at::Tensor rates = pi.mul(of_chosen).add(at::rsub(chosen, 1).mul(e));
  const at::Tensor given = rates.clamp_min(ops::smallest_normal(rates)).log().neg();
  const at::Tensor x = rows.unsqueeze(-2).add(given);
  return straight_through(z, at::softmax(x.div(request.temperature), -1).mean(-2));
}

}  // namespace aimle
