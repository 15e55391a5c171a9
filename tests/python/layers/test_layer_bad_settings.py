"""Invalid settings of layers: the exception and the text of its message."""

from collections.abc import Callable

import numpy as np
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
    "solver a class": (lambda: topk(solver=aimle.TopK), TypeError, ("solver", "the class TopK")),
    "solver a class of layers": (
        lambda: topk(solver=aimle.IMLE),
        TypeError,
        ("solver", "the class IMLE itself"),
    ),
    "solver a layer": (
        lambda: topk(solver=aimle.DPO(aimle.TopK(2))),
        TypeError,
        ("solver", "the layer DPO", "layer.solver"),
    ),
    "function of compat a class": (
        lambda: aimle.compat.imle(aimle.TopK)(torch.zeros(2, 4)),
        TypeError,
        ("function", "the class TopK itself"),
    ),
    "function of compat a layer": (
        lambda: aimle.compat.aimle(aimle.AIMLE(aimle.TopK(2)))(torch.zeros(2, 4)),
        TypeError,
        ("function", "the layer AIMLE"),
    ),
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


def made(name: str, **settings: object) -> object:
    """The estimator of this name, for a solver to which it applies."""
    one_of_n = name in ("gumbel_softmax", "gumbel_rao", "reinmax")
    return aimle.estimator(name, aimle.Argmax() if one_of_n else aimle.TopK(2), **settings)


FLAGS: dict[str, Callable[[object], object]] = {
    **{
        f"noise_in_eval of {name}": lambda value, name=name: made(name, noise_in_eval=value)
        for name in aimle.estimators()
        if name != "dbb"
    },
    **{
        f"symmetric_perturbation of {name}": (
            lambda value, name=name: made(name, symmetric_perturbation=value)
        )
        for name in ("aimle", "aimle_noise", "aimle_covariance", "imle")
    },
    **{
        f"hard of {name}": lambda value, name=name: made(name, hard=value)
        for name in ("gumbel_softmax", "softsub", "sst")
    },
    "fractional": lambda value: aimle.AIMLE(torch.sign, fractional=value),
    "fractional of DPO": lambda value: aimle.DPO(torch.sign, fractional=value),
    "repeat_arguments": lambda value: aimle.AIMLE(torch.sign, repeat_arguments=value),
    "fractional of per_instance": lambda value: aimle.per_instance(abs, fractional=value),
    "fixed_size of per_instance": lambda value: aimle.per_instance(abs, fixed_size=value),
}


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("value", ["no", 2, 0.0, nan, [True], torch.tensor(1.0)])
def test_a_flag_must_be_a_bool(name: str, value: object):
    """Any other value would count as True."""
    setting = name.partition(" of ")[0]
    with pytest.raises(TypeError, match=rf"^\[aimle.*expected {setting} to be True or False but"):
        FLAGS[name](value)
    FLAGS[name](np.True_)


@pytest.mark.parametrize("value", [nan, inf, -1.0, 1.5, "1", None, True])
def test_a_share_must_be_a_share(value: object):
    with pytest.raises(ValueError, match=r"expected 0 <= share <= 1 but got"):
        aimle.CovarianceAIMLE(aimle.TopK(2), share=value)


@pytest.mark.parametrize("name", aimle.estimators())
def test_a_generator_must_be_one(name: str):
    if name == "dbb":
        pytest.skip("takes none")
    with pytest.raises(TypeError, match=r"generator to be a torch\.Generator or None but got int"):
        made(name, generator=3)


@pytest.mark.parametrize("name", aimle.estimators())
def test_a_number_of_samples_must_fit_64_bits(name: str):
    if name == "dbb":
        pytest.skip("takes none")
    with pytest.raises(ValueError, match="<= nb_samples <= 9223372036854775807 but got"):
        made(name, nb_samples=10**30)


