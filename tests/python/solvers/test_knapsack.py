"""Knapsacks: shared data, data per row, decimal weights, and errors."""

import math
import pickle

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

import aimle
from aimle import exact

WEIGHTS, CAPACITY = [3, 1, 4, 1, 5, 2, 6], 9


def drawn(*batch: int, n: int = 8, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randint(-8, 20, (*batch, n), generator=generator).double() / 4
    weights = torch.randint(0, 12, (*batch, n), generator=generator)
    capacity = torch.randint(0, 40, batch, generator=generator)
    return scores, weights, capacity


def best_value(scores: Tensor, weights: Tensor, capacity: Tensor) -> Tensor:
    n = scores.shape[-1]
    every = (torch.arange(2**n).unsqueeze(-1) >> torch.arange(n)) & 1
    fits = weights.double() @ every.double().T <= capacity.unsqueeze(-1)
    return (scores @ every.double().T).masked_fill(~fits, -torch.inf).amax(-1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_row_has_its_own_knapsack(dtype: torch.dtype, device: torch.device):
    scores, weights, capacity = drawn(2, 2000)
    solver = aimle.Knapsack([0] * 8, 0, max_capacity=40)
    data = aimle.Knapsack.pack(weights, capacity).to(device)
    z = solver(scores.to(device, dtype), data=data).double().cpu()
    assert ((weights * z).sum(-1) <= capacity).all()
    assert torch.equal((scores * z).sum(-1), best_value(scores, weights, capacity))


def test_shared_data_are_those_of_every_row(device: torch.device):
    scores = drawn(50, n=7)[0].to(device)
    solver = aimle.Knapsack(WEIGHTS, CAPACITY)
    rows = solver.data.expand(50, 8).contiguous().to(device)
    assert torch.equal(solver(scores), solver(scores, data=rows))
    assert torch.equal(solver(scores), solver(scores, data=rows[:1]))


@pytest.mark.parametrize("estimator", ["aimle", "imle", "dpo", "sfe", "exact"])
def test_estimators_read_the_data_of_their_rows(estimator: str):
    """A batch of different knapsacks gives what each of them gives alone; without noise, since that
    depends on the place in the batch."""
    scores, weights, capacity = drawn(6)
    solver = aimle.Knapsack([0] * 8, 0, max_capacity=40)
    settings = {"imle": {"lambda_": 2.0}}.get(estimator, {})
    if estimator in ("aimle", "imle"):
        settings["noise"] = None
    layer = aimle.estimator(estimator, solver, **settings)
    if estimator in ("dpo", "sfe", "exact"):
        layer.eval()
    data = aimle.Knapsack.pack(weights, capacity)
    together = scores.clone().requires_grad_()
    z = layer(together, data=data)
    alone = [scores[i : i + 1].clone().requires_grad_() for i in range(6)]
    for i, theta in enumerate(alone):
        layer = aimle.estimator(estimator, solver, **settings)
        layer.train(estimator in ("aimle", "imle"))
        one = layer(theta, data=data[i])
        assert torch.equal(one[0], z[i])
        if one.requires_grad:
            one.square().sum().backward()
    if z.requires_grad and estimator != "aimle":  # whose step is that of the batch
        z.square().sum().backward()
        got = torch.cat([theta.grad for theta in alone])
        torch.testing.assert_close(got, together.grad)


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_exact_distributions_read_the_data_of_their_rows(scale: float, device: torch.device):
    scores, weights, capacity = drawn(6)
    scores = (scale * scores).to(device).requires_grad_()
    solver = aimle.Knapsack([0] * 8, 0, max_capacity=40)
    data = aimle.Knapsack.pack(weights, capacity).to(device)
    mu = exact.marginals(solver, scores, data=data)
    log_z = exact.log_partition(solver, scores, data=data)
    v = torch.randn(6, 8, generator=torch.Generator().manual_seed(1)).double().to(device)
    (product,) = torch.autograd.grad(mu, scores, v)
    for i in range(6):
        own, row = aimle.Knapsack(weights[i], capacity[i]), scores[i].detach().requires_grad_()
        listed = exact.expected(own, row, lambda z: z)
        torch.testing.assert_close(mu[i], listed)
        (gradient,) = torch.autograd.grad(listed, row, v[i])
        torch.testing.assert_close(product[i], gradient, rtol=1e-6, atol=1e-9)
        p = exact.probabilities(own, row.detach())
        every = exact.structures(own, row)
        torch.testing.assert_close(
            log_z[i], (every.to(row) @ row).detach().logsumexp(0), rtol=1e-9, atol=1e-9
        )
        z = exact.sample(own, row.detach(), torch.tensor([1, 2], device=device), 4000)
        torch.testing.assert_close(z.mean(0), p @ every.to(p), rtol=0, atol=0.05)


def test_decimals():
    solver = aimle.Knapsack([0.75, 1.5, 0.1], capacity=2.25, scale=100)
    assert solver.data.tolist() == [75, 150, 10, 225]
    assert solver(torch.tensor([1.0, 1.0, 1.0])).tolist() == [1, 1, 0]
    with pytest.raises(ValueError, match=r"weights to be integers after scale=10 .* scale=100"):
        aimle.Knapsack([0.75, 1.5], capacity=2, scale=10)


def test_ties_and_worthless_items():
    solver = aimle.Knapsack([1, 1, 1, 0], capacity=2)
    assert solver(torch.tensor([1.0, 1.0, 1.0, 0.0])).tolist() == [1, 1, 0, 0]
    assert solver(torch.tensor([-1.0, 0.0, -0.0, -torch.inf])).tolist() == [0, 0, 0, 0]


def test_what_is_refused(device: torch.device):
    solver = aimle.Knapsack(WEIGHTS, CAPACITY)
    scores = torch.ones(2, 7, device=device)
    for data, status in (([-1] * 8, "BAD_DATA"), ([4] * 7 + [11], "OK")):
        _, got = aimle.solve(
            solver, scores, data=torch.tensor(data, device=device), return_status=True
        )
        assert got.tolist() == [aimle.Status[status]] * 2
    big = torch.tensor([1, 1000, 1, 1, 1, 1, 1, 10**18], device=device)
    _, got = aimle.solve(solver, scores, data=big, return_status=True)
    assert got.tolist() == [aimle.Status.TOO_LARGE] * 2
    with pytest.raises(ValueError, match="weights of the 7 items and the capacity, 8 numbers"):
        solver(scores, data=torch.ones(7, dtype=torch.int64, device=device))
    with pytest.raises(TypeError, match="data of int64 but got float32"):
        solver(scores, data=torch.ones(8, device=device))
    with pytest.raises(ValueError, match="data broadcastable to the batch shape"):
        solver(scores, data=torch.ones(3, 8, dtype=torch.int64, device=device))
    with pytest.raises(TypeError, match="Knapsack takes no k"):
        solver(scores, k=3)
    with pytest.raises(TypeError, match="TopK takes no data"):
        aimle.TopK(3)(scores, data=solver.data)


def test_bad_settings():
    with pytest.raises(ValueError, match="weights >= 0 but got -2"):
        aimle.Knapsack([1, -2], 3)
    with pytest.raises(ValueError, match="a capacity for every knapsack"):
        aimle.Knapsack.pack(torch.ones(2, 3, dtype=torch.int64), torch.ones(3, dtype=torch.int64))
    for bad in (math.nan, math.inf):
        with pytest.raises(ValueError, match=f"weights to be integers .* but got {bad}"):
            aimle.Knapsack([1.0, bad], 3)
    with pytest.raises(ValueError, match="max_capacity >= 0"):
        aimle.Knapsack([1], 3, max_capacity=-1)


def test_an_empty_batch():
    solver = aimle.Knapsack(torch.ones(0, 3, dtype=torch.int64), torch.ones(0, dtype=torch.int64))
    assert solver(torch.ones(0, 3)).shape == (0, 3)


def test_the_copy_on_a_device_serves_every_later_call():
    solver = aimle.Knapsack(WEIGHTS, CAPACITY)
    meta = torch.device("meta")
    with FakeTensorMode(allow_non_fake_inputs=True):
        solver.data_on(meta)
    with torch.inference_mode():
        solver.data_on(meta)
    copied = solver.data_on(meta)
    assert type(copied) is torch.Tensor
    assert not copied.is_inference()
    assert solver.data_on(meta) is copied


def test_compiled_and_pickled(device: torch.device):
    solver = aimle.Knapsack(WEIGHTS, CAPACITY)
    assert pickle.loads(pickle.dumps(solver)) == solver
    assert solver != aimle.Knapsack(WEIGHTS, CAPACITY + 1, max_capacity=solver.max_capacity)
    layer = aimle.IMLE(solver, lambda_=1.0, noise=None).to(device)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    theta = drawn(5, n=7)[0].to(device)
    assert torch.equal(compiled(theta), layer(theta))
