"""The layers: masks, k per row, types and layouts of theta."""

import math

import pytest
import torch
from layer_cases import (
    PROBLEMS,
    adaptive,
    leaf,
    plain,
    randn,
    run,
    state_of,
)
from torch import Tensor

import aimle

# ---- Masks and k ---------------------------------------------------------------------------------


@pytest.mark.parametrize("difference", ["central", "forward"])
@pytest.mark.parametrize("name", ["argmax", "topk", "tree"])
def test_masks(name: str, difference: str, device: torch.device, key: Tensor):
    problem = PROBLEMS[name]
    theta = problem.theta(2, 3, device=device)
    mask = torch.ones_like(theta, dtype=torch.bool)
    mask[..., ::4] = False
    layer = aimle.AIMLE(
        problem.solver,
        nb_samples=4,
        symmetric_perturbation=difference == "central",
        target=adaptive(0.8),
    ).to(device)
    dy = randn(2, 3, 4, *problem.instance, device=device)
    expected = plain(layer, theta, dy, key, mask=mask)
    # What is under the mask does not matter.
    theta, dy = theta.masked_fill(~mask, math.nan), dy.clone()
    dy[..., ::4] = math.inf
    z, gradient = run(layer, theta, dy, mask=mask, key=key)
    assert torch.equal(z, expected.z)
    assert z[..., ::4].eq(0).all()
    torch.testing.assert_close(gradient, expected.gradient, rtol=1e-12, atol=0)
    assert gradient[..., ::4].eq(0).all()
    assert gradient.count_nonzero() > 0
    assert layer.updates == 1
    stats = layer.stats()
    assert stats["count"].item() == expected.count
    assert stats["zero_share"].item() == expected.zero_share


def test_a_mask_is_broadcast(device: torch.device, key: Tensor):
    problem = PROBLEMS["topk"]
    theta = problem.theta(2, 3, device=device)
    for shape in ((8,), (3, 8), (2, 1, 8), (2, 3, 1)):
        mask = torch.ones(shape, dtype=torch.bool, device=device)
        if shape[-1] == 8:
            mask[..., 2:4] = False
        results = []
        for given in (mask, mask.expand_as(theta)):
            layer = aimle.AIMLE(problem.solver, nb_samples=2, target=adaptive()).to(device)
            results.append(run(layer, theta, mask=given, key=key))
        assert torch.equal(results[0][0], results[1][0])
        assert torch.equal(results[0][1], results[1][1])


def test_a_masked_grid_walks_round(device: torch.device, key: Tensor):
    problem = PROBLEMS["grid"]
    theta = problem.theta(3, device=device)
    mask = torch.ones(4, 5, dtype=torch.bool, device=device)
    mask[1:3, 2] = False
    layer = aimle.AIMLE(problem.solver, nb_samples=3, target=adaptive(0.8)).to(device)
    dy = randn(3, 3, 4, 5, device=device)
    expected = plain(layer, theta, dy, key, mask=mask)
    z, gradient = run(layer, theta, dy, mask=mask, key=key)
    assert torch.equal(z, expected.z)
    torch.testing.assert_close(gradient, expected.gradient, rtol=1e-12, atol=0)


@pytest.mark.parametrize("difference", ["central", "forward"])
def test_every_row_may_have_its_own_k(difference: str, device: torch.device, key: Tensor):
    problem = PROBLEMS["topk"]
    theta = problem.theta(2, 3, device=device)
    k = torch.tensor([[0, 1, 2], [3, 7, 8]], device=device)
    layer = aimle.AIMLE(
        aimle.TopK(100),  # replaced row by row
        nb_samples=4,
        symmetric_perturbation=difference == "central",
        target=adaptive(0.8),
    ).to(device)
    dy = randn(2, 3, 4, 8, device=device)
    expected = plain(layer, theta, dy, key, k=k)
    z, gradient = run(layer, theta, dy, k=k, key=key)
    assert torch.equal(z.sum(-1), k[..., None].expand(-1, -1, 4).to(z))
    assert torch.equal(z, expected.z)
    torch.testing.assert_close(gradient, expected.gradient, rtol=1e-12, atol=0)
    assert layer(theta, k=5).sum(-1).eq(5).all()
    assert layer(theta, k=torch.tensor([[1], [2]], device=device)).sum() == 3 * 4 * (1 + 2)


