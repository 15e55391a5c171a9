"""What the estimators that draw samples share: arguments, shapes, structures.

Each is one op, ``torch.ops.aimle.<name>``; its formula is in aimle/torch/estimate.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Generator, Tensor
from torch._ops import OpOverload

from aimle._names import SettingsModule
from aimle._settings import check_choice, check_int, check_mask, check_tensor, check_theta
from aimle.functional import draw_key
from aimle.layers import Output
from aimle.solvers import Solver, check_solver


class SampledEstimator(SettingsModule):
    """theta [*batch, n] -> S samples, with the shapes and modes of the layers.

    Args:
        solver: one of ``applies_to``; TypeError otherwise.
        nb_samples: S, the number of samples per example.
        output: "samples" [*batch, S, n], "flat" [B S, n] or "mean" [*batch, n].
        noise_in_eval: keep noise and S in eval mode, which otherwise gives the noise-free hard
            solution.
        generator: draws the keys instead of PyTorch's default one.
    """

    #: The solvers to which the estimator applies; None: all that have an exact distribution.
    applies_to: ClassVar[tuple[type[Solver], ...] | None] = None
    #: The op that draws the samples.
    _op: ClassVar[OpOverload]

    def __init__(
        self,
        solver: Solver,
        *,
        nb_samples: int = 1,
        output: Output = "samples",
        noise_in_eval: bool = False,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        check_solver(owner, solver)
        if self.applies_to is None:
            names = "solvers with an exact distribution, such as Argmax, TopK and SpanningTree,"
            applies = getattr(solver, "has_exact", False)
        else:
            names = " and ".join(kind.__name__ for kind in self.applies_to)
            applies = isinstance(solver, self.applies_to)
        if not applies:
            raise TypeError(f"[aimle.{owner}] applies to {names} but got {type(solver).__name__}")
        nb_samples = check_int(owner, "nb_samples", nb_samples, 1)
        check_choice(owner, "output", output, ("samples", "flat", "mean"))
        self.solver = solver
        self.nb_samples = nb_samples
        self.output = output
        self.noise_in_eval = noise_in_eval
        self.generator = generator

    def forward(
        self,
        theta: Tensor,
        *,
        mask: Tensor | None = None,
        k: Tensor | int | None = None,
        key: Tensor | None = None,
    ) -> Tensor:
        """Samples for theta [*batch, n], of the shape that ``output`` says.

        Args:
            mask: bool, broadcastable to theta; entries that are False are never chosen and get no
                gradient.
            k: with TopK, an int or int64 broadcastable to *batch, in place of the solver's k.
            key: int64 [2]; drawn from PyTorch's generator if not given.
        """
        owner = type(self).__name__
        check_theta(owner, theta)
        structure = self.solver.text_for(owner, k)
        if mask is not None:
            check_mask(owner, mask, theta)
        if not self.noisy:
            key = None
        elif key is None:
            key = draw_key(theta, generator=self.generator)
        else:
            check_tensor(owner, "key", key)
        return self._op(
            theta,
            mask,
            k if isinstance(k, Tensor) else None,
            key,
            structure,
            self.nb_samples,
            self.output,
            *self._relaxation(),
        )

    @property
    def noisy(self) -> bool:
        """Whether a call now draws samples."""
        return self.training or self.noise_in_eval

    def extra_repr(self) -> str:
        return f"{self.solver}, nb_samples={self.nb_samples}, output={self.output!r}"

    def _relaxation(self) -> tuple[Tensor, bool] | tuple[()]:
        """`temperature` and `hard`, of relaxations alone."""
        return ()
