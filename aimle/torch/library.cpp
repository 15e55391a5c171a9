// The table of contents of torch.ops.aimle.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <initializer_list>

namespace aimle::ops {
namespace {

constexpr std::initializer_list<const char*> kSolvers = {"argmax", "topk", "spanning_tree",
                                                         "grid_path"};

TORCH_LIBRARY(aimle, library) {
  const std::vector<at::Tag> pure = {at::Tag::pt2_compliant_tag};

  // Solvers: scores [*batch, *instance] -> z like scores, status uint8 [*batch]. See solvers.h.
  library.def("argmax(Tensor scores, Tensor? mask=None, int check=1) -> (Tensor z, Tensor status)",
              pure);
  library.def(
      "topk(Tensor scores, int k, Tensor? mask=None, Tensor? row_k=None, int check=1)"
      " -> (Tensor z, Tensor status)",
      pure);
  library.def(
      "spanning_tree(Tensor scores, int vertices, Tensor? mask=None, int check=1)"
      " -> (Tensor z, Tensor status)",
      pure);
  library.def(
      "grid_path(Tensor scores, int neighbourhood=8, int[] source=[0, 0], int[] target=[-1, -1],"
      " str negative=\"clip\", Tensor? mask=None, int check=1) -> (Tensor z, Tensor status)",
      pure);
  library.def("symmetrise(Tensor scores, int vertices) -> Tensor", pure);

  // Noise: float32 [*batch, samples, *instance], or without samples if that is -1. See noise.h.
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
  // Not for graphs of torch.compile, which must know the device of its result beforehand.
  library.def("draw_host_key(Tensor like, *, Generator? generator=None, int rank=0) -> Tensor",
              {at::Tag::nondeterministic_seeded});
}

/// z is piecewise constant in the scores, so it carries no gradient, as that of torch.argmax; a key
/// does not depend on them at all.
void without_gradient(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  op.callBoxed(stack);
}

TORCH_LIBRARY_IMPL(aimle, Autograd, library) {
  for (const char* name : kSolvers) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&without_gradient>());
  }
  for (const char* name : {"draw_key", "draw_host_key"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&without_gradient>());
  }
}

}  // namespace
}  // namespace aimle::ops
