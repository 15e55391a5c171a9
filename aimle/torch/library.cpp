// The schemas of the ops of noise, keys and symmetrise; the others are next to their kernels.
#include <torch/library.h>

#include "aimle/torch/tensor/without_gradient.h"

namespace aimle::ops {
namespace {

TORCH_LIBRARY(aimle, library) {
  const std::vector<at::Tag> pure = {at::Tag::pt2_compliant_tag};

  library.def("symmetrise(Tensor scores, int vertices) -> Tensor", pure);

  // Noise: float32 [*batch, samples, *instance], without samples if that is -1. See
  // noise/noise_ops.h.
  library.def("gumbel(Tensor key, SymInt[] batch, SymInt samples, SymInt[] instance) -> Tensor",
              pure);
  library.def("normal(Tensor key, SymInt[] batch, SymInt samples, SymInt[] instance) -> Tensor",
              pure);
  library.def("logistic(Tensor key, SymInt[] batch, SymInt samples, SymInt[] instance) -> Tensor",
              pure);
  library.def(
      "sum_of_gamma(Tensor key, SymInt[] batch, SymInt samples, SymInt[] instance, Tensor table)"
      " -> Tensor",
      pure);
  library.def("sum_of_gamma_table(int k, int iterations, *, Device? device=None) -> Tensor", pure);
  library.def("draw_key(Tensor like, *, Generator? generator=None, int rank=0) -> Tensor",
              {at::Tag::pt2_compliant_tag, at::Tag::nondeterministic_seeded});
  // Not for graphs of torch.compile, which must know the device of the result beforehand.
  library.def("draw_host_key(Tensor like, *, Generator? generator=None, int rank=0) -> Tensor",
              {at::Tag::nondeterministic_seeded});
}

/// A key does not depend on the scores.
TORCH_LIBRARY_IMPL(aimle, Autograd, library) {
  for (const char* name : {"draw_key", "draw_host_key"}) library.impl(name, without_gradient());
}

}  // namespace
}  // namespace aimle::ops
