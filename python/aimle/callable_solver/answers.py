"""Converts a callable solver's return value to the scores' shape, dtype and device.

NumPy arrays, what can be read as one (of JAX, for example), bools, integers and other precisions
are converted. Values within TOLERANCE of whole numbers, as returned by solvers of mixed-integer
programs, are rounded. Other fractional values are an error on the CPU unless they were requested;
on a GPU, where an error would wait for the device, and in compiled code, the row becomes NaN. NaN
is kept: it means that a row was not solved.

The result is always a copy, because a callable may return the same array or tensor at every call.
"""

import numpy as np
import torch
from torch import Tensor

#: The largest distance from a whole number that is rounded.
TOLERANCE = 1e-4

_WANTED = "an entry for every score, 1 where it is chosen and 0 elsewhere"
_REMEDY = (
    "a difference of relaxed solutions does not estimate the gradient of discrete ones; round "
    "them, or accept them with fractional=True"
)


def may_be_fractional(solver: object, given: bool | None) -> bool:
    """Whether solutions need not be whole numbers: as given, or the solver's attribute."""
    return bool(getattr(solver, "fractional", False) if given is None else given)


def as_answer(owner: str, z: object, scores: Tensor, *, fractional: bool) -> Tensor:
    """The solution z of scores [N, *instance], checked; see the module."""
    name = f"[aimle.{owner}] the solver"
    if not isinstance(z, Tensor) and hasattr(z, "__array__"):
        z = np.asarray(z)
        if z.dtype.kind not in "biuf":
            raise TypeError(f"{name} must return numbers but returned an array of {z.dtype}")
        if z.dtype.itemsize > 8 or not z.dtype.isnative:
            z = z.astype(np.float64)
        z = torch.from_numpy(np.require(z, requirements=["C", "W"])).to(scores.device)
    if not isinstance(z, Tensor):
        raise TypeError(
            f"{name} must return a tensor or an array but returned {type(z).__name__}: return "
            f"{_WANTED}"
        )
    if z.shape != scores.shape:
        raise ValueError(
            f"{name} must keep the shape {list(scores.shape)} of its input but returned "
            f"{list(z.shape)}: return {_WANTED}"
        )
    if z.device != scores.device:
        raise ValueError(
            f"{name} must keep the device {scores.device} of its input but returned {z.device}"
        )
    if z.is_complex():
        raise TypeError(
            f"{name} must keep the dtype {scores.dtype} of its input but returned {z.dtype}"
        )
    whole = not z.is_floating_point()
    if whole or fractional:
        return z.detach().to(scores.dtype, copy=True)
    return _whole(name, z.detach().to(scores.dtype))


def _whole(name: str, z: Tensor) -> Tensor:
    """A copy of z, rounded."""
    rounded = z.round()
    if torch.compiler.is_compiling() or not z.is_cpu or type(z) is not Tensor:
        wrong = ((z - rounded).abs() > TOLERANCE).flatten(1).any(1)
        return rounded.masked_fill(wrong.reshape(-1, *[1] * (z.dim() - 1)), torch.nan)
    if torch.equal(z, rounded):
        return rounded
    wrong = (z - rounded).abs() > TOLERANCE
    if wrong.any():
        row, *entry = wrong.nonzero()[0].tolist()
        raise ValueError(
            f"{name} returned a fractional solution: {z[row][tuple(entry)].item():g} in row {row}, "
            f"entry {entry[0] if len(entry) == 1 else entry}: {_REMEDY}"
        )
    return rounded
