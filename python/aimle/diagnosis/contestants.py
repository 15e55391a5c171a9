"""The participants of a diagnosis: every estimator that applies, and the given layer."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

import aimle
from aimle.diagnosis.truth import Model
from aimle.estimate.texts import python_settings, split_text
from aimle.settings.checks import is_number
from aimle.state.sharing import keep_own_state

YOURS = "your layer"
# The estimators whose noise can be set, except those that use no noise by default.
_ADAPTIVE = ("aimle", "aimle_forward", "aimle_noise", "aimle_covariance")
_WITH_NOISE = frozenset((*_ADAPTIVE, "imle", "imle_central", "ste", "thresholds", "dpo"))
_WITH_STEP = ("imle", "imle_central", "dbb")
# Settings that change an estimator enough to be measured in addition to its defaults.
_VARIANTS = {"thresholds": ("thresholds:order=first",), "sfe": ("sfe:baseline=leave_one_out",)}


@dataclass(frozen=True)
class Contestant:
    """An estimator of theta / temperature; "your layer" is one of theta itself."""

    name: str  # with its settings except lambda: `thresholds:order=first`
    fixed_lambda: float | None  # in units of theta
    samples: int
    layer: nn.Module


def contestants(
    solver: Any,
    yours: nn.Module | None,
    model: Model,
    samples: int,
    lambdas: Sequence[float],
    texts: Sequence[str] | None,
) -> Iterator[Contestant]:
    """All that apply, or those of these texts (``name:setting=value:...``), with S samples.

    Raises TypeError for a text whose estimator does not apply. Estimators that need more samples
    are left out.
    """
    if yours is not None and samples >= _fewest_samples(yours):
        yield Contestant(YOURS, None, samples, _copy(yours, samples))
    for text in _all_texts(model) if texts is None else texts:
        name, given = split_text(text)
        label = ":".join([name, *(f"{key}={v}" for key, v in given.items() if key != "lambda")])
        settings = _settings(name, model, samples) | python_settings(given)
        if "nb_samples" in given:
            raise ValueError(
                f"[aimle.diagnose] expected no nb_samples in the text of an estimator but got "
                f"{text!r}: pass diagnose(..., nb_samples=...)"
            )
        own = settings.pop("lambda_", None)
        if not (own is None or is_number(own)):
            raise ValueError(
                f"[aimle.diagnose] expected lambda to be a number >= 0 but got {text!r}"
            )
        for fixed in _steps(name, own, lambdas):
            if fixed is not None:
                settings["lambda_"] = fixed / model.temperature
            try:
                yield Contestant(label, fixed, samples, _build(name, solver, settings))
            except TypeError:
                if texts is not None:
                    raise  # it was requested by name
            except ValueError:
                if texts is not None:  # a real error, unless it only needs more samples
                    _build(name, solver, settings | {"nb_samples": max(samples, 2)})


def _all_texts(model: Model) -> list[str]:
    variants = dict(_VARIANTS)
    if model.noise is None:  # dpo uses Normal noise, but the true gradient is that of Gumbel noise
        variants["dpo"] = ("dpo:noise=gumbel",)
    return [text for name in aimle.estimators() for text in (name, *variants.get(name, ()))]


def _steps(name: str, own: float | None, lambdas: Sequence[float]) -> list[float | None]:
    """The fixed steps to try: its own, the given ones, or none."""
    if own is not None:
        return [float(own)]
    return [float(each) for each in lambdas] if name in _WITH_STEP else [None]


def _settings(name: str, model: Model, samples: int) -> dict[str, Any]:
    """The number of samples, and the noise of the model at temperature 1."""
    settings: dict[str, Any] = {} if name == "dbb" else {"nb_samples": samples}
    if model.noise is not None and name in _WITH_NOISE:
        noise, temperature = model.noise, model.temperature
        if name in ("thresholds", "dpo"):
            noise, temperature = model.with_density()
        settings |= {"noise": noise, "temperature": temperature / model.temperature}
    return settings


def _build(name: str, solver: Any, settings: dict[str, Any]) -> nn.Module:
    """Argmax as TopK(1), or the reverse: some estimators accept only one of the two."""
    try:
        return aimle.estimator(name, solver, **settings)
    except TypeError:
        if type(solver) is not aimle.Argmax:
            raise
        return aimle.estimator(name, aimle.TopK(1), **settings)


def _fewest_samples(layer: nn.Module) -> int:
    """Two for estimators that compare samples with each other."""
    settings = (getattr(layer, "baseline", None), getattr(layer, "variance_reduction", None))
    compares = isinstance(layer, aimle.CovarianceAIMLE) or "leave_one_out" in settings
    return 2 if compares else 1


def _copy(layer: nn.Module, samples: int) -> nn.Module:
    solver = getattr(layer, "solver", None)  # shared: a user's solver may not be copyable
    own: Any = copy.deepcopy(layer, {id(solver): solver}).train()
    keep_own_state(own)  # independent of the other processes
    if hasattr(own, "nb_samples"):
        own.nb_samples = samples
    if getattr(own, "output", "samples") == "flat":
        own.output = "samples"
    return own
