"""Exact distributions over the structures of a solver: p(z) proportional to exp<scores, z>.

    mu = aimle.exact.marginals(aimle.TopK(5), scores)           # E z, [*batch, n]
    z = aimle.exact.sample(aimle.TopK(5), scores, key, nb_samples=10)

``Argmax`` is the categorical distribution, ``TopK`` that of subsets of k entries. What is computed
is exact up to the rounding of float64, whatever the dtype of the scores, in which the answer is
given. Masked entries and scores of -inf have probability 0; +inf is refused like NaN. Rows that are
refused raise a ValueError as the solvers' do (NaN scores: a row of NaN).

``log_partition`` can be differentiated twice and ``marginals`` once: the gradient of the one is the
other, whose own is ``covariance``.
"""

import torch
from torch import Tensor

from aimle import _library  # noqa: F401  (registers the ops)
from aimle._settings import check_int, check_tensor
from aimle.solvers import Argmax, Solver, TopK

__all__ = ["covariance", "expected_square", "log_partition", "marginals", "sample"]

_ops = torch.ops.aimle
_CLOSED_FORM = (Argmax, TopK)


def log_partition(
    solver: Solver,
    scores: Tensor,
    *,
    mask: Tensor | None = None,
    k: Tensor | int | None = None,
) -> Tensor:
    """log sum over z of exp<scores, z>: [*batch, n] -> [*batch]. Differentiable twice."""
    return _ops.log_partition.default(scores, *_settings("log_partition", solver, scores, mask, k))


def marginals(
    solver: Solver,
    scores: Tensor,
    *,
    mask: Tensor | None = None,
    k: Tensor | int | None = None,
) -> Tensor:
    """E z, the probability of every entry: [*batch, n] -> [*batch, n]. Differentiable once."""
    return _ops.marginals.default(scores, *_settings("marginals", solver, scores, mask, k))


def covariance(
    solver: Solver,
    scores: Tensor,
    v: Tensor,
    *,
    mask: Tensor | None = None,
    k: Tensor | int | None = None,
) -> Tensor:
    """Cov(z) v, the derivative of the marginals along v: [*batch, n] -> [*batch, n].

    Cov(z) is symmetric, so this is also the gradient of <marginals, v>. Differentiable in v.
    """
    check_tensor("exact.covariance", "v", v)
    settings = _settings("covariance", solver, scores, mask, k)
    return _ops.covariance.default(scores, v, *settings)


def sample(
    solver: Solver,
    scores: Tensor,
    key: Tensor,
    nb_samples: int | None = None,
    *,
    mask: Tensor | None = None,
    k: Tensor | int | None = None,
) -> Tensor:
    """Independent draws of z: [*batch, nb_samples, n], or [*batch, n] without nb_samples.

    key: int64 [2], for example from ``aimle.draw_key``. A draw depends on the key, the instance and
    the sample alone. Do not draw noise under the same key: it is made of the same random numbers.
    """
    check_tensor("exact.sample", "key", key)
    if nb_samples is not None:
        check_int("exact.sample", "nb_samples", nb_samples, 1)
    settings = _settings("sample", solver, scores, mask, k)
    z = _ops.exact_sample.default(scores, key, nb_samples or 1, *settings)
    return z.squeeze(-2) if nb_samples is None else z


def expected_square(
    solver: Solver,
    scores: Tensor,
    b: Tensor,
    *,
    weight: Tensor | None = None,
    mask: Tensor | None = None,
    k: Tensor | int | None = None,
) -> Tensor:
    """E sum_j weight_j (z_j - b_j)^2 in closed form: [*batch]; b and weight broadcast to scores.

    Entries of z are 0 or 1, so the square is linear in z, (z_j - b_j)^2 = b_j^2 + (1 - 2 b_j) z_j,
    and the gradient with respect to the scores is Cov(z) (weight * (1 - 2 b)): for unit weights and
    structures of a fixed size, -2 Cov(z) b.
    """
    mu = marginals(solver, scores, mask=mask, k=k)
    terms = b.square() + (1 - 2 * b) * mu
    return (terms if weight is None else weight * terms).sum(-1)


def _settings(
    function: str, solver: object, scores: object, mask: object, k: Tensor | int | None
) -> tuple[str, list[int], Tensor | None, Tensor | None]:
    """The arguments of an op after its tensors."""
    if not isinstance(solver, _CLOSED_FORM):
        allowed = " or ".join(f"aimle.{cls.__name__}" for cls in _CLOSED_FORM)
        raise TypeError(
            f"[aimle.exact.{function}] expected solver to be {allowed} but got "
            f"{type(solver).__name__}"
        )
    check_tensor(f"exact.{function}", "scores", scores)
    if mask is not None:
        check_tensor(f"exact.{function}", "mask", mask)
    name, arguments = solver.layer_arguments()
    if k is not None and not isinstance(solver, TopK):
        raise TypeError(f"[aimle.exact.{function}] {type(solver).__name__} takes no k")
    if k is not None and not isinstance(k, Tensor):
        return name, [k], mask, None
    return name, arguments, mask, k
