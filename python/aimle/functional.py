"""Functions: solve, sample_noise, draw_key, symmetrise."""

import os
from collections.abc import Sequence
from numbers import Integral
from typing import Literal, overload

import torch
from torch import Generator, Tensor
from torch._ops import OpOverload
from torch.compiler import is_compiling

from aimle.noise import Noise, as_noise
from aimle.settings.checks import (
    check_bool,
    check_generator_type,
    check_int,
    check_tensor,
    is_number,
    refuse_type,
)
from aimle.solvers import CHECK_ALL, CHECK_DEFAULT, CHECK_NOTHING, Data, K, Mask, Solver

_ops = torch.ops.aimle
_draw_key = _ops.draw_key.default
_draw_host_key = _ops.draw_host_key.default
_BLANK_KEY = torch.zeros(2, dtype=torch.int64)  # read only
_CAN_BE_DISTRIBUTED = torch.distributed.is_available()
_RANK = int(os.environ["RANK"]) if os.environ.get("RANK", "").isdecimal() else 0


@overload
def solve(
    solver: Solver,
    scores: Tensor,
    *,
    mask: Mask = None,
    k: K = None,
    data: Data = None,
    check: bool | None = None,
    return_status: Literal[False] = False,
) -> Tensor: ...
@overload
def solve(
    solver: Solver,
    scores: Tensor,
    *,
    mask: Mask = None,
    k: K = None,
    data: Data = None,
    check: bool | None = None,
    return_status: Literal[True],
) -> tuple[Tensor, Tensor]: ...