def test_minus_infinity_is_masked(device: torch.device, key: Tensor):
    problem = PROBLEMS["topk"]
    theta = problem.theta(3, device=device)
    mask = torch.ones_like(theta, dtype=torch.bool)
    mask[:, 1::3] = False
    dy = randn(3, 4, 8, device=device)
    results = []
    for values, given in ((theta, mask), (theta.masked_fill(~mask, -math.inf), None)):
        layer = aimle.AIMLE(problem.solver, nb_samples=4, target=adaptive()).to(device)
        results.append((*run(layer, values, dy, mask=given, key=key), state_of(layer)))
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])
    assert all(torch.equal(results[0][2][name], value) for name, value in results[1][2].items())


# ---- Types and layouts ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("difference", ["central", "forward"])
def test_types(dtype: torch.dtype, difference: str, device: torch.device, key: Tensor):
    """bfloat16 and float16 are worked in float32 and only rounded at the end."""
    problem = PROBLEMS["topk"]
    theta = problem.theta(3, dtype=dtype, device=device)
    dy = randn(3, 4, 8, dtype=dtype, device=device)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    results = []
    for given in (dtype, wide):
        layer = aimle.AIMLE(
            problem.solver,
            nb_samples=4,
            symmetric_perturbation=difference == "central",
            target=adaptive(),
        ).to(device)
        results.append((*run(layer, theta.to(given), dy.to(given), key=key), layer.gbar))
    assert results[0][0].dtype == results[0][1].dtype == dtype
    assert torch.equal(results[0][0], results[1][0].to(dtype))
    assert torch.equal(results[0][1], results[1][1].to(dtype))
    assert torch.equal(results[0][2], results[1][2])


def test_any_layout_of_theta_and_dy(device: torch.device, key: Tensor):
    problem = PROBLEMS["topk"]
    theta, dy = problem.theta(5, device=device), randn(5, 4, 8, device=device)

    def gradient(theta: Tensor, dy: Tensor) -> Tensor:
        layer = aimle.AIMLE(problem.solver, nb_samples=4, target=adaptive()).to(device)
        theta = theta.detach().requires_grad_()
        layer(theta, key=key).backward(dy)
        return theta.grad

    expected = gradient(theta, dy)
    assert expected.count_nonzero() > 0
    strided = torch.empty(8, 10, dtype=theta.dtype, device=device)[:, ::2].t().copy_(theta)
    assert not strided.is_contiguous()
    assert torch.equal(gradient(strided, dy), expected)
    assert torch.equal(gradient(theta, dy.permute(2, 0, 1).contiguous().permute(1, 2, 0)), expected)
    row = randn(8, device=device)
    assert torch.equal(
        gradient(theta, row.expand(5, 4, 8)), gradient(theta, row.expand(5, 4, 8).contiguous())
    )


def test_a_sum_sends_an_expanded_dy(device: torch.device, key: Tensor):
    problem = PROBLEMS["topk"]
    theta = leaf(problem.theta(3, device=device))
    layer = aimle.STE(problem.solver, nb_samples=4).to(device)
    layer(theta, key=key).sum().backward()
    assert theta.grad.eq(4).all()


def test_an_empty_batch(device: torch.device):
    layer = aimle.AIMLE(aimle.TopK(3), nb_samples=2).to(device)
    z, gradient = run(layer, torch.empty(0, 4, 8, device=device))
    assert z.shape == (0, 4, 2, 8)
    assert gradient.shape == (0, 4, 8)
    assert layer.updates == 0
