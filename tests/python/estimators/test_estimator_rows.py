"""Estimators with a k per row, and with directed trees."""

import itertools

import pytest
import torch
from exact_gradients import (
    assert_unbiased,
    curved,
    exact_gradient,
    exponential_family,
    linear,
    replicate,
    scores,
    trees,
)
from torch import Tensor

import aimle

KEY = torch.tensor([7, 11])
OF_TOPK = ("softsub", "l2x", "sst", "exact", "sfe", "dpo")


def gradient(layer, theta: Tensor, d: Tensor, **call) -> tuple[Tensor, Tensor]:
    """z, and the gradient of sum <d, z^2> / 2."""
    theta = theta.detach().clone().requires_grad_()
    z = layer(theta, key=KEY, **call)
    losses = (z**2 * d / 2).sum(-1)
    if hasattr(layer, "surrogate"):
        losses = layer.surrogate(theta, z, losses, **call)
    losses.sum().backward()
    return z.detach(), theta.grad


# ---- k per row -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OF_TOPK)
def test_a_k_per_row_gives_what_that_k_gives_alone(name: str):
    theta, d = scores(24).reshape(4, 6), scores(6, seed=1)
    k = torch.tensor([3, 0, 1, 2])
    ragged = gradient(aimle.estimator(name, aimle.TopK(3), nb_samples=2), theta, d, k=k)
    plain = gradient(aimle.estimator(name, aimle.TopK(3), nb_samples=2), theta, d)
    for row, own in enumerate(k.tolist()):
        alone = gradient(aimle.estimator(name, aimle.TopK(own), nb_samples=2), theta, d)
        for got, expected in zip(ragged, alone, strict=True):
            torch.testing.assert_close(got[row], expected[row])
    for got, expected in zip(ragged, plain, strict=True):
        torch.testing.assert_close(got[0], expected[0])
    by_int = gradient(aimle.estimator(name, aimle.TopK(3), nb_samples=2), theta, d, k=2)
    expected = gradient(aimle.estimator(name, aimle.TopK(2), nb_samples=2), theta, d)
    torch.testing.assert_close(by_int, expected)


@pytest.mark.parametrize("name", OF_TOPK)
def test_a_k_per_row_in_eval_mode_is_the_best_of_each_row(name: str):
    theta, k = scores(18).reshape(3, 6), torch.tensor([2, 0, 3])
    layer = aimle.estimator(name, aimle.TopK(3), nb_samples=2).eval()
    best = aimle.TopK(3)(theta, k=k)
    assert torch.equal(layer(theta, k=k), best if name == "dpo" else best.unsqueeze(-2))


@pytest.mark.parametrize("name", ["softsub", "l2x"])
def test_rounds_are_bounded_by_the_solvers_k(name: str):
    layer, theta = aimle.estimator(name, aimle.TopK(3)), scores(12).reshape(2, 6)
    for bad in (4, -1):
        with pytest.raises(ValueError, match=f"0 <= k <= 3, the solver's k, .* but got {bad}"):
            layer(theta, k=torch.tensor([3, bad]), key=KEY)
    with pytest.raises(ValueError, match="k >= 0"):
        layer(theta, k=-1, key=KEY)
    # Compiled code cannot look at the values: such a row is NaN.
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    z = compiled(theta, k=torch.tensor([3, 4]), key=KEY)
    assert z[1].isnan().all()
    assert torch.equal(z[0], layer(theta, key=KEY)[0])


@pytest.mark.parametrize("name", OF_TOPK)
def test_a_k_per_row_compiles_as_one_graph(name: str):
    layer = aimle.estimator(name, aimle.TopK(3), nb_samples=2)
    theta, d, k = scores(18).reshape(3, 6), scores(6, seed=1), torch.tensor([2, 0, 3])

    def step(theta: Tensor, k: Tensor) -> Tensor:
        z = layer(theta, k=k, key=KEY)
        losses = (z**2 * d / 2).sum(-1)
        return layer.surrogate(theta, z, losses, k=k) if name == "sfe" else losses

    torch._dynamo.reset()
    rows = theta.clone().requires_grad_()
    torch.compile(step, fullgraph=True, backend="aot_eager")(rows, k).sum().backward()
    torch.testing.assert_close(rows.grad, gradient(layer, theta, d, k=k)[1])


@pytest.mark.parametrize("name", ["gumbel_softmax", "gumbel_rao", "reinmax", "sst", "exact", "sfe"])
def test_one_of_n_has_no_k(name: str):
    with pytest.raises(TypeError, match=r"Argmax takes no k"):
        aimle.estimator(name, aimle.Argmax())(torch.zeros(2, 3), k=torch.tensor([1, 1]))


# ---- Directed trees ------------------------------------------------------------------------------

EDGES = list(itertools.combinations(range(4), 2))
# Where both directions of edge {i, j} lie, receiver-major without the diagonal.
FIRST = torch.tensor([j * 3 + i - (i > j) for i, j in EDGES])
SECOND = torch.tensor([i * 3 + j - (j > i) for i, j in EDGES])
TREE = aimle.SpanningTree(4)


def directed(z: Tensor) -> Tensor:
    """Undirected structures, written to both directions."""
    return z.new_zeros(*z.shape[:-1], 12).index_copy(-1, FIRST, z).index_copy(-1, SECOND, z)


def test_the_score_function_is_unbiased_for_directed_trees():
    theta, loss, structures = scores(12) / 2, curved(12), directed(trees(4))
    exact = exact_gradient(theta, structures, lambda at: exponential_family(at, structures), loss)
    for baseline in ("none", "leave_one_out"):
        layer = aimle.SFE(TREE, nb_samples=100, baseline=baseline)
        assert_unbiased(replicate(layer, theta, loss), exact)


def test_exact_is_exact_for_linear_losses_of_directed_trees():
    theta, loss, structures = scores(12).double(), linear(12), directed(trees(4))
    exact = exact_gradient(theta, structures, lambda at: exponential_family(at, structures), loss)
    got = replicate(aimle.ExactMarginals(TREE), theta, loss, replicas=3)
    torch.testing.assert_close(got, exact.expand(3, 12))
    z = aimle.ExactMarginals(TREE, nb_samples=50)(theta, key=KEY)
    known = {tuple(row) for row in structures.tolist()}
    assert {tuple(row) for row in z.tolist()} <= known


@pytest.mark.parametrize("hard", [False, True])
def test_softmax_tricks_of_directed_trees_are_marginals_of_perturbed_scores(hard: bool):
    theta, t = scores(36).reshape(3, 12).double(), 0.7
    structures = trees(4)
    sums = theta[:, FIRST] + theta[:, SECOND]
    x = sums.unsqueeze(-2) + aimle.sample_noise("gumbel", sums.shape, KEY, nb_samples=2)

    def soft(x: Tensor) -> Tensor:
        return torch.softmax(x / t @ structures.T, -1) @ structures

    layer = aimle.SST(TREE, temperature=t, hard=hard, nb_samples=2)
    d = scores(12, seed=1).double()
    rows = theta.clone().requires_grad_()
    z = layer(rows, key=KEY)
    torch.testing.assert_close(z, directed(TREE(x) if hard else soft(x)))
    (z * d).sum().backward()
    x = x.clone().requires_grad_()
    (directed(soft(x)) * d).sum().backward()
    torch.testing.assert_close(rows.grad, directed(x.grad.sum(-2)))
