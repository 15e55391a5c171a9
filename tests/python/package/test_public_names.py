"""The public interface: names, help, signatures, representations, accepted number types."""

import ast
import dataclasses
import importlib
import inspect
import subprocess
import sys
import typing
from pathlib import Path

import numpy as np
import pytest
import torch

import aimle

LAYERS = [
    cls
    for cls in vars(aimle).values()
    if inspect.isclass(cls) and issubclass(cls, torch.nn.Module) and cls is not aimle.PerturbedMap
]


def test_completion_offers_public_names_alone():
    assert [name for name in dir(aimle) if not name.startswith("__")] == sorted(aimle.__all__)
    assert all(getattr(aimle, name) is not None for name in aimle.__all__)
    with pytest.raises(AttributeError, match="'gumbel'"):
        _ = aimle.gumbel


def test_compat_is_there_without_an_import_of_its_own():
    environment = {"PYTHONPATH": str(Path(aimle.__file__).parents[1])}
    code = "import aimle; assert callable(aimle.compat.imle) and callable(aimle.compat.aimle)"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


@pytest.mark.parametrize("name", aimle.compat.__all__)
def test_compat_offers_its_names_in_one_place_and_in_the_authors(name: str):
    value = getattr(aimle.compat, name)
    assert getattr(importlib.import_module(value.__module__), name) is value
    assert value.__module__.startswith("aimle.compat.")
    assert value.__doc__


@pytest.mark.parametrize(
    "name", [name for name in aimle.__all__ if name not in ("compat", "exact")]
)
def test_everything_has_help(name: str):
    value = getattr(aimle, name)
    assert inspect.getdoc(value)
    if inspect.isclass(value):
        methods = {n: m for n, m in vars(value).items() if inspect.isfunction(m)}
        assert [n for n in methods if n[0] != "_" and not inspect.getdoc(getattr(value, n))] == []


@pytest.mark.parametrize("cls", LAYERS, ids=lambda cls: cls.__name__)
def test_no_layer_derives_from_another(cls: type):
    assert [base.__name__ for base in cls.__mro__[1:] if base in LAYERS] == []


@pytest.mark.parametrize("cls", LAYERS, ids=lambda cls: cls.__name__)
def test_signatures_spell_out_every_setting(cls: type):
    parameters = inspect.signature(cls).parameters.values()
    assert [p.name for p in parameters if p.kind is p.VAR_KEYWORD] == []
    assert [p.name for p in parameters if p.annotation is p.empty] == []
    solver = (
        aimle.Argmax()
        if cls in (aimle.ReinMax, aimle.GumbelRao, aimle.GumbelSoftmax)
        else aimle.TopK(3)
    )
    with pytest.raises(TypeError, match=r"unexpected keyword argument .n_samples."):
        cls(solver, n_samples=3)


def test_signatures_show_the_default_of_every_setting():
    def shown(cls: type) -> dict[str, object]:
        parameters = inspect.signature(cls).parameters.values()
        return {p.name: p.default for p in parameters if p.name != "solver"}

    samples = {"nb_samples": 1, "output": "samples", "noise_in_eval": False, "generator": None}
    temperatures = {"temperature": None, "theta_noise_temperature": None}
    callables = {"instance_dims": None, "fractional": None, "repeat_arguments": False}
    noise = {**samples, **callables, **temperatures, "noise": "auto", "sense": None}
    step = {**noise, "target_noise_temperature": None, "target": None, "process_group": "auto"}
    target = {each.name for each in dataclasses.fields(aimle.AdaptiveTarget) if each.name[0] != "_"}
    adaptive = {**step, **dict.fromkeys(target), "symmetric_perturbation": None}
    assert shown(aimle.AIMLE) == adaptive
    assert shown(aimle.CovarianceAIMLE) == {**adaptive, "nb_samples": 2, "share": 0.5}
    assert shown(aimle.IMLE) == {**step, "lambda_": None, "symmetric_perturbation": False}
    assert shown(aimle.STE) == noise
    own = {"projection": "std", "noise": None, "output": "mean"}
    assert shown(aimle.Identity) == {**noise, **own}
    own = {"order": "trapezoid", "max_weight": 20.0}
    assert shown(aimle.Thresholds) == {**noise, **own}
    assert shown(aimle.ReinMax) == samples
    assert shown(aimle.SFE) == {**samples, "baseline": "none"}
    assert shown(aimle.L2X) == {**samples, "temperature": 1.0}
    assert shown(aimle.SST) == {**samples, "temperature": 1.0, "hard": False}


@pytest.mark.parametrize("cls", LAYERS, ids=lambda cls: cls.__name__)
def test_the_defaults_shown_are_those_used(cls: type):
    solver = (
        aimle.Argmax()
        if cls in (aimle.ReinMax, aimle.GumbelRao, aimle.GumbelSoftmax)
        else aimle.TopK(3)
    )
    parameters = inspect.signature(cls).parameters.values()
    given = {p.name: p.default for p in parameters if p.name != "solver"}
    assert repr(cls(solver, **given)) == repr(cls(solver))


