"""The parts of aimle.compat: noise, solvers, targets, and bad input."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
import torch
from authors_procedure import RecordedNoise
from torch import Size, Tensor

from aimle.compat.aimle import aimle
from aimle.compat.imle import imle
from aimle.compat.noise import (
    BaseNoiseDistribution,
    GumbelNoiseDistribution,
    SumOfGammaNoiseDistribution,
)
from aimle.compat.solvers import mathias_select_k, select_k
from aimle.compat.ste import ste
from aimle.compat.target import (
    AdaptiveTargetDistribution,
    TargetDistribution,
)

# ---- Noise ---------------------------------------------------------------------------------------


def test_noise_classes_sample_what_torch_distributions_draw():
    torch.manual_seed(1)
    drawn = GumbelNoiseDistribution(location=0.5, scale=2.0).sample(Size([4, 5]))
    torch.manual_seed(1)
    assert torch.equal(drawn, torch.distributions.Gumbel(0.5, 2.0).sample((4, 5)))

    count, k = 200_000, 5
    torch.manual_seed(1)
    drawn = SumOfGammaNoiseDistribution(k=k).sample(Size([count])).double()
    mean, variance = 0.626383 / k, 1.549768 / k
    assert abs(drawn.mean() - mean) < 5 * math.sqrt(variance / count)
    fourth = ((drawn - drawn.mean()) ** 4).mean()
    assert abs(drawn.var() - variance) < 5 * math.sqrt((fourth - variance**2) / count)


def solver_input(noise, temperature: float = 1.0, minimise: bool = False, **settings) -> Tensor:
    """What the solver sees for theta = 0: the noise."""
    seen = []

    def solver(rows: Tensor) -> Tensor:
        seen.append(rows.clone())
        return torch.zeros_like(rows)

    chosen = aimle(
        solver,
        noise_distribution=noise,
        theta_noise_temperature=temperature,
        _is_minimization=minimise,
        **settings,
    )
    chosen(torch.zeros(100, 200))
    return seen[0]


@pytest.mark.parametrize(
    ("noise", "mean", "variance"),
    [
        (GumbelNoiseDistribution(), 0.577216, 1.644934),
        (GumbelNoiseDistribution(scale=0.5), 0.288608, 0.411234),
        (GumbelNoiseDistribution(location=2.0), 2.577216, 1.644934),
        (SumOfGammaNoiseDistribution(k=10), 0.0626383, 0.1549768),
        (SumOfGammaNoiseDistribution(k=2.5), 0.250553, 0.619907),
        (SumOfGammaNoiseDistribution(k=10, nb_iterations=1), 0.1, 0.1),
    ],
)
@pytest.mark.parametrize("minimise", [False, True])
@pytest.mark.parametrize("reference", [False, True])
def test_the_estimators_draw_the_distribution_and_turn_it_for_costs(
    noise, mean, variance, minimise, reference
):
    torch.manual_seed(3)
    drawn = solver_input(noise, 2.0, minimise, reference=reference).double() / 2.0
    sign = -1.0 if minimise and not reference else 1.0
    assert abs(sign * drawn.mean() - mean) < 5 * math.sqrt(variance / drawn.numel())
    fourth = ((drawn - drawn.mean()) ** 4).mean()
    assert abs(drawn.var() - variance) < 5 * math.sqrt((fourth - variance**2) / drawn.numel())
    torch.manual_seed(3)
    assert torch.equal(drawn, solver_input(noise, 2.0, minimise, reference=reference).double() / 2)


def test_reference_draws_are_those_of_sample_and_a_users_noise_is_always_asked():
    class Shifted(GumbelNoiseDistribution):
        def sample(self, shape: Size) -> Tensor:
            return super().sample(shape) + 100.0

    torch.manual_seed(4)
    expected = GumbelNoiseDistribution().sample(Size([100, 1, 200])).squeeze(1)
    torch.manual_seed(4)
    assert torch.equal(solver_input(GumbelNoiseDistribution(), reference=True), expected)
    for minimise in (False, True):
        assert solver_input(Shifted(), minimise=minimise).min() > 90


def test_backward_repeats_the_draw_of_forward():
    for noise in (GumbelNoiseDistribution(), SumOfGammaNoiseDistribution(5), RecordedNoise(0)):
        for factor in (1.0, 0.5):
            seen = []

            def solver(rows: Tensor, seen: list = seen) -> Tensor:
                seen.append(rows.clone())
                return select_k(rows, 2)

            target = TargetDistribution(alpha=factor, beta=0.0)
            theta = torch.zeros(3, 5, requires_grad=True)
            chosen = aimle(solver, target, noise, 2, target_noise_temperature=3.0)
            chosen(theta).sum().backward()
            torch.testing.assert_close(seen[1], 3 * seen[0])
            torch.testing.assert_close(seen[2], 3 * seen[0])


# ---- Solvers -------------------------------------------------------------------------------------


def test_exactly_k_are_chosen_also_among_ties(device):
    logits = torch.tensor([[1.0, 0.0, 0.0, 0.0], [2.0, 2.0, 2.0, 2.0]], device=device)
    for select in (select_k, mathias_select_k):
        assert select(logits, 2).tolist() == [[1, 1, 0, 0], [1, 1, 0, 0]]
    assert mathias_select_k(logits, 2, reference=True).tolist() == [[1, 1, 1, 1]] * 2
    assert mathias_select_k(logits, 1, reference=True).tolist() == [[1, 0, 0, 0], [1, 1, 1, 1]]


def test_top_k_agrees_with_the_oracle_and_takes_minus_infinity_last(device):
    random = np.random.default_rng(0)
    for case in range(200):
        n = int(random.integers(1, 40))
        k = int(random.integers(0, n + 1))
        logits = random.normal(size=(3, n)).astype(np.float32)
        logits[random.random(size=logits.shape) < 0.3] = -np.inf
        expected = np.stack([oracles.topk(row, k) for row in logits]) if n else logits
        for select in (select_k, mathias_select_k):
            z = select(torch.from_numpy(logits).to(device), k).cpu().numpy()
            np.testing.assert_array_equal(z, (expected > 0), err_msg=f"case {case} k={k} {logits}")


# ---- Targets -------------------------------------------------------------------------------------


def test_params_and_process_of_the_fixed_target():
    target = TargetDistribution(alpha=2.0, beta=3.0, do_gradient_scaling=True)
    theta, dy = torch.tensor([1.0, 2.0]), torch.tensor([1.0, -1.0])
    assert target.params(theta, dy).tolist() == [-1.0, 7.0]
    assert target.params(theta, dy, _is_minimization=True).tolist() == [5.0, 1.0]
    assert target.params(theta, None).tolist() == [2.0, 4.0]
    assert target.params(theta, dy, alpha=1.0, beta=0.0).tolist() == [1.0, 2.0]
    assert target.process(theta, dy, torch.tensor([6.0])).tolist() == [2.0]
    with pytest.raises(NotImplementedError, match=r"works inside aimle"):
        AdaptiveTargetDistribution().params(theta, dy)


# ---- Bad input -----------------------------------------------------------------------------------


def _select(rows: Tensor) -> Tensor:
    return select_k(rows, 2)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"nb_samples": 0}, ValueError, "nb_samples >= 1"),
        ({"nb_samples": 1.5}, TypeError, "nb_samples to be an int"),
        ({"nb_marginal_samples": 0}, ValueError, "nb_marginal_samples >= 1"),
        ({"theta_noise_temperature": -1.0}, ValueError, "theta_noise_temperature"),
        ({"target_noise_temperature": math.nan}, ValueError, "target_noise_temperature"),
        ({"target_distribution": 3.0}, TypeError, "target_distribution"),
        ({"noise_distribution": "gumbel"}, TypeError, "noise_distribution"),
    ],
)
@pytest.mark.parametrize("estimator", [aimle, imle])
def test_bad_settings_are_refused_by_name(estimator, settings, error, message):
    with pytest.raises(error, match=message):
        estimator(_select, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"initial_beta": -1.0},
        {"initial_grad_norm": math.nan},
        {"beta_update_step": -1e-3},
        {"beta_update_momentum": 1.0},
        {"grad_norm_decay_rate": 1.5},
        {"target_norm": -1.0},
    ],
)
def test_bad_adaptive_targets_are_refused(settings):
    with pytest.raises(ValueError, match="expected"):
        AdaptiveTargetDistribution(**settings)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: aimle(_select, symmetric_perturbation=1), TypeError, "symmetric_perturbation"),
        (lambda: aimle(_select, _is_minimization="yes"), TypeError, "_is_minimization"),
        (lambda: imle(_select, reference=1), TypeError, "reference"),
        (lambda: select_k([1.0, 2.0], 1), TypeError, "logits"),
        (lambda: mathias_select_k([1.0, 2.0], 1, reference=True), TypeError, "logits"),
        (lambda: AdaptiveTargetDistribution(initial_beta="x"), ValueError, "initial_beta"),
        (lambda: AdaptiveTargetDistribution(initial_beta=-1.0), ValueError, "initial_beta"),
        (
            lambda: AdaptiveTargetDistribution(initial_grad_norm=None),
            ValueError,
            "initial_grad_norm",
        ),
        (lambda: AdaptiveTargetDistribution(beta_update_step="x"), ValueError, "beta_update_step"),
    ],
)
def test_wrong_arguments_are_named(call, error: type[Exception], message: str):
    with pytest.raises(error, match=rf"^\[aimle\.compat.*\] expected {message}"):
        call()


def test_messages_name_the_public_module():
    chosen = aimle(_select)
    wrong = [
        lambda: aimle(_select, theta_noise_temperature=-1.0),
        lambda: imle(_select, target_noise_temperature=math.nan),
        lambda: ste(_select, noise_temperature="hot"),
        lambda: aimle(_select, nb_samples=0),
        lambda: chosen([[1.0, 2.0]]),
        lambda: chosen(torch.randn(5)),
        lambda: aimle(_select, noise_distribution=_WrongShape())(torch.randn(2, 5)),
        lambda: setattr(chosen.layer, "nb_samples", 0),
        lambda: setattr(chosen.layer, "noise", None),
        lambda: setattr(chosen.layer, "nb_sample", 2),
    ]
    for call in wrong:
        with pytest.raises((TypeError, ValueError, AttributeError), match=r"^\[aimle\.compat\] "):
            call()


def test_bad_calls_are_refused():
    chosen = aimle(_select)
    with pytest.raises(ValueError, match=r"theta \[batch, \*instance\]"):
        chosen(torch.randn(5))
    with pytest.raises(TypeError, match="floating-point"):
        chosen(torch.ones(2, 5, dtype=torch.int64))
    with pytest.raises(TypeError, match="theta to be a tensor"):
        chosen([[1.0, 2.0]])
    with pytest.raises(TypeError, match="callable"):
        aimle(3)
    with pytest.raises(ValueError, match="shape"):
        aimle(lambda x: x[:, :1])(torch.randn(2, 5))
    with pytest.raises(TypeError, match="return a tensor"):
        aimle(lambda x: x.tolist())(torch.randn(2, 5))
    with pytest.raises(RuntimeError, match="no answer"):
        aimle(_raise)(torch.randn(2, 5))
    with pytest.raises(ValueError, match=r"noise of shape \(2, 1, 5\)"):
        aimle(_select, noise_distribution=_WrongShape())(torch.randn(2, 5))
    with pytest.raises(ValueError, match="expected a state"):
        AdaptiveTargetDistribution().load_state_dict({"beta": torch.tensor(1.0)})


def _raise(rows: Tensor) -> Tensor:
    raise RuntimeError("no answer")


class _WrongShape(BaseNoiseDistribution):
    def sample(self, shape: Size) -> Tensor:
        return torch.zeros(3)


def test_a_solver_that_fails_in_backward_leaves_the_state_alone():
    target, calls = AdaptiveTargetDistribution(initial_beta=0.5), []

    @aimle(target_distribution=target)
    def solver(rows: Tensor) -> Tensor:
        calls.append(1)
        return _raise(rows) if len(calls) > 1 else select_k(rows, 2)

    theta = torch.randn(2, 5, requires_grad=True)
    z = solver(theta)
    with pytest.raises(RuntimeError, match="no answer"):
        z.sum().backward()
    assert target.beta == 0.5
    assert target.state_dict()["updates"] == 0
