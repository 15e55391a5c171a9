"""The stages for callable solvers: properties that hold for any callable."""

import pytest
import torch
from torch import Tensor

import aimle
from aimle import AdaptiveTarget


def one_hot(scores: Tensor) -> Tensor:
    """Argmax that takes NaN for the largest score, as torch's own does."""
    return torch.zeros_like(scores).scatter_(-1, scores.argmax(-1, keepdim=True), 1.0)


@pytest.mark.parametrize("solver", [one_hot, aimle.Argmax()], ids=["callable", "native"])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("scope", ["example", "sample", "batch"])
def test_nan_gradients_reach_theta_through_any_solver(solver, symmetric, scope):
    target = AdaptiveTarget.paper(initial_alpha=0.5, scope=scope)
    layer = aimle.AIMLE(solver, nb_samples=3, symmetric_perturbation=symmetric, target=target)
    theta = torch.randn(4, 6, requires_grad=True)
    dy = torch.randn(4, 3, 6)
    dy[1, 2, 0] = torch.nan
    layer(theta).backward(dy)
    assert theta.grad.isnan().all(1).tolist() == [False, True, False, False]
    assert not theta.grad[[0, 2, 3]].isnan().any()
    assert layer.updates == 1

    layer(theta).backward(torch.full((4, 3, 6), torch.nan))
    assert layer.updates == 1


@pytest.mark.parametrize("solver", [one_hot, aimle.Argmax()], ids=["callable", "native"])
def test_nan_in_theta_reaches_its_gradient_through_any_solver(solver):
    layer = aimle.AIMLE(solver, target=AdaptiveTarget.paper(initial_alpha=0.5))
    theta = torch.randn(3, 6)
    theta[1, 2] = torch.nan
    theta.requires_grad_()
    layer(theta).backward(torch.randn(3, 1, 6))
    assert theta.grad.isnan().all(1).tolist() == [False, True, False]


@pytest.mark.parametrize("solver", [one_hot, aimle.Argmax()], ids=["callable", "native"])
def test_only_the_reference_counts_samples_without_a_gradient(solver):
    """A huge step changes both entries of two choices of one, in the samples that step."""
    for target, count in [
        (AdaptiveTarget.paper(initial_alpha=1e6, decay=0.0, scope="batch"), 2.0),
        (AdaptiveTarget.reference(initial_alpha=1e6, decay=0.0), 1.0),
    ]:
        layer = aimle.AIMLE(solver, nb_samples=2, target=target)
        theta = torch.randn(4, 6, requires_grad=True)
        dy = torch.linspace(-1, 1, 6).repeat(4, 2, 1)
        dy[:, 1] = 0.0
        layer(theta).backward(dy)
        assert layer.gbar == count
        layer(theta).backward(torch.zeros_like(dy))
        assert layer.gbar == (0.0 if target._reference else count)


class Counting:
    """one_hot, with the number of rows of each call."""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def __call__(self, scores: Tensor, *extra: object) -> Tensor:
        self.rows.append(scores.shape[0])
        return one_hot(scores)


def run_staged(solver, dy: Tensor, *extra: object, **settings) -> tuple[Tensor, dict[str, Tensor]]:
    """theta's gradient and the stats of one backward pass."""
    settings = {"target": AdaptiveTarget.paper(5.0), **settings}
    layer = aimle.AIMLE(solver, nb_samples=dy.shape[1], **settings)
    theta = torch.linspace(-1, 1, dy.shape[0] * dy.shape[2]).reshape(dy.shape[0], -1)
    theta.requires_grad_()
    layer(theta, *extra, key=torch.tensor([1, 2])).backward(dy)
    return theta.grad, layer.stats()


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("other_noise", [False, True])
def test_backward_solves_the_rows_that_can_differ(symmetric: bool, other_noise: bool):
    """Row 5 has a gradient in samples 0 and 2; row 2 has NaN in sample 1, so a NaN gradient."""
    dy = torch.zeros(8, 3, 6)
    dy[5, 0], dy[5, 2] = torch.linspace(-1, 1, 6), torch.linspace(2, 1, 6)
    dy[2, 1, 3] = torch.nan
    settings = {"symmetric_perturbation": symmetric}
    if other_noise:
        settings["target_noise_temperature"] = 0.5
    solver = Counting()
    gradient, stats = run_staged(solver, dy, **settings)
    assert solver.rows == [24, *([2] * (2 if symmetric or other_noise else 1))]
    expected, expected_stats = run_staged(aimle.Argmax(), dy, **settings)
    assert torch.equal(gradient.nan_to_num(9.0), expected.nan_to_num(9.0))
    assert gradient[2].isnan().all()
    assert gradient[5].count_nonzero() > 0
    for name, value in expected_stats.items():
        torch.testing.assert_close(stats[name], value, rtol=0, atol=0, equal_nan=True, msg=name)


@pytest.mark.parametrize("symmetric", [False, True])
def test_backward_does_not_call_the_solver_if_no_row_can_differ(symmetric: bool):
    dy = torch.randn(4, 3, 6, generator=torch.Generator().manual_seed(0))
    zero_step = AdaptiveTarget.paper(0.0, step=0.0)
    for gradients, target in ((torch.zeros_like(dy), AdaptiveTarget(0.5)), (dy, zero_step)):
        for extra in ((), ("a graph",)):
            solver = Counting()
            gradient, stats = run_staged(
                solver, gradients, *extra, target=target, symmetric_perturbation=symmetric
            )
            assert solver.rows == [12]
            assert gradient.count_nonzero() == 0
            assert stats["zero_share"] == 1 or stats["zero_share"].isnan()


@pytest.mark.parametrize("extra", [(), ("a graph",)], ids=["rowwise", "arguments"])
def test_a_solver_with_data_of_its_own_for_each_row_gets_all_rows(extra: tuple[str, ...]):
    dy = torch.zeros(8, 3, 6)
    dy[5, 0] = torch.linspace(-1, 1, 6)
    solver = Counting()
    solver.rowwise = bool(extra)
    gradient, _ = run_staged(solver, dy, *extra)
    assert solver.rows == [24, 24, 24]
    assert torch.equal(gradient, run_staged(aimle.Argmax(), dy)[0])


def test_masked_entries_do_not_make_rows_differ():
    """An infinite score does not move, and NaN behind the mask is not seen."""
    solver = Counting()
    layer = aimle.IMLE(solver, 0.5, nb_samples=2)
    mask = torch.tensor([True, True, True, False])
    theta = torch.tensor([[0.1, 0.2, 0.3, 0.0]] * 3)
    theta[1, 3] = torch.nan
    theta.requires_grad_()
    dy = torch.zeros(3, 2, 4)
    dy[0, 0, 3] = 1.0
    dy[1, 1, 0] = 1.0
    layer(theta, mask=mask, key=torch.tensor([1, 2])).backward(dy)
    assert solver.rows == [6, 1]
    assert not theta.grad.isnan().any()


def test_compiled_code_solves_all_rows():
    solver = Counting()
    layer = aimle.IMLE(solver, 10.0, nb_samples=2)
    theta = torch.linspace(-1, 1, 24).reshape(4, 6).requires_grad_()
    key = torch.tensor([1, 2])
    dy = torch.zeros(4, 2, 6)
    dy[1, 0] = torch.linspace(-5, 5, 6)
    layer(theta, key=key).backward(dy)
    expected, theta.grad = theta.grad, None
    assert solver.rows == [8, 1]
    torch.compile(layer, backend="aot_eager")(theta, key=key).backward(dy)
    assert torch.equal(theta.grad, expected)
