"""Base class of estimators that draw samples: arguments, shapes, structures.

Each is one op, ``torch.ops.aimle.<name>``; its formula is in aimle/torch/estimate.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor
from torch._ops import OpOverload
from typing_extensions import Unpack

from aimle.functional import check_generator, draw_key
from aimle.onnx.solution import in_onnx_export, onnx_solution
from aimle.settings.checks import check_batch, check_mask, check_tensor, check_theta
from aimle.settings.shared import SampleSettings, SamplingModule
from aimle.solvers import Data, K, Key, Mask, Solver


class SampledEstimator(SamplingModule):
    """theta [*batch, n] -> S samples, with the shapes and modes of the layers.

    Args:
        solver: one of ``applies_to``; TypeError otherwise.
        nb_samples: S, the number of samples per example.
        output: "samples" [*batch, S, n], "flat" [B S, n] or "mean" [*batch, n].
        noise_in_eval: keep noise and S in eval mode, which otherwise gives the noise-free hard
            solution.
        generator: draws the keys instead of PyTorch's default generator.
    """

    solver: Solver
    #: The solvers to which the estimator applies, or None for all with an exact distribution.
    applies_to: ClassVar[tuple[type[Solver], ...] | None] = None
    #: The op that draws the samples.
    _op: ClassVar[OpOverload]

    def __init__(self, solver: Solver, **settings: Unpack[SampleSettings]) -> None:
        super().__init__(solver, settings)
        if self.applies_to is None:
            names = "solvers with an exact distribution, such as Argmax, TopK and SpanningTree,"
            applies = getattr(solver, "has_exact", False)
        else:
            names = " and ".join(kind.__name__ for kind in self.applies_to)
            applies = isinstance(solver, self.applies_to)
        if not applies:
            raise TypeError(
                f"[aimle.{type(self).__name__}] applies to {names} but got {type(solver).__name__}"
            )

    def forward(
        self, theta: Tensor, *, mask: Mask = None, k: K = None, data: Data = None, key: Key = None
    ) -> Tensor:
        """Samples for theta [*batch, n], in the shape set by ``output``.

        Args:
            mask: bool, broadcastable to theta; entries that are False are never chosen and get no
                gradient.
            k: for TopK, an int or int64 broadcastable to *batch; overrides the solver's k.
            data: for solvers that take it, int64 [length] or broadcastable to [*batch, length].
            key: int64 [2]; drawn from PyTorch's generator if not given.
        """
        owner = type(self).__name__
        check_theta(owner, theta)
        check_batch(owner, theta, self.solver.instance_dims)
        solver, row_data = self.solver.row_arguments(owner, theta, k, data)
        if mask is not None:
            check_mask(owner, mask, theta)
        if in_onnx_export():
            return onnx_solution(self, theta, mask, k)
        if not self.noisy:
            key = None
        elif key is None:
            check_generator(owner, self.generator)
            key = draw_key(theta, generator=self.generator)
        else:
            check_tensor(owner, "key", key)
        self._called(theta)
        return self._op(
            theta, mask, row_data, key, solver, self.nb_samples, self.output, *self._relaxation()
        )

    def extra_repr(self) -> str:
        return f"{self.solver}, nb_samples={self.nb_samples}, output={self.output!r}"

    def _called(self, theta: Tensor) -> None:
        """For estimators that watch how they are used."""

    def _relaxation(self) -> tuple[Tensor, bool] | tuple[Tensor, bool, int] | tuple[()]:
        """`temperature`, `hard` and `draws`, for the estimators that take them."""
        return ()
