"""Checks of the settings objects: each error names the argument, its value and what is allowed."""

import math
from numbers import Integral, Real
from typing import Any, NoReturn, TypeGuard

import numpy as np
from torch import Generator, Tensor, strided
from torch import bool as bool_

_LARGEST_INT = 2**63 - 1

# The values of settings that are words.
_CHOICES = {
    "output": ("samples", "flat", "mean"),
    "sense": ("max", "min"),
    "baseline": ("none", "leave_one_out"),
    "variance_reduction": ("leave_one_out", "none"),
}


def refuse_type(owner: str, expected: str, value: object, hint: str = "") -> NoReturn:
    """Raises a TypeError that names the type of the value."""
    raise TypeError(f"[aimle.{owner}] expected {expected} but got {type(value).__name__}{hint}")


def check_type(owner: str, value: object, kind: Any, expected: str) -> None:
    """Raises TypeError unless value is an instance of kind, or one of several kinds."""
    if not isinstance(value, kind):
        refuse_type(owner, expected, value)


def check_int(owner: str, name: str, value: object, low: int, high: int | None = None) -> int:
    """value as an int; raises TypeError if it is not one, ValueError if it is out of bounds."""
    if not isinstance(value, int) and isinstance(value, Integral):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        refuse_type(owner, f"{name} to be an int", value)
    if value < low or value > (_LARGEST_INT if high is None else high):
        bounded = high is not None or value >= low
        last = _LARGEST_INT if high is None else high
        allowed = f"{low} <= {name} <= {last}" if bounded else f"{name} >= {low}"
        raise ValueError(f"[aimle.{owner}] expected {allowed} but got {name}={value}")
    return value


def is_number(value: object) -> TypeGuard[float]:
    """Whether value is a finite real number, including NumPy's."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    return (
        -math.inf < float(value) < math.inf
    )  # math.isfinite does not accept the symbolic numbers of compiled functions


def check_bool(owner: str, name: str, value: object) -> bool:
    """value as a bool; raises TypeError if it is not one."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"[aimle.{owner}] expected {name} to be True or False but got {value!r}")
    return bool(value)


def check_graph(owner: str, graph: object) -> None:
    """Raises TypeError unless graph has what NetworkX's graphs have."""
    needed = ("nodes", "edges", "is_directed", "is_multigraph")
    if isinstance(graph, type) or not all(hasattr(graph, name) for name in needed):
        refuse_type(owner, "graph to be a NetworkX graph", graph)


def check_generator_type(owner: str, generator: object) -> None:
    """Raises TypeError unless generator is one of PyTorch's, or None."""
    if not isinstance(generator, Generator | None):
        refuse_type(owner, "generator to be a torch.Generator or None", generator)


def check_choice(owner: str, name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Raises ValueError unless value is one of those allowed."""
    if value not in allowed:
        choices = " or ".join(repr(choice) for choice in allowed)
        raise ValueError(f"[aimle.{owner}] expected {name} to be {choices} but got {value!r}")


def check_tensor(owner: str, name: str, value: object) -> None:
    """Raises TypeError unless value is a tensor."""
    if not isinstance(value, Tensor):
        hint = f": pass torch.as_tensor({name})" if hasattr(value, "__len__") else ""
        if name == "key":
            hint = ": pass torch.tensor([seed, step])"
        refuse_type(owner, f"{name} to be a tensor", value, hint)


def check_mask(owner: str, mask: Tensor, theta: Tensor, name: str = "theta") -> None:
    """Raises TypeError unless mask is bool, ValueError unless it broadcasts to theta."""
    check_tensor(owner, "mask", mask)
    if mask.dtype is not bool_:
        raise TypeError(
            f"[aimle.{owner}] expected a mask of bool but got {mask.dtype}: pass mask.bool()"
        )
    pairs = zip(reversed(mask.shape), reversed(theta.shape), strict=False)
    if mask.dim() > theta.dim() or any(size not in (1, wanted) for size, wanted in pairs):
        raise ValueError(
            f"[aimle.{owner}] expected a mask broadcastable to the shape of {name}, "
            f"{list(theta.shape)}, but got shape {list(mask.shape)}"
        )


def check_theta(owner: str, theta: Tensor) -> None:
    """Raises TypeError unless theta is dense and floating-point, ValueError if it is a scalar."""
    if not isinstance(theta, Tensor):
        check_tensor(owner, "theta", theta)
    if theta.is_nested:
        raise TypeError(
            f"[aimle.{owner}] expected a dense theta but got a nested tensor: pad it "
            "(torch.nested.to_padded_tensor) and pass a mask"
        )
    if theta.layout is not strided:
        raise TypeError(f"[aimle.{owner}] expected a dense theta but got {theta.layout}")
    if not theta.is_floating_point():
        raise TypeError(
            f"[aimle.{owner}] expected theta of a floating-point type but got {theta.dtype}"
            + ("" if theta.is_complex() else ": pass theta.float()")
        )
    if theta.dim() == 0:
        raise ValueError(f"[aimle.{owner}] expected theta of at least 1 dimension but got shape []")


def check_batch(owner: str, theta: Tensor, dims: int) -> None:
    """Raises ValueError unless theta has instances of this many dimensions."""
    if dims > theta.dim():
        raise ValueError(
            f"[aimle.{owner}] expected theta of at least {dims} dimensions but got shape "
            f"{list(theta.shape)}"
        )
    if dims < 1:
        raise ValueError(
            f"[aimle.{owner}] expected theta [batch, *instance] but got shape "
            f"{tuple(theta.shape)}, which has no batch dimension: add one with theta.unsqueeze(0), "
            f"or make the layer with instance_dims={theta.dim()}"
        )


def instance_dims_of(solver: object, theta: Tensor, given: int | None = None) -> int:
    """The number of dimensions of an instance of theta: as given, the solver's own, or all but the
    first."""
    own = getattr(solver, "instance_dims", None) if given is None else given
    return theta.dim() - 1 if own is None else own


def check_not_negative(owner: str, name: str, value: object) -> None:
    """Raises ValueError unless value is a finite number >= 0."""
    if not (is_number(value) and value >= 0):
        raise ValueError(f"[aimle.{owner}] expected {name} finite and >= 0 but got {value!r}")


def check_share(owner: str, name: str, value: object) -> None:
    """Raises ValueError unless value is a number from 0 to 1."""
    if not (is_number(value) and 0 <= value <= 1):
        raise ValueError(f"[aimle.{owner}] expected 0 <= {name} <= 1 but got {value!r}")


def check_assigned(owner: str, name: str, value: object) -> None:
    """Raises TypeError or ValueError for a bad value that is assigned to a layer's setting."""
    if name in ("nb_samples", "draws"):
        check_int(owner, name, value, 1)
    elif name in ("noise_in_eval", "hard"):
        check_bool(owner, name, value)
    elif name == "generator":
        check_generator_type(owner, value)
    elif name == "share":
        check_share(owner, name, value)
    elif name in _CHOICES:
        check_choice(owner, name, value, _CHOICES[name])
    elif name == "target_noise_temperature" and value is None:
        pass  # that of the forward pass
    elif name.endswith("temperature") and not isinstance(value, Tensor):
        check_not_negative(owner, name, value)


def check_positive(owner: str, name: str, value: object) -> None:
    """Raises ValueError unless value is a finite number > 0."""
    if not (is_number(value) and value > 0):
        raise ValueError(f"[aimle.{owner}] expected a finite {name} > 0 but got {value!r}")
