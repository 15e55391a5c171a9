"""Invalid settings of layers: the exception and the text of its message."""

from collections.abc import Callable

import pytest
import torch
from bad_layers import (
    inf,
    nan,
    topk,
)

import aimle

SETTINGS: dict[str, tuple[Callable[[], object], type[Exception], tuple[str, ...]]] = {
    "solver": (lambda: topk(solver=3), TypeError, ("solver", "callable", "int")),
    "solver a name": (lambda: topk(solver="topk"), TypeError, ("solver", "aimle.TopK", "str")),
    "no samples": (lambda: topk(nb_samples=0), ValueError, ("nb_samples >= 1", "nb_samples=0")),
    "negative samples": (lambda: topk(nb_samples=-3), ValueError, ("nb_samples >= 1", "-3")),
    "samples a float": (lambda: topk(nb_samples=2.0), TypeError, ("nb_samples", "int", "float")),
    "negative temperature": (
        lambda: topk(theta_noise_temperature=-1.0),
        ValueError,
        ("theta_noise_temperature", ">= 0", "-1.0"),
    ),
    "nan temperature": (
        lambda: topk(theta_noise_temperature=nan),
        ValueError,
        ("theta_noise_temperature", "finite", "nan"),
    ),
    "temperature a string": (
        lambda: topk(theta_noise_temperature="1"),
        ValueError,
        ("theta_noise_temperature", ">= 0", "'1'"),
    ),
    "negative target temperature": (
        lambda: topk(target_noise_temperature=-0.5),
        ValueError,
        ("target_noise_temperature", ">= 0", "-0.5"),
    ),
    "infinite target temperature": (
        lambda: topk(target_noise_temperature=inf),
        ValueError,
        ("target_noise_temperature", "finite", "inf"),
    ),
    "output": (
        lambda: topk(output="sum"),
        ValueError,
        ("output", "'samples'", "'flat'", "'mean'", "'sum'"),
    ),
    "sense": (lambda: topk(sense="up"), ValueError, ("sense", "'max'", "'min'", "'up'")),
    "sense of costs": (
        lambda: aimle.AIMLE(aimle.GridPath(), sense="max"),
        ValueError,
        ("sense='min'", "GridPath", "sense='max'", "leave out sense"),
    ),
    "sense of costs, changed": (
        lambda: (
            setattr(grid := aimle.AIMLE(aimle.GridPath()), "sense", "max")
            or grid(torch.rand(1, 3, 3))
        ),
        ValueError,
        ('sense "min"', "grid_path", '"max"', "leave out sense"),
    ),
    "noise": (lambda: topk(noise="cauchy"), ValueError, ("noise", "'gumbel'", "'cauchy'")),
    "target": (lambda: topk(target=0.5), TypeError, ("target", "AdaptiveTarget", "float")),
    "scale without noise": (
        lambda: topk(noise=None, target=aimle.AdaptiveTarget(scale="noise")),
        ValueError,
        ("scale='noise'", "noise is None"),
    ),
    "generator": (lambda: topk(generator=3), TypeError, ("generator", "torch.Generator", "int")),
    "generator of a sampled estimator": (
        lambda: aimle.SFE(aimle.TopK(2), generator=3),
        TypeError,
        ("SFE", "generator", "torch.Generator", "int"),
    ),
    "another kind of target": (
        lambda: setattr(topk(), "target", aimle.FixedTarget(2.0)),
        TypeError,
        ("AIMLE", "target", "another AdaptiveTarget", "FixedTarget(lambda_=2.0)"),
    ),
    "momentum too late": (
        lambda: setattr(
            topk(target=aimle.AdaptiveTarget.paper()),
            "target",
            aimle.AdaptiveTarget.paper(momentum=0.5),
        ),
        ValueError,
        ("target without momentum", "momentum=0.5"),
    ),
    "projection": (
        lambda: aimle.Identity(aimle.TopK(3), projection="max"),
        ValueError,
        ("projection", "'std'", "'mean'", "'norm'", "'max'"),
    ),
    "negative lambda": (
        lambda: aimle.FixedTarget(-1.0),
        ValueError,
        ("FixedTarget", "lambda_", ">= 0", "-1.0"),
    ),
    "nan lambda": (lambda: aimle.FixedTarget(nan), ValueError, ("lambda_", "finite", "nan")),
    "negative lambda of DBB": (
        lambda: aimle.DBB(aimle.TopK(3), -2.0),
        ValueError,
        ("lambda_", ">= 0", "-2.0"),
    ),
    "negative step": (
        lambda: aimle.AdaptiveTarget(step=-1e-3),
        ValueError,
        ("AdaptiveTarget", "step", ">= 0", "-0.001"),
    ),
    "negative target norm": (
        lambda: aimle.AdaptiveTarget(target_norm=-1),
        ValueError,
        ("target_norm", ">= 0", "-1"),
    ),
    "decay of one": (
        lambda: aimle.AdaptiveTarget(decay=1.0),
        ValueError,
        ("decay", "[0, 1)", "1.0"),
    ),
    "factor of one": (
        lambda: aimle.AdaptiveTarget(factor=1.0),
        ValueError,
        ("factor", "> 1", "1.0"),
    ),
    "infinite factor": (
        lambda: aimle.AdaptiveTarget(factor=inf),
        ValueError,
        ("factor", "finite", "inf"),
    ),
    "momentum of one": (
        lambda: aimle.AdaptiveTarget(momentum=1.0),
        ValueError,
        ("momentum", "[0, 1)", "1.0"),
    ),
    "scope": (
        lambda: aimle.AdaptiveTarget(scope="row"),
        ValueError,
        ("scope", "example, sample, batch", "'row'"),
    ),
    "scale": (
        lambda: aimle.AdaptiveTarget(scale="sigma"),
        ValueError,
        ("scale", "theta, noise", "'sigma'"),
    ),
    "rule": (
        lambda: aimle.AdaptiveTarget(rule="pid"),
        ValueError,
        ("rule", "additive, multiplicative", "'pid'"),
    ),
    "negative alpha": (
        lambda: aimle.AdaptiveTarget(-0.1),
        ValueError,
        ("initial_alpha", "[1e-06, 16]", "-0.1"),
    ),
    "no upper bound to measure with": (
        lambda: aimle.AdaptiveTarget(alpha_range=(1.0, inf)),
        ValueError,
        ("alpha_range", "finite upper bound", "target_norm"),
    ),
    "momentum of a measured count": (
        lambda: aimle.AdaptiveTarget(momentum=0.5),
        ValueError,
        ("momentum", "target_norm", "0.5"),
    ),
    "a given count in place of a measured one": (
        lambda: setattr(
            topk(target=aimle.AdaptiveTarget()), "target", aimle.AdaptiveTarget(target_norm=2.0)
        ),
        ValueError,
        ("target_norm is None", "make a new layer"),
    ),
    "nan alpha": (lambda: aimle.AdaptiveTarget(nan), ValueError, ("initial_alpha", "nan")),
    "alpha out of its range": (
        lambda: aimle.AdaptiveTarget(3.0, alpha_range=(1.0, 2.0)),
        ValueError,
        ("initial_alpha", "[1, 2]", "3.0"),
    ),
    "range the wrong way": (
        lambda: aimle.AdaptiveTarget(alpha_range=(2, 1)),
        ValueError,
        ("alpha_range", "low <= high", "(2, 1)"),
    ),
    "range of nothing": (
        lambda: aimle.AdaptiveTarget(alpha_range=(0.0, 0.0)),
        ValueError,
        ("alpha_range", "high > 0", "(0.0, 0.0)"),
    ),
    "range not a pair": (
        lambda: aimle.AdaptiveTarget(alpha_range=5.0),
        ValueError,
        ("alpha_range", "(low, high)", "5.0"),
    ),
    "range of words": (
        lambda: aimle.AdaptiveTarget(alpha_range=("a", "b")),
        ValueError,
        ("alpha_range", "low <= high", "('a', 'b')"),
    ),
    "range with zero for factors": (
        lambda: aimle.AdaptiveTarget(rule="multiplicative", alpha_range=(0.0, 1.0)),
        ValueError,
        ("alpha_range", "low > 0", "multiplicative"),
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_bad_setting_is_refused(name: str):
    call, error, words = SETTINGS[name]
    with pytest.raises(error) as caught:
        call()
    for word in ("[aimle", *words):
        assert word in str(caught.value), (word, str(caught.value))
