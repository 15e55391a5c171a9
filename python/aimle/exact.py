"""Exact distributions over the structures of a solver: p(z) proportional to exp<scores, z>.

    mu = aimle.exact.marginals(aimle.TopK(5), scores)           # E z, like scores
    z = aimle.exact.sample(aimle.TopK(5), scores, key, nb_samples=10)
    g = aimle.exact.exact_gradient(aimle.TopK(5), theta, lambda z: loss(z))

Closed forms, exact up to the rounding of float64 (results are returned in the dtype of the scores):

    Argmax                     the categorical distribution
    TopK                       subsets of k entries
    SpanningTree               trees
    Arborescence               directed trees
    Chain                      label sequences
    LatticePath, LatticeMoves  alignments
    Knapsack                   sets that fit
    DagPath                    paths of an acyclic graph
    Bernoulli                  independent switches

Without a closed form, all structures are listed: ``GridPath`` (p proportional to exp -<costs, z>;
paths through the same cells are one structure) up to 4 x 4 cells, and ``Assignment`` up to 10^6
matchings. Lists (``expected``, ``probabilities``, ``exact_gradient``) cover the whole lattice, so a
mask must keep its last corner.

Masked entries, scores of -inf and costs of +inf have probability 0; infinities of the other sign
count as NaN. Invalid rows raise a ValueError as in the solvers (NaN scores give a row of NaN).

Everything runs on the device of the scores. Closed forms do not wait for a GPU.

``log_partition`` can be differentiated twice and ``marginals`` once: the gradient of
``log_partition`` is ``marginals``, and the Jacobian of ``marginals`` is ``covariance``.
"""

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor

from aimle import _library  # noqa: F401  (registers the ops)
from aimle.functional import draw_key
from aimle.settings.checks import check_int, check_mask, check_tensor, check_type, refuse_type
from aimle.solvers import Data, K, Key, Mask, Solver

__all__ = [
    "covariance",
    "entropy",
    "exact_gradient",
    "expected",
    "expected_square",
    "log_partition",
    "marginals",
    "probabilities",
    "sample",
    "structures",
]

_ops = torch.ops.aimle


def log_partition(
    solver: Solver, scores: Tensor, *, mask: Mask = None, k: K = None, data: Data = None
) -> Tensor:
    """log sum over z of exp<scores, z>: [*batch]. Differentiable twice."""
    if _must_list(solver):
        _, exponents = _listed("log_partition", solver, scores, mask, k, data)
        return exponents.logsumexp(-1).to(scores.dtype)
    return _ops.log_partition.default(
        scores, *_settings("log_partition", solver, scores, mask, k, data)
    )


def marginals(
    solver: Solver, scores: Tensor, *, mask: Mask = None, k: K = None, data: Data = None
) -> Tensor:
    """E z, the probability of every entry, like scores. Differentiable once."""
    if _must_list(solver):
        z, exponents = _listed("marginals", solver, scores, mask, k, data)
        return torch.tensordot(exponents.softmax(-1), z.double(), dims=1).to(scores.dtype)
    return _ops.marginals.default(scores, *_settings("marginals", solver, scores, mask, k, data))


def covariance(
    solver: Solver, scores: Tensor, v: Tensor, *, mask: Mask = None, k: K = None, data: Data = None
) -> Tensor:
    """Cov(z) v, like scores: the derivative of the marginals along v (GridPath: its negative).

    Cov(z) is symmetric, so this is also the gradient of <marginals, v>. Differentiable in v.
    """
    check_tensor("exact.covariance", "v", v)
    if _must_list(solver):
        listed, exponents = _listed("covariance", solver, scores, mask, k, data)
        if v.shape != scores.shape:
            raise ValueError(
                "[aimle.exact.covariance] expected v of the shape of scores, "
                f"{list(scores.shape)}, but got {list(v.shape)}"
            )
        z, p = listed.double().flatten(1), exponents.softmax(-1)
        along = v.double().flatten(v.dim() - solver.instance_dims) @ z.T
        centred = along - (p * along).sum(-1, keepdim=True)
        return ((p * centred) @ z).view(v.shape).to(scores.dtype)
    settings = _settings("covariance", solver, scores, mask, k, data)
    return _ops.covariance.default(scores, v, *settings)


