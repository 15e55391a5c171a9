"""The stages for callable solvers: what they hold whatever the callable answers."""

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