def test_a_large_temperature_may_be_an_int():
    assert aimle.SoftSub(aimle.TopK(2), temperature=10**20).temperature == 1e20


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"step": nan}, TypeError, "step to be an int but got float"),
        ({"step": -1}, ValueError, "step >= 0 but got step=-1"),
        ({"every": 0}, ValueError, "every >= 1 but got every=0"),
        ({"every": "1"}, TypeError, "every to be an int but got str"),
        ({"start": 0.0}, ValueError, "start > 0 but got 0.0"),
        ({"floor": nan}, ValueError, "floor > 0 but got nan"),
        ({"rate": -1.0}, ValueError, "rate finite and >= 0 but got -1.0"),
        ({"rate": "fast"}, ValueError, "rate finite and >= 0 but got 'fast'"),
    ],
)
def test_settings_of_anneal_are_checked(settings: dict, error: type[Exception], message: str):
    with pytest.raises(error, match=rf"^\[aimle.anneal\] expected .*{message}"):
        aimle.anneal(**{"step": 10, **settings})


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"shape": 3.5}, TypeError, "shape to be a sequence of sizes but got 3.5"),
        ({"shape": "38"}, TypeError, "shape to be a sequence of sizes but got '38'"),
        ({"nb_samples": 2.5}, TypeError, "nb_samples to be an int but got float"),
        ({"nb_samples": 0}, ValueError, "nb_samples >= 1 but got nb_samples=0"),
        ({"nb_samples": True}, TypeError, "nb_samples to be an int but got bool"),
        ({"temperature": nan}, ValueError, "a finite temperature >= 0 but got nan"),
        ({"temperature": "1"}, ValueError, "a finite temperature >= 0 but got '1'"),
    ],
)
def test_settings_of_sample_noise_are_checked(settings: dict, error: type[Exception], message: str):
    arguments = {"noise": "gumbel", "shape": (3, 8), "key": torch.tensor([1, 2]), **settings}
    with pytest.raises(error, match=rf"^\[aimle.sample_noise\] expected .*{message}"):
        aimle.sample_noise(**arguments)


@pytest.mark.parametrize("value", ["1", None, [[1], [1, 2]]])
def test_a_knapsack_needs_numbers(value: object):
    with pytest.raises(TypeError, match=r"Knapsack.* weights to be a number, or numbers,"):
        aimle.Knapsack(value, 3)
    with pytest.raises(TypeError, match=r"Knapsack.* capacity to be a number, or numbers,"):
        aimle.Knapsack([1, 2, 3], value)


@pytest.mark.parametrize("value", [True, nan, "1", 0.0])
def test_a_largest_weight_must_be_positive(value: object):
    with pytest.raises(ValueError, match="expected max_weight > 0 but got"):
        aimle.Thresholds(aimle.TopK(2), max_weight=value)


ASSIGNED = {
    "nb_samples": (0, 2.5, "3", None, nan),
    "output": ("median", None, 0),
    "noise_in_eval": ("no", 1, None),
    "generator": (3, "cpu"),
    "solver": (3, "topk", None, aimle.TopK, aimle.AIMLE(aimle.TopK(2))),
    "temperature": (-1.0, nan, inf, "1", None),
    "theta_noise_temperature": (-1.0, nan, "1", None),
    "target_noise_temperature": (-1.0, nan, "1"),
    "sense": ("up", None, 1),
    "share": (2.0, nan, "1", None),
    "baseline": ("mean", None),
    "variance_reduction": ("some", None),
    "hard": ("no", 1),
    "draws": (0, 2.5),
}


@pytest.mark.parametrize("name", aimle.estimators())
def test_a_bad_value_cannot_be_assigned(name: str):
    """It is refused at once, by name, and the layer keeps its value."""
    layer = made(name)
    for setting in ASSIGNED.keys() & set(dir(layer)):
        before = getattr(layer, setting)
        for value in ASSIGNED[setting]:
            with pytest.raises((TypeError, ValueError), match=rf"^\[aimle.*{setting}"):
                setattr(layer, setting, value)
        assert getattr(layer, setting) is before or getattr(layer, setting) == before