def entropy(
    solver: Solver, scores: Tensor, *, mask: Mask = None, k: K = None, data: Data = None
) -> Tensor:
    """-sum over z of p(z) log p(z), in nats: [*batch]. Differentiable once."""
    check_tensor("exact.entropy", "scores", scores)
    _check_floating("entropy", scores)
    wide = scores.double()
    mu = marginals(solver, wide, mask=mask, k=k, data=data)
    terms = torch.where(mu > 0, mu * wide.masked_fill(mu == 0, 0), 0)
    mean = terms.flatten(scores.dim() - solver.instance_dims).sum(-1)
    log_z = log_partition(solver, wide, mask=mask, k=k, data=data)
    return (log_z - mean if solver.sense == "max" else log_z + mean).to(scores.dtype)


def sample(
    solver: Solver,
    scores: Tensor,
    key: Key = None,
    nb_samples: int | None = None,
    *,
    mask: Mask = None,
    k: K = None,
    data: Data = None,
) -> Tensor:
    """Independent draws of z: [*batch, nb_samples, *instance], or like scores without nb_samples.

    key: int64 [2], on the device of scores or on the CPU; drawn from PyTorch's generator if not
        given. A draw depends only on the key, the instance and the sample. Do not draw noise with
        the same key: it would use the same random numbers.
    """
    if key is None:
        check_tensor("exact.sample", "scores", scores)
        key = draw_key(scores)
    check_tensor("exact.sample", "key", key)
    if nb_samples is not None:
        nb_samples = check_int("exact.sample", "nb_samples", nb_samples, 1)
    if _must_list(solver):
        every, exponents = _listed("sample", solver, scores, mask, k, data)
        chosen = _ops.exact_sample.default(exponents, key, nb_samples or 1, "argmax")
        z = every.to(scores.dtype)[chosen.argmax(-1)]
        refused = chosen.isnan().any(-1)
        z = z.masked_fill(refused.reshape(refused.shape + (1,) * solver.instance_dims), torch.nan)
    else:
        settings = _settings("sample", solver, scores, mask, k, data)
        z = _ops.exact_sample.default(scores, key, nb_samples or 1, *settings)
    return z.squeeze(-1 - solver.instance_dims) if nb_samples is None else z


def structures(
    solver: Solver, scores: Tensor, *, k: int | None = None, data: Data = None
) -> Tensor:
    """Every structure for instances of the shape of scores: uint8 [N, *instance] of 0 and 1.

    data: for solvers that take it, int64 [length], the same for all instances.
    At most 10^6 of them; trees and arborescences of up to 7 vertices, grids of up to 4 x 4 cells.
    Chains that a mask shortens have other structures: list those of scores[..., : length - 1, :,
        :].
    """
    check_type("exact.structures", solver, Solver, "a solver such as aimle.TopK(k=3)")
    check_tensor("exact.structures", "scores", scores)
    if k is not None and (not solver.takes_k or not isinstance(k, int)):
        raise TypeError("[aimle.exact.structures] expected k to be an int, for TopK only")
    text, row_data = solver.row_arguments("exact.structures", scores, k, data)
    instance = scores.shape[scores.dim() - solver.instance_dims :]
    if row_data is not None and (row_data.dtype != torch.int64 or row_data.dim() != 1):
        raise ValueError(
            "[aimle.exact.structures] expected data of int64 [length], the same for all instances, "
            f"but got {row_data.dtype} of shape {list(row_data.shape)}"
        )
    numbers = None if row_data is None else row_data.tolist()
    return _ops.structures.default(text, instance, numbers, device=scores.device)


def probabilities(
    solver: Solver, scores: Tensor, *, mask: Mask = None, k: int | None = None, data: Data = None
) -> Tensor:
    """p(z) of all ``structures``, in their order: float64 [*batch, N]. Differentiable."""
    return _listed("probabilities", solver, scores, mask, k, data)[1].softmax(-1)