def solve(
    solver: Solver,
    scores: Tensor,
    *,
    mask: Mask = None,
    k: K = None,
    data: Data = None,
    check: bool | None = None,
    return_status: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Solve every instance of scores [*batch, *instance]; z has the same shape and dtype.

    mask: bool, broadcastable to scores; entries that are False are never chosen.
    k: for TopK, an int or int64 broadcastable to *batch; overrides the solver's own.
    data: for solvers that take it, int64 [length] or broadcastable to [*batch, length].
    return_status: also return a uint8 tensor [*batch] of ``aimle.Status``.
    check: which bad values raise a ValueError that names the first bad row.
        True: all of them, including NaN scores; on a GPU this waits for the result.
        False: none; a bad row is filled with NaN and its status gives the reason.
        None: False if return_status is set; otherwise, on the CPU, all except NaN scores.
    """
    if not isinstance(solver, Solver):
        refuse_type("solve", "a solver such as aimle.TopK(k=3)", solver)
    check_bool("solve", "return_status", return_status)
    if check is None:
        check_level = CHECK_NOTHING if return_status else CHECK_DEFAULT
    else:
        check_level = CHECK_ALL if check_bool("solve", "check", check) else CHECK_NOTHING
    z, status = solver.solve_rows(scores, mask, k, check_level, data)
    return (z, status) if return_status else z


def _is_size(value: object) -> bool:
    return isinstance(value, Integral | torch.SymInt) and not isinstance(value, bool)


def sample_noise(
    noise: Noise | str | None,
    shape: Sequence[int],
    key: Tensor,
    *,
    nb_samples: int | None = None,
    instance_dims: int = 1,
    temperature: float = 1.0,
) -> Tensor:
    """Noise for scores of the given shape: float32 on the device of key, times temperature.

    shape: [*batch, *instance]; the last ``instance_dims`` sizes are those of one instance.
    key: int64 [2], for example from ``aimle.draw_key``; the same key gives the same noise.
    nb_samples: None returns the given shape, S returns [*batch, S, *instance].

    A value depends only on the key, the instance, the sample and the element: a longer row, more
    samples or more instances do not change the other values.
    """
    noise = as_noise(noise)
    check_tensor("sample_noise", "key", key)
    if not (isinstance(shape, Sequence) and all(map(_is_size, shape))):
        raise TypeError(
            f"[aimle.sample_noise] expected shape to be a sequence of sizes but got {shape!r}"
        )
    check_int("sample_noise", "instance_dims", instance_dims, 0, len(shape))
    if nb_samples is not None:
        nb_samples = check_int("sample_noise", "nb_samples", nb_samples, 1)
    if not (is_number(temperature) and temperature >= 0):
        raise ValueError(
            f"[aimle.sample_noise] expected a finite temperature >= 0 but got {temperature!r}"
        )
    split = len(shape) - instance_dims
    batch, instance = shape[:split], shape[split:]
    samples = -1 if nb_samples is None else nb_samples
    if noise is None:
        sizes = (*batch, *(() if nb_samples is None else (nb_samples,)), *instance)
        return torch.zeros(sizes, dtype=torch.float32, device=key.device)
    drawn = noise.sample(key, batch, samples, instance)
    return drawn if temperature == 1.0 else drawn * temperature


def draw_key(
    like: Tensor, *, generator: Generator | None = None, rank: int | None = None
) -> Tensor:
    """A fresh key, int64 [2] on the device of like, from PyTorch's generator.

    ``torch.manual_seed`` makes it reproducible, in eager and in compiled code. Inductor may only
    reorder independent draws within one compiled function.

    Processes that share a seed get different keys: their rank (from torch.distributed, or the
    environment variable RANK) is mixed in. Rank 0 leaves the key unchanged.
    """
    check_tensor("draw_key", "like", like)
    check_generator_type("draw_key", generator)
    if rank is not None:
        rank = check_int("draw_key", "rank", rank, 0)
    return _draw(_draw_key, like, generator, process_rank() if rank is None else rank)


def _takes_host_key(theta: Tensor) -> bool:
    """Whether drawing the key on the CPU saves a kernel launch on theta's device."""
    return theta.is_cuda and not is_compiling()


def check_generator(owner: str, generator: Generator | None) -> None:
    """Raises RuntimeError if a layer with a generator is called again in a backward pass."""
    if generator is not None and not is_compiling() and torch._C._current_graph_task_id() != -1:
        raise RuntimeError(
            f"[aimle.{owner}] a generator cannot be replayed by activation checkpointing: draw a "
            "key outside (aimle.draw_key) and pass it as key"
        )


def draw_layer_key(theta: Tensor, generator: Generator | None) -> Tensor:
    """The same numbers as draw_key, drawn on the CPU if that saves a kernel launch."""
    op = _draw_host_key if _takes_host_key(theta) else _draw_key
    return _draw(op, theta, generator, process_rank())


def blank_key(theta: Tensor) -> Tensor:
    """A key for a call without noise: zeros, on the CPU if that saves a kernel launch."""
    if _takes_host_key(theta) or (type(theta) is Tensor and theta.is_cpu and not is_compiling()):
        return _BLANK_KEY
    return torch.zeros(2, dtype=torch.int64, device=theta.device)


def _draw(op: OpOverload, like: Tensor, generator: Generator | None, rank: int) -> Tensor:
    if generator is None and rank == 0:
        return op(like)  # takes half the time: keyword arguments are slow
    if generator is not None and is_compiling():
        raise ValueError(
            "[aimle.draw_key] a generator cannot be used under torch.compile: draw the key outside "
            "and pass it as key"
        )
    return op(like, generator=generator, rank=rank)


def process_rank() -> int:
    """The rank of this process, 0 if it is alone."""
    if _CAN_BE_DISTRIBUTED and torch.distributed.is_initialized():
        return torch.distributed.get_rank()
    return _RANK


def symmetrise(scores: Tensor, n: int) -> Tensor:
    """Replaces both directions of every edge by their mean: [*batch, n(n-1)] directed scores.

    Differentiable: the gradient is the symmetrised gradient.
    """
    check_tensor("symmetrise", "scores", scores)
    return _ops.symmetrise.default(scores, check_int("symmetrise", "n", n, 1))