def test_the_settings_of_a_subclass_are_those_it_was_given():
    class Mine(aimle.STE):
        def __init__(self, solver: aimle.Solver, **settings: "Unpack[Missing]") -> None:  # noqa: F821
            super().__init__(solver, **settings)
            self.given = settings

    assert Mine(aimle.TopK(3), nb_samples=2).given == {"nb_samples": 2}
    with pytest.raises(TypeError, match=r"\[aimle.Mine\] .*; did you mean 'nb_samples'"):
        Mine(aimle.TopK(3), nb_sample=2)


@pytest.mark.parametrize("cls", LAYERS, ids=lambda cls: cls.__name__)
def test_the_class_of_a_solver_is_not_a_solver(cls: type):
    with pytest.raises(TypeError, match=rf"\[aimle.{cls.__name__}\] .* the class TopK itself"):
        cls(aimle.TopK)


def test_names_of_typing_are_no_newer_than_python_3_10():
    since = """LiteralString NoDefault Never NotRequired ReadOnly Required Self TypeAliasType TypeIs
        TypeVarTuple Unpack assert_never assert_type clear_overloads dataclass_transform
        get_overloads get_protocol_members is_protocol override reveal_type"""
    modules = sorted(Path(aimle.__file__).parent.rglob("*.py"))
    assert len(modules) > 40
    imported = [
        (module.name, alias.name)
        for module in modules
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "typing"
        for alias in node.names
    ]
    assert [each for each in imported if each[1] in since.split()] == []


@pytest.mark.skipif(not hasattr(typing, "get_overloads"), reason="Python 3.11 keeps overloads")
def test_type_checkers_know_what_solve_returns():
    without, with_status = (typing.get_type_hints(f) for f in typing.get_overloads(aimle.solve))
    assert without["return"] is torch.Tensor
    assert with_status["return"] == tuple[torch.Tensor, torch.Tensor]


def test_the_step_of_imle_is_an_argument():
    assert aimle.IMLE(aimle.TopK(3), 10.0).target == aimle.FixedTarget(10.0)
    assert aimle.IMLE(aimle.TopK(3), lambda_=10.0).target == aimle.FixedTarget(10.0)
    assert aimle.IMLE(aimle.TopK(3)).target == aimle.FixedTarget(1.0)
    assert aimle.DBB(aimle.TopK(3), 10.0).target == aimle.FixedTarget(10.0)
    with pytest.raises(TypeError, match="lambda_ or target but got both"):
        aimle.IMLE(aimle.TopK(3), 1.0, target=aimle.FixedTarget(1.0))
    with pytest.raises(ValueError, match=r"lambda_ finite and >= 0 but got -1"):
        aimle.IMLE(aimle.TopK(3), -1)


def test_numbers_of_numpy_are_numbers():
    theta = torch.linspace(-1, 1, 8).reshape(1, 8)
    key = torch.tensor([1, 2])
    plain = aimle.AIMLE(
        *(aimle.TopK(3),), noise=aimle.SumOfGamma(3, 5), nb_samples=4, theta_noise_temperature=0.5
    )
    numpy = aimle.AIMLE(
        aimle.TopK(np.int64(3)),
        noise=aimle.SumOfGamma(np.int32(3), np.uint8(5)),
        nb_samples=np.int64(4),
        theta_noise_temperature=np.float32(0.5),
        target=aimle.AdaptiveTarget(np.float64(1), step=np.float32(0.001)),
    )
    assert torch.equal(numpy(theta, key=key), plain(theta, key=key))
    assert numpy.solver == plain.solver
    assert type(numpy.solver.k) is int
    assert torch.equal(plain(theta, key=key, k=np.int64(2)), plain(theta, key=key, k=2))
    assert aimle.TopK(3)(theta, k=np.int64(2)).sum() == 2
    assert aimle.SpanningTree(np.int64(4)) == aimle.SpanningTree(4)
    assert aimle.GridPath(source=tuple(np.array([0, 1]))) == aimle.GridPath(source=(0, 1))
    assert aimle.IMLE(aimle.TopK(3), np.float32(2)).target.lambda_ == 2
    assert aimle.GumbelSoftmax(aimle.Argmax(), temperature=np.float32(0.5)).temperature == 0.5
    for bad in (np.float64(3), np.bool_(True), True, 3.0, "3"):
        with pytest.raises(TypeError, match="expected k to be an int"):
            aimle.TopK(bad)
    for bad in (np.float32("nan"), np.inf, True, "1", torch.tensor(1.0)):
        with pytest.raises(ValueError, match="theta_noise_temperature"):
            aimle.AIMLE(aimle.TopK(3), theta_noise_temperature=bad)


def test_a_layer_shows_what_is_special_about_it():
    assert repr(aimle.AdaptiveTarget()) == "AdaptiveTarget()"
    target = aimle.AdaptiveTarget.reference(step=0.1)
    assert repr(target) == "AdaptiveTarget.reference(step=0.1)"
    shown = repr(aimle.AIMLE(aimle.TopK(3), target=target, theta_noise_temperature=2.0))
    assert all(part in shown for part in ("TopK(k=3)", "Gumbel()", repr(target), "temperature=2"))
    assert "target_noise_temperature" not in shown
    both = aimle.AIMLE(aimle.TopK(3), target_noise_temperature=0.5, noise_in_eval=True)
    assert "target_noise_temperature=0.5, noise_in_eval=True" in repr(both)
    assert "temperature" not in repr(aimle.DBB(aimle.TopK(3)))
