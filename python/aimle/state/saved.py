"""Selects the part of a saved state that a layer can use."""

import warnings
from collections.abc import Mapping
from typing import Any

from torch import Tensor

_NAMES = ("alpha", "gbar", "updates", "reach", "velocity")


def usable_state(
    layer: Any, state: Mapping[str, Tensor], prefix: str, strict: bool, errors: list[str]
) -> Mapping[str, Tensor]:
    """The part of a state that the layer loads. If the layer has no adaptive state, the saved one
    is dropped; if the state has none, the layer keeps its own. Both warn.

    The sizes of a callable's solutions are dropped or kept in the same way without a warning: a
    layer finds them out again. Older states have none.

    Raises an error if the state belongs to another rule of the step size.
    """
    state = _with_sizes(layer._buffers["sizes"], state, f"{prefix}sizes")
    owner = prefix.rstrip(".") or "the layer"
    own = [name for name in _NAMES if layer._buffers[name] is not None]
    given = [name for name in _NAMES if f"{prefix}{name}" in state]
    if own and given:
        if "reach" in own and "reach" not in given:
            errors.append(
                f"the state of {owner} was saved with a given target_norm, as by the paper's rule, "
                "the default before version 0.2: make the layer with "
                "target=aimle.AdaptiveTarget.paper() to continue with that rule"
            )
        elif "reach" in given and "reach" not in own:
            errors.append(
                f"the state of {owner} was saved with a measured target_norm: make the layer with "
                "target=aimle.AdaptiveTarget()"
            )
    elif given and strict:
        warnings.warn(
            f"[aimle.{type(layer).__name__}] the state of {owner} has {', '.join(given)} of an "
            "adaptive step; this layer has none and ignores them",
            stacklevel=2,
        )
        return {key: value for key, value in state.items() if key[len(prefix) :] not in given}
    elif own and strict:
        warnings.warn(
            f"[aimle.{type(layer).__name__}] the state of {owner} was saved by a layer without an "
            "adaptive step: the step size of this layer is unchanged",
            stacklevel=2,
        )
        return {**state, **{f"{prefix}{name}": layer._buffers[name] for name in own}}
    return state


def _with_sizes(own: Tensor | None, state: Mapping[str, Tensor], name: str) -> Mapping[str, Tensor]:
    """The state with sizes of solutions exactly if the layer has them."""
    if own is None:
        return {key: value for key, value in state.items() if key != name}
    return {name: own, **state}
