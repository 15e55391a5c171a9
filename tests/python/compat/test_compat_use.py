"""aimle.compat in use: forms of call, state, and a network that learns."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from authors_procedure import ConstantNoise, RecordedNoise, backward_of, choose
from torch import Tensor, nn

import aimle as library
from aimle.compat.aimle import aimle
from aimle.compat.imle import imle
from aimle.compat.noise import (
    GumbelNoiseDistribution,
    SumOfGammaNoiseDistribution,
)
from aimle.compat.solvers import select_k
from aimle.compat.ste import ste
from aimle.compat.target import (
    AdaptiveTargetDistribution,
    TargetDistribution,
)

# ---- Forms of use --------------------------------------------------------------------------------


def weighted_loss(differentiable, theta: Tensor, *args, **kwargs) -> Tensor:
    z = differentiable(theta, *args, **kwargs)
    weights = torch.randn(z.shape, generator=torch.Generator().manual_seed(0), dtype=z.dtype)
    return (z * weights).sum()


def test_decorators_with_and_without_arguments_and_functions_agree():
    theta = torch.randn(3, 8, generator=torch.Generator().manual_seed(0))

    def solver(rows: Tensor) -> Tensor:
        """Chooses three."""
        return select_k(rows, 3)

    for estimator in (aimle, imle, ste):

        @estimator
        def bare(rows: Tensor) -> Tensor:
            return solver(rows)

        @estimator()
        def empty(rows: Tensor) -> Tensor:
            return solver(rows)

        @estimator(nb_samples=1)
        def with_arguments(rows: Tensor) -> Tensor:
            return solver(rows)

        forms = [bare, empty, with_arguments, estimator(solver), estimator(None)(solver)]
        gradients = []
        for form in forms:
            leaf = theta.clone().requires_grad_()
            weighted_loss(form, leaf).backward()
            gradients.append(leaf.grad)
        assert all(torch.equal(gradient, gradients[0]) for gradient in gradients)
        assert forms[3].__name__ == "solver"
        assert forms[3].__doc__ == "Chooses three."
        assert bare.__name__ == "bare"


def test_the_readme_of_the_authors_runs(device):
    """A solver by way of NumPy, which loses the dtype."""
    target_distribution = AdaptiveTargetDistribution(initial_alpha=1.0, initial_beta=0.0)

    def batched_solver(weights_batch: Tensor) -> Tensor:
        rows = weights_batch.detach().cpu().numpy()
        y_batch = np.asarray([np.eye(len(w))[np.argmax(w)] for w in list(rows)])
        return torch.tensor(y_batch, requires_grad=False).to(weights_batch.device)

    @aimle(target_distribution=target_distribution)
    def differentiable_solver(weights_batch: Tensor) -> Tensor:
        return batched_solver(weights_batch)

    theta = torch.randn(4, 6, device=device, requires_grad=True)
    for _ in range(3):
        z = differentiable_solver(theta)
        assert z.dtype == torch.float64
        (z**2 * torch.arange(6.0, device=device)).sum().backward()
    assert target_distribution.beta == pytest.approx(3e-4)
    assert theta.grad.dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("factor", [1.0, 0.5])
@pytest.mark.parametrize("noise", [None, GumbelNoiseDistribution(), ConstantNoise(0.5)])
def test_half_precision_is_solved_in_float32(dtype, factor, noise):
    seen = []

    def solver(rows: Tensor) -> Tensor:
        seen.append(rows.dtype)
        return select_k(rows, 3)

    theta = torch.randn(3, 8, dtype=dtype, requires_grad=True)
    target = TargetDistribution(alpha=factor, beta=2.0)
    z = aimle(solver, target, noise, nb_samples=4, symmetric_perturbation=True)(theta)
    assert z.dtype == dtype
    z.backward(torch.randn(12, 8, dtype=dtype))
    assert theta.grad.dtype == dtype
    assert torch.any(theta.grad != 0)
    assert seen == [torch.float32] * 3


def test_a_second_derivative_is_refused():
    theta = torch.randn(3, 8, requires_grad=True)
    z = aimle(lambda x: select_k(x, 3))(theta)
    (gradient,) = torch.autograd.grad((z**2).sum(), theta, create_graph=True)
    with pytest.raises(RuntimeError, match="second derivative"):
        gradient.sum().backward()


def test_extra_arguments_reach_the_solver_in_forward_and_backward():
    calls = []

    @aimle(symmetric_perturbation=True, nb_samples=2)
    def solver(rows: Tensor, k: int, *, scale: float) -> Tensor:
        calls.append((tuple(rows.shape), k, scale))
        return scale * select_k(rows, k)

    theta = torch.randn(3, 8, requires_grad=True)
    z = solver(theta, 2, scale=3.0)
    assert torch.all(z.sum(1) == 6)
    z.sum().backward()
    assert calls == [((6, 8), 2, 3.0)] * 3
    assert theta.grad.shape == theta.shape


@pytest.mark.parametrize(
    ("settings", "solves"),
    [
        ({}, 2),
        ({"symmetric_perturbation": True}, 3),
        ({"target_noise_temperature": 0.5}, 3),
        ({"target_distribution": TargetDistribution(alpha=0.5)}, 3),
    ],
)
def test_how_often_the_solver_is_called(settings, solves):
    calls = []

    def solver(rows: Tensor) -> Tensor:
        calls.append(len(rows))
        return select_k(rows, 2)

    theta = torch.randn(3, 8, requires_grad=True)
    aimle(solver, noise_distribution=GumbelNoiseDistribution(), **settings)(theta).sum().backward()
    assert len(calls) == solves
    calls.clear()
    settings = {name: value for name, value in settings.items() if "symmetric" not in name}
    imle(solver, noise_distribution=GumbelNoiseDistribution(), **settings)(theta).sum().backward()
    assert len(calls) == 2


def test_theta_and_dy_need_not_be_contiguous():
    base = torch.randn(8, 3, generator=torch.Generator().manual_seed(1))
    for estimator in (aimle, imle, ste):
        gradients = []
        for theta in (base.t(), base.t().contiguous()):
            leaf = theta.detach().requires_grad_()
            z = estimator(lambda x: select_k(x, 3), nb_samples=2, reference=True)(leaf)
            (z.t() * torch.linspace(-1, 1, 48).reshape(8, 6)).sum().backward()
            gradients.append(leaf.grad)
        assert not base.t().is_contiguous()
        assert torch.equal(*gradients)


def test_instances_of_several_dimensions_and_a_native_solver_object():
    costs = torch.rand(4, 5, 6, dtype=torch.float64) + 0.1
    target = AdaptiveTargetDistribution(initial_beta=0.5)
    noise = SumOfGammaNoiseDistribution(k=6)
    shortest = aimle(
        library.GridPath(), target, noise, 3, symmetric_perturbation=True, _is_minimization=True
    )
    theta = costs.requires_grad_()
    paths = shortest(theta)
    assert paths.shape == (12, 5, 6)
    assert torch.all((paths == 0) | (paths == 1))
    (paths * torch.randn(12, 5, 6, dtype=torch.float64)).sum().backward()
    assert theta.grad.shape == costs.shape
    assert torch.any(theta.grad != 0)


def test_torch_imle_spells_the_temperature_otherwise():
    seen = []

    def solver(rows: Tensor) -> Tensor:
        seen.append(rows.clone())
        return select_k(rows, 2)

    noise = ConstantNoise(1.0)
    settings = {"input_noise_temperature": 4.0, "target_noise_temperature": 2.0}
    theta = torch.zeros(1, 5, requires_grad=True)
    imle(solver, TargetDistribution(beta=0.0), noise, **settings)(theta).sum().backward()
    assert [rows.unique().item() for rows in seen] == [4.0, 2.0]


def test_gradients_of_samples_can_be_written_to_a_file(tmp_path):
    path = tmp_path / "gradient.npy"
    for target in (TargetDistribution(beta=2.0, do_gradient_scaling=True), _adaptive(beta=0.5)):
        for reference in (False, True):
            theta = torch.randn(3, 8, dtype=torch.float64, requires_grad=True)
            chosen = imle(
                lambda x: select_k(x, 3),
                target,
                RecordedNoise(0),
                nb_samples=4,
                nb_marginal_samples=2,
                _gradient_save_path=str(path),
                reference=reference,
            )
            weighted_loss(chosen, theta).backward()
            saved = np.load(path)
            assert saved.shape == (3, 4, 8)
            np.testing.assert_allclose(saved.mean(1), theta.grad.numpy(), rtol=1e-12)
            assert np.any(saved != 0)


# ---- Straight through ----------------------------------------------------------------------------


def test_ste_returns_the_mean_of_dy(device):
    theta = torch.randn(3, 8, device=device, requires_grad=True)
    noise = RecordedNoise(0, device)
    z = ste(lambda x: select_k(x, 2), noise, noise_temperature=0.5, nb_samples=4)(theta)
    expected = choose(2)[0](
        np.repeat(theta.detach().cpu().numpy(), 4, 0) + 0.5 * noise.drawn.reshape(12, 8)
    )
    np.testing.assert_array_equal(z.detach().cpu().numpy(), expected)
    dy = torch.randn(12, 8, device=device)
    z.backward(dy)
    torch.testing.assert_close(theta.grad, dy.reshape(3, 4, 8).mean(1))


# ---- State ---------------------------------------------------------------------------------------


def _adaptive(beta: float = 0.0, **settings) -> AdaptiveTargetDistribution:
    return AdaptiveTargetDistribution(initial_beta=beta, beta_update_step=1e-3, **settings)


def _train(target: AdaptiveTargetDistribution, seeds: range) -> list[Tensor]:
    noise = GumbelNoiseDistribution()
    chosen = aimle(lambda x: select_k(x, 3), target, noise, 2, symmetric_perturbation=True)
    gradients = []
    for seed in seeds:
        torch.manual_seed(seed)
        theta = torch.randn(4, 9, requires_grad=True)
        (chosen(theta) * torch.randn(8, 9)).sum().backward()
        gradients.append(theta.grad)
    return gradients


def test_a_target_saved_and_loaded_goes_on_bit_for_bit(tmp_path):
    settings = {"beta": 0.3, "beta_update_momentum": 0.5, "target_norm": 2.0}
    whole = _adaptive(**settings)
    expected = _train(whole, range(20))

    first, second = _adaptive(**settings), _adaptive(**settings)
    _train(first, range(10))
    torch.save(first.state_dict(), tmp_path / "target.pt")
    second.load_state_dict(torch.load(tmp_path / "target.pt"))
    resumed = _train(second, range(10, 20))
    assert all(map(torch.equal, resumed, expected[10:]))
    assert second.state_dict() == whole.state_dict()
    assert whole.state_dict()["updates"] == 20

    copied = copy.deepcopy(first)
    assert all(map(torch.equal, _train(copied, range(10, 20)), expected[10:]))


def test_state_can_be_read_and_set_and_is_shared_by_functions_of_one_target():
    target = _adaptive()
    functions = [aimle(lambda x: select_k(x, 1), target) for _ in range(2)]
    theta = torch.tensor([[3.0, 1.0, 2.0]], requires_grad=True)
    for count, function in enumerate(functions * 2, start=1):
        weighted_loss(function, theta).backward()
        assert target.beta == pytest.approx(count * 1e-3, abs=1e-12)
        assert target.grad_norm.item() == pytest.approx(0.9**count, abs=1e-12)
    assert target.previous_beta_update == 1e-3
    target.beta, target.grad_norm, target.previous_beta_update = 0.5, 3.0, 0.0
    weighted_loss(functions[0], theta).backward()
    assert target.beta == pytest.approx(0.5 - 1e-3)


def test_settings_may_change_between_calls():
    target = TargetDistribution(beta=0.0)
    chosen = aimle(lambda x: select_k(x, 1), target)
    theta = torch.tensor([[3.0, 1.0, 2.0]], requires_grad=True)
    dy = torch.tensor([[1.0, 0.0, -1.0]])
    for beta, expected in [(0.0, [0.0, 0.0, 0.0]), (2.0, [1.0, 0.0, -1.0])]:
        target.beta = beta
        theta.grad = None
        chosen(theta).backward(dy)
        assert theta.grad.tolist() == [expected]


def test_zero_gradients_wind_beta_up_only_in_reference_mode():
    for reference, moved in [(False, 0), (True, 5)]:
        target = _adaptive()
        chosen = aimle(lambda x: select_k(x, 2), target, nb_samples=3, reference=reference)
        theta = torch.randn(4, 6, requires_grad=True)
        for _ in range(5):
            chosen(theta).backward(torch.zeros(12, 6))
        assert torch.all(theta.grad == 0)
        assert target.beta == pytest.approx(moved * 1e-3, abs=1e-12)
        assert target.grad_norm.item() == pytest.approx(0.9**moved, abs=1e-12)


@pytest.mark.parametrize("marginal", [1, 2])
def test_samples_without_a_gradient_count_only_in_reference_mode(marginal):
    """A huge step changes all six entries of two choices of three, in the samples that step."""
    random = np.random.default_rng(5)
    theta, dy = random.normal(size=(3, 7)), np.tile(random.normal(size=7), (3 * 2 * marginal, 1))
    dy.reshape(3, 2, marginal, 7)[:, 1] = 0.0
    for reference, count in [(False, 6.0), (True, 3.0)]:
        target = AdaptiveTargetDistribution(initial_beta=1e6, grad_norm_decay_rate=0.0)
        settings = {"symmetric_perturbation": True, "reference": reference}
        chosen = aimle(choose(3)[1], target, RecordedNoise(5), 2, marginal, **settings)
        backward_of(chosen, theta, dy)
        assert target.grad_norm.item() == count
        assert chosen.layer.stats()["count"].item() == count


@pytest.mark.parametrize("marginal", [1, 2])
@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("select", [select_k, lambda x, k: choose(k)[1](x)])
def test_nan_reaches_theta_and_leaves_the_state_alone(select, reference, marginal):
    for target in (_adaptive(beta=0.5), TargetDistribution()):
        chosen = aimle(
            lambda x: select(x, 3),
            target,
            GumbelNoiseDistribution(),
            2,
            marginal,
            symmetric_perturbation=True,
            reference=reference,
        )
        theta = torch.randn(3, 7, requires_grad=True)
        dy = torch.randn(3, 2 * marginal, 7)
        dy[:, 1, 0] = torch.nan
        chosen(theta).backward(dy.flatten(0, 1))
        assert torch.all(theta.grad.isnan())
        theta.grad = None
        chosen(theta).backward(torch.full((6 * marginal, 7), torch.nan))
        assert torch.all(theta.grad.isnan())
        if isinstance(target, AdaptiveTargetDistribution):
            updates = target.state_dict()["updates"]
            assert updates == 1, "the finite samples of the first pass"


def test_theta_of_zeros_has_a_zero_gradient():
    target = _adaptive(beta=1.0)
    chosen = aimle(lambda x: select_k(x, 2), target, GumbelNoiseDistribution(), 4)
    theta = torch.zeros(2, 6, requires_grad=True)
    chosen(theta).backward(torch.randn(8, 6))
    assert torch.all(theta.grad == 0)


# ---- In a network --------------------------------------------------------------------------------


def test_a_network_learns_which_entries_to_choose():
    """Ten of a hundred entries are wanted; the loss sees z only."""
    torch.manual_seed(0)
    wanted = torch.zeros(100)
    wanted[::10] = 1.0
    target = AdaptiveTargetDistribution(initial_beta=0.0, beta_update_step=1e-2, target_norm=2.0)

    @aimle(
        target_distribution=target,
        noise_distribution=SumOfGammaNoiseDistribution(k=10),
        nb_samples=8,
        symmetric_perturbation=True,
    )
    def chosen(weights: Tensor) -> Tensor:
        return select_k(weights, 10)

    theta = nn.Parameter(0.1 * torch.randn(1, 100))
    optimizer = torch.optim.Adam([theta], lr=0.1)
    for _ in range(150):
        optimizer.zero_grad()
        ((chosen(theta) - wanted) ** 2).sum(-1).sum().backward()
        optimizer.step()
    assert torch.equal(select_k(theta.detach(), 10)[0], wanted)
    assert target.beta > 0
