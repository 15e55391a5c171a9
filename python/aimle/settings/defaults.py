"""Defaults of a layer that depend on its structure: the noise, the difference, the bound of alpha.

Native solvers declare their noise (``default_noise``, aimle/map/declaration.h):

    all solutions have the same number of entries (``fixed_size``): Gumbel at temperature 1. A
        constant added to every entry cancels, and scores have no scale of their own.
    paths over costs: Normal, at a temperature that suits costs of order one. Its mean is zero,
        because the mean of the noise makes paths longer or shorter, and costs must be positive.
    entries that are on or off independently (``Bernoulli``): Logistic at temperature 1, which
        gives their exact distribution.

Other noises are centred if solutions vary in size. For a callable, ``fixed_size`` decides.

The paper's rule and its authors' use the noise as their code adds it: Gumbel at temperature 1, not
centred. See ``aimle/estimate/published.h``.

If theta holds costs (paths of costs, and callables that minimise), AIMLE takes the forward
difference, and alpha may rise to 16 instead of 4. A long forward step tends to z - MAP(-d), which
still depends on theta; a long central one does not.
"""

from typing import Literal

from aimle.noise import Gumbel, Noise, as_noise
from aimle.settings.checks import check_bool
from aimle.targets import LARGEST_ALPHA, LARGEST_ALPHA_OF_COSTS

#: For costs: the standard deviation of costs in [.5, 1.5]; see docs/results/gradients.md.
COST_TEMPERATURE = 0.3


def is_published(target: object) -> bool:
    """Whether a target is the paper's rule or its authors'."""
    return bool(getattr(target, "_is_published", False))


def varies(solver: object, target: object) -> bool:
    """Whether the noise must suit solutions that vary in size."""
    return not getattr(solver, "fixed_size", True) and not is_published(target)


def noise_for(solver: object, target: object, noise: Noise | str | None) -> Noise | None:
    """The noise as given, or the structure's default for "auto"."""
    if noise != "auto":
        return as_noise(noise)
    if is_published(target):
        return Gumbel()
    of_size = "normal" if varies(solver, target) else "gumbel"
    return as_noise(getattr(solver, "default_noise", of_size))


def subtracted_mean(solver: object, target: object, noise: Noise | None) -> float:
    """What a layer subtracts from its noise: its mean if solutions vary in size."""
    return 0.0 if noise is None or not varies(solver, target) else noise.mean


def temperature_for(solver: object, target: object, temperature: float | None) -> float:
    """The temperature as given, or the structure's default for None."""
    if temperature is not None:
        return temperature
    if is_published(target):
        return 1.0
    of_size = COST_TEMPERATURE if varies(solver, target) else 1.0
    return float(getattr(solver, "default_temperature", of_size))


def takes_costs(solver: object, sense: str | None) -> bool:
    """Whether theta holds costs: a path's, or those of a callable that minimises."""
    minimises = getattr(solver, "sense", sense) == "min"
    return bool(getattr(solver, "has_costs", minimises))


def difference_for(
    owner: str, solver: object, sense: str | None, symmetric: bool | None
) -> Literal["central", "forward"]:
    """The difference as given, or the structure's default for None."""
    if symmetric is not None:
        symmetric = check_bool(owner, "symmetric_perturbation", symmetric)
    else:
        symmetric = not takes_costs(solver, sense)
    return "central" if symmetric else "forward"


def largest_alpha_for(solver: object, sense: str | None, difference: str) -> float:
    """The default upper bound of alpha."""
    long = difference == "forward" and takes_costs(solver, sense)
    return LARGEST_ALPHA_OF_COSTS if long else LARGEST_ALPHA
