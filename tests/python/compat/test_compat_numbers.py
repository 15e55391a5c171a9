"""The numbers of aimle.compat, against the authors' procedure restated in NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from authors_procedure import ConstantNoise, Procedure, RecordedNoise, backward_of, choose
from torch import Tensor

from aimle.compat.aimle import aimle
from aimle.compat.imle import imle
from aimle.compat.solvers import mathias_select_k, select_k
from aimle.compat.target import (
    AdaptiveTargetDistribution,
    BaseTargetDistribution,
    TargetDistribution,
)


def assert_follows(
    procedure: Procedure, differentiable, noise: RecordedNoise, seed: int, steps: int, device
) -> list[float]:
    """Several passes: z, gradients and the adaptive state are those of the procedure."""
    random = np.random.default_rng(seed)
    betas = []
    for step in range(steps):
        theta = random.normal(size=(3, 7))
        dy = random.normal(size=(3 * procedure.samples * procedure.marginal, 7))
        dy *= random.uniform(0.01, 10.0, size=(len(dy), 1))
        z, gradient = backward_of(differentiable, theta, dy, device)
        expected_z = procedure.forward(theta, noise.drawn)
        expected = procedure.backward(theta, noise.drawn, dy)
        message = f"seed {seed}, step {step}, theta {theta}, dy {dy}"
        np.testing.assert_array_equal(z.cpu().numpy(), expected_z, err_msg=message)
        np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-12, err_msg=message)
        target = differentiable.layer.target_distribution
        if procedure.adaptive:
            assert target.beta == pytest.approx(procedure.beta, abs=1e-12), message
            assert float(target.grad_norm) == pytest.approx(procedure.gbar, abs=1e-12), message
            assert target.previous_beta_update == pytest.approx(procedure.last_move, abs=1e-12)
        betas.append(target.beta)
    return betas


MODES = [(s, m) for s in (1, 4) for m in (1, 4)]


# ---- The procedure -------------------------------------------------------------------------------


@pytest.mark.parametrize("costs", [False, True], ids=["max", "min"])
@pytest.mark.parametrize("central", [False, True], ids=["forward", "central"])
@pytest.mark.parametrize("momentum", [0.0, 0.6])
@pytest.mark.parametrize("reference", [False, True], ids=["mended", "reference"])
@pytest.mark.parametrize(("samples", "marginal"), MODES)
def test_adaptive_aimle_follows_the_procedure(
    device, samples, marginal, reference, momentum, central, costs
):
    seed = 1000 * samples + 100 * marginal + 10 * central + costs
    solve, function = choose(3, -1.0 if costs else 1.0)
    noise = RecordedNoise(seed, device)
    target = AdaptiveTargetDistribution(
        initial_beta=0.4,
        initial_grad_norm=0.5,
        beta_update_step=0.1,
        beta_update_momentum=momentum,
        grad_norm_decay_rate=0.5,
        target_norm=1.0,
    )
    differentiable = aimle(
        function,
        target_distribution=target,
        noise_distribution=noise,
        nb_samples=samples,
        nb_marginal_samples=marginal,
        theta_noise_temperature=0.5,
        target_noise_temperature=0.8,
        symmetric_perturbation=central,
        _is_minimization=costs,
        reference=reference,
    )
    procedure = Procedure(
        solve,
        samples,
        marginal,
        tau_theta=0.5,
        tau_target=0.8,
        central=central,
        costs=costs,
        adaptive=True,
        reference=reference,
        beta=0.4,
        gbar=0.5,
        step=0.1,
        momentum=momentum,
        decay=0.5,
        target_norm=1.0,
    )
    betas = assert_follows(procedure, differentiable, noise, seed, steps=25, device=device)
    assert min(np.diff(betas)) < 0 < max(np.diff(betas)), "beta should move both ways"


@pytest.mark.parametrize("costs", [False, True], ids=["max", "min"])
@pytest.mark.parametrize("scaling", [False, True])
@pytest.mark.parametrize("factor", [1.0, 0.0, 2.5])
@pytest.mark.parametrize("form", ["imle", "forward", "central"])
@pytest.mark.parametrize(("samples", "marginal"), MODES)
def test_fixed_targets_follow_the_procedure(
    device, samples, marginal, form, factor, scaling, costs
):
    seed = 100 * samples + 10 * marginal + costs
    solve, function = choose(3, -1.0 if costs else 1.0)
    noise = RecordedNoise(seed, device)
    settings = {
        "target_distribution": TargetDistribution(factor, 0.7, do_gradient_scaling=scaling),
        "noise_distribution": noise,
        "nb_samples": samples,
        "nb_marginal_samples": marginal,
        "theta_noise_temperature": 1.0,
        "target_noise_temperature": 0.6,
        "_is_minimization": costs,
    }
    if form == "imle":
        differentiable = imle(function, **settings)
    else:
        differentiable = aimle(function, **settings, symmetric_perturbation=form == "central")
    procedure = Procedure(
        solve,
        samples,
        marginal,
        tau_target=0.6,
        central=form == "central",
        costs=costs,
        factor=factor,
        beta=0.7,
        scaling=scaling,
        reuses_solution=form == "imle",
    )
    assert_follows(procedure, differentiable, noise, seed, steps=4, device=device)


@pytest.mark.parametrize("reference", [False, True], ids=["mended", "reference"])
@pytest.mark.parametrize("factor", [0.5, 0.0])
def test_adaptive_target_with_a_factor_of_theta(device, factor, reference):
    solve, function = choose(3)
    noise = RecordedNoise(3, device)
    target = AdaptiveTargetDistribution(initial_alpha=factor, initial_beta=0.5)
    differentiable = aimle(
        function, target, noise, nb_samples=2, symmetric_perturbation=True, reference=reference
    )
    procedure = Procedure(
        solve, 2, central=True, factor=factor, beta=0.5, adaptive=True, reference=reference
    )
    assert_follows(procedure, differentiable, noise, 3, steps=5, device=device)


@pytest.mark.parametrize(("reference", "beta"), [(False, 0.5), (True, 0.5), (True, 0.0)])
def test_adaptive_target_inside_imle(device, reference, beta):
    """Where the temperatures differ the difference is not zero at lambda = 0 either."""
    solve, function = choose(3)
    noise = RecordedNoise(4, device)
    target = AdaptiveTargetDistribution(initial_beta=beta, beta_update_step=0.1)
    settings = {"nb_samples": 4, "target_noise_temperature": 0.5, "reference": reference}
    differentiable = imle(function, target, noise, **settings)
    procedure = Procedure(
        solve,
        4,
        tau_target=0.5,
        beta=beta,
        adaptive=True,
        step=0.1,
        reference=reference,
        reuses_solution=True,
    )
    assert_follows(procedure, differentiable, noise, 4, steps=4, device=device)


@pytest.mark.parametrize("samples", [1, 4, 16, 64])
def test_the_authors_gradient_is_too_large_by_the_root_of_the_samples(samples):
    """One example: the batch's ratio of norms is the example's, if all dy have one norm."""
    random = np.random.default_rng(samples)
    theta, dy = random.normal(size=(1, 9)), random.normal(size=(samples, 9))
    dy /= np.linalg.norm(dy, axis=1, keepdims=True)
    gradients = []
    for reference in (False, True):
        target = AdaptiveTargetDistribution(initial_beta=0.5)
        noise = RecordedNoise(samples)
        differentiable = aimle(
            choose(3)[1], target, noise, samples, symmetric_perturbation=True, reference=reference
        )
        gradients.append(backward_of(differentiable, theta, dy)[1])
    assert np.any(gradients[0] != 0)
    np.testing.assert_allclose(gradients[1], math.sqrt(samples) * gradients[0], rtol=1e-12)


def test_one_lambda_per_example_does_not_depend_on_the_rest_of_the_batch():
    random = np.random.default_rng(0)
    theta, dy = random.normal(size=(4, 9)), random.normal(size=(4, 9))
    dy[0] *= 1e6
    alone, together = {}, {}
    for reference in (False, True):

        def gradient(rows: slice, reference: bool = reference) -> np.ndarray:
            target = AdaptiveTargetDistribution(initial_beta=0.5)
            differentiable = aimle(
                choose(3)[1], target, symmetric_perturbation=True, reference=reference
            )
            return backward_of(differentiable, theta[rows], dy[rows])[1]

        alone[reference], together[reference] = gradient(slice(1, 4)), gradient(slice(0, 4))[1:]
    np.testing.assert_array_equal(alone[False], together[False])
    assert np.any(alone[True] != 0)
    assert np.all(together[True] == 0), "the large dy of one example starves the others"


# ---- The authors' own property -------------------------------------------------------------------


@pytest.mark.parametrize("select", [select_k, mathias_select_k])
@pytest.mark.parametrize(
    ("noisy", "samples", "batch"), [(False, 1, 1), (True, 10, 1), (True, 5, 3)]
)
def test_forward_aimle_equals_imle_under_constant_noise(select, noisy, samples, batch, device):
    """And central differs in at least one case; the rows of an example are equal."""
    random = np.random.default_rng(samples)
    central_differs = 0
    for case in range(150):
        n = int(random.integers(32, 1024))
        k = int(random.integers(1, n))
        target = TargetDistribution(*random.uniform(0, 10_000, size=2))
        settings = {
            "target_distribution": target,
            "noise_distribution": ConstantNoise(-0.01) if noisy else None,
            "nb_samples": samples,
            "theta_noise_temperature": (temperature := random.uniform(0, 100)),
            "target_noise_temperature": temperature,
        }
        solver = lambda x, k=k: select(x, k)  # noqa: E731
        theta = random.normal(size=(batch, n)).astype(np.float32)
        dy = np.repeat(random.normal(size=(1, n)), batch * samples, 0).astype(np.float32)
        z, expected = backward_of(imle(solver, **settings), theta, dy, device)
        _, forward = backward_of(aimle(solver, **settings), theta, dy, device)
        _, central = backward_of(
            aimle(solver, **settings, symmetric_perturbation=True), theta, dy, device
        )
        message = f"case {case}: n={n} k={k}"
        np.testing.assert_array_equal(forward, expected, err_msg=message)
        central_differs += not np.array_equal(central, expected)
        rows = z.reshape(batch, samples, n)
        assert torch.equal(rows, rows[:, :1].expand_as(rows)), message
        assert torch.all(z.sum(-1) == k), message
    assert central_differs > 0


# ---- Targets of a user's own ---------------------------------------------------------------------


@pytest.mark.parametrize("costs", [False, True], ids=["max", "min"])
@pytest.mark.parametrize("central", [False, True], ids=["forward", "central"])
@pytest.mark.parametrize(("samples", "marginal"), MODES)
def test_a_target_of_ones_own(samples, marginal, central, costs):
    class Halved(BaseTargetDistribution):
        """TargetDistribution(1, 0.7), with gradients halved."""

        def params(
            self, theta: Tensor, dy: Tensor | None, _is_minimization: bool = False
        ) -> Tensor:
            step = 0.0 if dy is None else 0.7 * dy
            return theta + step if _is_minimization else theta - step

        def process(self, theta: Tensor, dy: Tensor, gradient_3d: Tensor) -> Tensor:
            assert theta.shape[0] == gradient_3d.shape[0] == dy.shape[0] / (samples * marginal)
            return gradient_3d / 2

    seed = 10 * samples + marginal
    random = np.random.default_rng(seed)
    theta, dy = random.normal(size=(3, 7)), random.normal(size=(3 * samples * marginal, 7))
    results = []
    for target in (Halved(), TargetDistribution(1.0, 0.7)):
        chosen = aimle(
            choose(3, -1.0 if costs else 1.0)[1],
            target,
            RecordedNoise(seed),
            samples,
            marginal,
            symmetric_perturbation=central,
            _is_minimization=costs,
        )
        results.append(backward_of(chosen, theta, dy)[1])
    assert np.any(results[0] != 0)
    np.testing.assert_allclose(results[0], results[1] / 2, rtol=1e-12)
