"""Exports a layer in eval mode with ``torch.onnx.export``, using PyTorch's operators.

ONNX has no operators for our solvers. ``Argmax`` and ``TopK`` are exported as ``torch.topk``, whose
ONNX operator has the same tie rule: lower index first. A callable solver is called as it is, and
exported if it consists of PyTorch operators. Everything else raises a RuntimeError.
"""

from typing import Any

import torch
from torch import Tensor, nn

from aimle.settings.checks import instance_dims_of
from aimle.solvers import Solver
from aimle.structures import Argmax, TopK


def in_onnx_export() -> bool:
    """Whether torch.onnx.export is running the model. Cheap outside of any tracing."""
    if not (torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None):
        return False
    from aimle.onnx.exporting import exporting  # imports torch._dynamo, which is slow

    return exporting()


def onnx_solution(
    layer: nn.Module | Any,
    theta: Tensor,
    mask: Tensor | None,
    k: Tensor | int | None,
    args: tuple = (),
    kwargs: dict[str, Any] | None = None,
) -> Tensor:
    """The noise-free solution of theta [*batch, *instance], in the layer's output shape."""
    owner, solver = type(layer).__name__, layer.solver
    if layer.training:
        raise RuntimeError(
            f"[aimle.{owner}] a layer in training mode cannot be exported to ONNX: call eval() on "
            "the model first"
        )
    if layer.noise_in_eval:
        raise RuntimeError(
            f"[aimle.{owner}] noise cannot be exported to ONNX: expected a layer with "
            "noise_in_eval=False"
        )
    dims = instance_dims_of(solver, theta, getattr(layer, "instance_dims", None))
    sense = getattr(layer, "sense", "max")
    own = getattr(solver, "sense", sense)
    scores = theta.detach() if own == sense else -theta.detach()
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.inf if own == "min" else -torch.inf)
    if isinstance(solver, Solver):
        z = _largest(owner, solver, scores, k)
    else:
        z = _answer(owner, solver, scores, dims, args, kwargs or {})
    output = getattr(layer, "output", "mean")
    if output == "samples":
        return z.unsqueeze(theta.dim() - dims)
    return z.reshape(-1, *theta.shape[theta.dim() - dims :]) if output == "flat" else z


def _largest(owner: str, solver: Solver, scores: Tensor, k: Tensor | int | None) -> Tensor:
    """The indicator of the k largest scores, for Argmax and TopK only; -inf is masked. Rows without
    a solution are NaN, as in the layer."""
    if not isinstance(solver, Argmax | TopK):
        raise RuntimeError(
            f"[aimle.{owner}] {type(solver).__name__} cannot be exported to ONNX: expected Argmax, "
            "TopK or a function of PyTorch operators as the solver. Export the model up to its "
            "scores and solve them with aimle.solve, or compile the whole model with AOTInductor "
            "(docs/guide/pytorch.md)"
        )
    if isinstance(k, Tensor):
        raise RuntimeError(
            f"[aimle.{owner}] k per row cannot be exported to ONNX: expected an int for all rows"
        )
    solver.text_for(owner, k)  # raises if the solver does not take k
    count = 1 if isinstance(solver, Argmax) else solver.k if k is None else k
    z = torch.zeros_like(scores).scatter(-1, scores.topk(count, -1).indices, 1.0)
    too_few = (scores > -torch.inf).sum(-1, keepdim=True) < count
    return z.masked_fill(too_few | scores.isnan().any(-1, keepdim=True), torch.nan)


def _answer(
    owner: str, solver: Any, scores: Tensor, dims: int, args: tuple, kwargs: dict[str, Any]
) -> Tensor:
    """The callable's solution, if the call can be recorded."""
    if torch._C._get_tracing_state() is not None:
        raise RuntimeError(
            f"[aimle.{owner}] a callable solver cannot be traced, because its result could become "
            "a constant of the model: use torch.onnx.export(..., dynamo=True)"
        )
    rows = scores.reshape(-1, *scores.shape[scores.dim() - dims :])
    if rows.dtype in (torch.bfloat16, torch.float16):
        rows = rows.float()
    try:
        z = solver(rows, *args, **kwargs)
    except Exception as error:
        raise _not_recorded(owner) from error
    if not isinstance(z, Tensor):
        raise _not_recorded(owner)
    return z.to(scores.dtype).reshape(scores.shape)


def _not_recorded(owner: str) -> RuntimeError:
    return RuntimeError(
        f"[aimle.{owner}] the callable solver cannot be exported to ONNX: expected a function of "
        "PyTorch operators, from tensor to tensor. Export the model up to its scores and solve "
        "them outside"
    )
