"""The methods of the comparison, with settings shared by the command line and Python.

Settings are text, spelled as options of ``aimle train``; ``aimle.estimate.texts`` turns them into
arguments of ``aimle.estimator``.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

#: Algorithm 1 of the paper, with every setting whose default might change.
PAPER = {
    "initial_alpha": "0",
    "step": "1e-3",
    "target_norm": "1",
    "scope": "example",
    "scale": "theta",
    "rule": "additive",
    "alpha_range": "0:inf",
}

#: A target count that depends on the task: K ones in a solution, S samples.
COUNT_OF_TASK = "K/sqrt(S)"


@dataclass(frozen=True)
class Method:
    """One row of the comparison: an estimator with fixed settings."""

    name: str
    estimator: str
    settings: tuple[tuple[str, str], ...] = ()
    #: What distinguishes it from others of the same name, for example "lambda=10".
    setting: str = ""

    def resolved(self, ones: float, samples: int) -> dict[str, str]:
        """Its settings, for solutions with this number of ones and this number of samples."""
        count = f"{ones / math.sqrt(samples):.6g}"
        return {name: count if value == COUNT_OF_TASK else value for name, value in self.settings}


#: The methods without a grid. PyEPO's own layers have its name.
_OF_THEIR_NAME = (
    *("thresholds", "reinmax", "exact", "gumbel_rao", "gumbel_softmax", "sst", "softsub"),
    *("identity", "pyepo_aimle", "pyepo_aimle_two_sided"),
)
SINGLE = {
    "default": Method("default", "aimle"),
    "paper": Method("paper", "aimle", tuple(PAPER.items())),
    "noise": Method("noise", "aimle_noise"),
    **{name: Method(name, name) for name in _OF_THEIR_NAME},
}

#: The methods that are run for every lambda of a task.
GRIDS = ("imle", "imle_central", "pyepo_imle")
RELAXATIONS = ("gumbel_softmax", "sst", "softsub")
NAMES = (*SINGLE, *GRIDS)


def expand(names: Iterable[str], lambdas: Iterable[str]) -> list[Method]:
    """The methods of these names, one for each lambda where there is a grid."""
    values = tuple(lambdas)
    found = []
    for name in names:
        if name in SINGLE:
            found.append(SINGLE[name])
        else:
            found += [Method(name, name, (("lambda", v),), f"lambda={v}") for v in values]
    return found


def parse_candidate(text: str) -> Method:
    """``NAME=ESTIMATOR,SETTING=VALUE,...``, for example ``a2=aimle,initial_alpha=2``.

    The value ``K/sqrt(S)`` is replaced by that number for each task.
    """
    head, *rest = text.split(",")
    name, equals, estimator = head.partition("=")
    pairs = [tuple(part.split("=", 1)) for part in rest]
    if not (name and equals and estimator) or any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"expected NAME=ESTIMATOR,SETTING=VALUE,... but got {text!r}")
    if name in NAMES:
        raise ValueError(f"expected a new name but {name!r} is a method of the benchmark")
    settings = tuple((pair[0], pair[1]) for pair in pairs)
    return Method(name, estimator, settings, " ".join(rest))