def expected(
    solver: Solver,
    scores: Tensor,
    f: Callable[[Tensor], Tensor],
    *,
    mask: Mask = None,
    k: int | None = None,
    data: Data = None,
) -> Tensor:
    """E f(z) for any f, by listing all structures. Differentiable in the scores and through f.

    f is called once, with z [N, *instance] in the dtype of scores, and returns a value for every
    structure: [N, *value] if it is the same function for all instances, which gives
    [*batch, *value]; or [*batch, N] if it differs by instance, which gives [*batch]. A shape that
    is both counts as [*batch, N].
    """
    check_type("exact.expected", f, Callable, "f to be callable")
    z, exponents = _listed("expected", solver, scores, mask, k, data)
    p = exponents.softmax(-1)
    values = f(z.to(scores.dtype))
    check_type("exact.expected", values, Tensor, "f to return a tensor")
    batch = p.shape[:-1]
    if values.shape == p.shape:
        result = (p * values.double()).sum(-1)
    elif values.dim() >= 1 and values.shape[0] == z.shape[0]:
        result = torch.tensordot(p, values.double(), dims=1)
    else:
        raise ValueError(
            f"[aimle.exact.expected] expected f to return [N, ...] or [*batch, N] for N={len(z)} "
            f"structures and batch {list(batch)} but got shape {list(values.shape)}"
        )
    return result.to(scores.dtype)


def exact_gradient(
    solver: Solver,
    theta: Tensor,
    f: Callable[[Tensor], Tensor],
    *,
    mask: Mask = None,
    k: int | None = None,
    data: Data = None,
) -> Tensor:
    """The gradient of E f(z) with respect to every instance of theta, for f as in ``expected``."""
    theta = theta.detach().requires_grad_()
    with torch.enable_grad():
        total = expected(solver, theta, f, mask=mask, k=k, data=data).sum()
    return torch.autograd.grad(total, theta)[0]


def expected_square(
    solver: Solver,
    scores: Tensor,
    b: Tensor,
    *,
    weight: Tensor | None = None,
    mask: Mask = None,
    k: K = None,
    data: Data = None,
) -> Tensor:
    """E sum_j weight_j (z_j - b_j)^2 in closed form: [*batch]; b and weight broadcast to scores.

    Entries of z are 0 or 1, so the square is linear in z, (z_j - b_j)^2 = b_j^2 + (1 - 2 b_j) z_j,
    and the gradient with respect to the scores is Cov(z) (weight * (1 - 2 b)): for unit weights and
    structures of a fixed size, -2 Cov(z) b.
    """
    mu = marginals(solver, scores, mask=mask, k=k, data=data)
    terms = b.square() + (1 - 2 * b) * mu
    weighted = terms if weight is None else weight * terms
    return weighted.flatten(scores.dim() - solver.instance_dims).sum(-1)


def _listed(
    function: str, solver: Solver, scores: Tensor, mask: Mask, k: K, data: Data
) -> tuple[Tensor, Tensor]:
    """All structures, and <scores, z> of each, float64 [*batch, N]; -inf for infeasible ones."""
    every = structures(solver, scores, k=cast("int | None", k), data=data)
    _check_floating(function, scores)
    if mask is not None:
        check_mask(f"exact.{function}", mask, scores, "scores")
    z = every.double().flatten(1)
    dims = solver.instance_dims
    x = (scores if solver.sense == "max" else -scores).double()
    banned = x == -torch.inf
    if mask is not None:
        banned = banned | ~mask
    x = x.masked_fill(banned, 0).flatten(x.dim() - dims)
    meets_banned = banned.double().flatten(banned.dim() - dims) @ z.T > 0
    if meets_banned.all(-1).any():
        raise ValueError(
            "[aimle.exact] expected every row to have a structure but mask and infinite scores "
            "leave none"
        )
    return every, (x @ z.T).masked_fill(meets_banned, -torch.inf)


def _check_floating(function: str, scores: Tensor) -> None:
    if not scores.is_floating_point():
        raise TypeError(
            f"[aimle.exact.{function}] expected scores of a floating-point type but got "
            f"{scores.dtype}"
        )


def _must_list(solver: object) -> bool:
    """Whether the solver has no closed form but a list of all structures."""
    return isinstance(solver, Solver) and solver.lists and not solver.has_exact


def _settings(
    function: str, solver: object, scores: object, mask: Mask, k: K, data: Data
) -> tuple[str, Tensor | None, Tensor | None]:
    """The arguments after the tensors for an op of the closed forms."""
    if not isinstance(solver, Solver) or not solver.has_exact:
        examples = "aimle.Argmax, aimle.TopK or aimle.SpanningTree,"
        expected = f"a solver with an exact distribution, such as {examples}"
        refuse_type(f"exact.{function}", expected, solver)
    check_tensor(f"exact.{function}", "scores", scores)
    if mask is not None:
        check_tensor(f"exact.{function}", "mask", mask)
    assert isinstance(scores, Tensor)
    text, row_data = solver.row_arguments(f"exact.{function}", scores, k, data)
    return text, mask, row_data
