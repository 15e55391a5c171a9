"""A layer prepares the settings of its op once, and again when one of them changes."""

import copy
import pickle
from collections.abc import Callable

import pytest
import torch

import aimle

KEY = torch.tensor([1, 2])
THETA = torch.linspace(-1, 1, 12).reshape(2, 6)


def settings_given(layer: aimle.PerturbedMap, monkeypatch: pytest.MonkeyPatch) -> list:
    """What the op gets in a call: its arguments after theta and the key, but the state."""
    seen = []
    op = aimle.perturbed_map._perturbed_map

    def watching(*arguments):
        seen.extend(arguments[10:])
        return op(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(aimle.perturbed_map, "_perturbed_map", watching)
        layer(THETA, key=KEY)
    return seen


def test_settings_are_prepared_once(monkeypatch: pytest.MonkeyPatch):
    calls = []
    prepare = aimle.PerturbedMap._settings
    monkeypatch.setattr(
        aimle.PerturbedMap, "_settings", lambda self, noisy: calls.append(1) or prepare(self, noisy)
    )
    layer = aimle.AIMLE(aimle.TopK(2))
    for step in range(3):
        layer.temperature = 1.0 + step  # an argument of its own
        layer(THETA)
    assert len(calls) == 1
    layer.nb_samples = 2
    for _ in range(3):
        assert layer(THETA).shape == (2, 2, 6)
    assert len(calls) == 2


CHANGES: dict[str, Callable[[aimle.PerturbedMap], object]] = {
    "solver": lambda layer: setattr(layer, "solver", aimle.TopK(3)),
    "nb_samples": lambda layer: setattr(layer, "nb_samples", 3),
    "sense": lambda layer: setattr(layer, "sense", "min"),
    "output": lambda layer: setattr(layer, "output", "mean"),
    "difference": lambda layer: setattr(layer, "difference", "forward"),
    "temperature": lambda layer: setattr(layer, "temperature", 0.5),
    "theta_noise_temperature": lambda layer: setattr(layer, "theta_noise_temperature", 0.5),
    "target_noise_temperature": lambda layer: setattr(layer, "target_noise_temperature", 0.5),
    "target": lambda layer: setattr(layer, "target", aimle.AdaptiveTarget(decay=0.5)),
    "eval": lambda layer: layer.eval(),
    "eval with noise": lambda layer: setattr(layer.eval(), "noise_in_eval", True),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_setting_holds_from_the_next_call(change: str, monkeypatch: pytest.MonkeyPatch):
    used, fresh = aimle.AIMLE(aimle.TopK(2)), aimle.AIMLE(aimle.TopK(2))
    before = settings_given(used, monkeypatch)
    for layer in (used, fresh):
        CHANGES[change](layer)
    after = settings_given(used, monkeypatch)
    assert after == settings_given(fresh, monkeypatch) != before


def test_copies_and_files_have_settings_of_their_own():
    layer = aimle.AIMLE(aimle.TopK(2))
    layer(THETA, key=KEY)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        other.nb_samples = 3
        assert other(THETA, key=KEY).shape == (2, 3, 6)
    assert layer(THETA, key=KEY).shape == (2, 1, 6)


def test_settings_change_in_compiled_code():
    layer = aimle.AIMLE(aimle.TopK(2))
    layer(THETA)

    @torch.compile(backend="eager", fullgraph=True)
    def call(theta: torch.Tensor, temperature: float) -> torch.Tensor:
        layer.temperature = temperature
        return layer(theta, key=KEY)

    for temperature in (0.5, 3.0):
        expected = aimle.AIMLE(aimle.TopK(2), temperature=temperature)(THETA, key=KEY)
        assert torch.equal(call(THETA, temperature), expected)
        assert torch.equal(layer(THETA, key=KEY), expected)


def test_compiled_code_follows_settings():
    layer = aimle.AIMLE(aimle.TopK(2))
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    for samples in (1, 3):
        layer.nb_samples = samples
        assert torch.equal(compiled(THETA, key=KEY), layer(THETA, key=KEY))


def shortest(costs: torch.Tensor) -> torch.Tensor:
    """A callable: one of n, the cheapest."""
    return torch.nn.functional.one_hot(costs.argmin(-1), costs.shape[-1]).to(costs)


COSTS = {
    "native": (aimle.GridPath(), {}),
    "graph": (aimle.GraphPath(((0, 1), (1, 2), (0, 2)), source=0, target=2), {}),
    "callable": (shortest, {"sense": "min"}),
    "declared": (aimle.per_instance(shortest, sense="min", workers=0), {}),
}


@pytest.mark.parametrize("name", COSTS)
def test_costs_take_long_forward_steps(name: str):
    solver, settings = COSTS[name]
    layer = aimle.AIMLE(solver, **settings)
    assert (layer.difference, layer.alpha.item()) == ("forward", 16.0)
    assert layer.target == aimle.AdaptiveTarget()
    assert "alpha_max=16.0" in layer._target_text
    layer.target = aimle.AdaptiveTarget(decay=0.8)
    assert "alpha_max=16.0" in layer._target_text
    layer.target = aimle.AdaptiveTarget(alpha_range=(0.5, 2.0))
    assert "alpha_max=2.0" in layer._target_text
    central = aimle.AIMLE(solver, symmetric_perturbation=True, **settings)
    assert (central.difference, central.alpha.item()) == ("central", 4.0)
    assert aimle.AIMLE(solver, alpha_range=(0.5, 8.0), **settings).alpha == 8
    assert aimle.AIMLE(solver, initial_alpha=16.0, **settings).alpha == 16
    with pytest.raises(ValueError, match=r"initial_alpha within alpha_range \[1e-06, 4\]"):
        aimle.AIMLE(solver, initial_alpha=16.0, symmetric_perturbation=True, **settings)


def test_scores_take_short_steps():
    for solver, settings in [
        (aimle.TopK(2), {}),
        (aimle.TopK(2), {"sense": "min"}),  # the same as with -theta
        (aimle.TopK(2), {"symmetric_perturbation": False}),
        (shortest, {}),
    ]:
        layer = aimle.AIMLE(solver, **settings)
        assert layer.alpha == 4
        assert (layer.difference == "forward") == ("symmetric_perturbation" in settings)
