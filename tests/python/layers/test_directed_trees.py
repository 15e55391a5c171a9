"""Directed trees are the model of undirected ones on the sums of both directions."""

import pytest
import torch
from directed_trees import FIRST, KEY, LAYERS, SECOND, TREE, N, folded, spread
from layer_cases import leaf, randn
from torch import Tensor

import aimle


def both(layer: torch.nn.Module, other: torch.nn.Module, theta: Tensor, dy: Tensor, mask=None):
    """(z, gradient) of a directed layer, and of an undirected one on the sums."""
    directed, undirected = leaf(theta), leaf(folded(theta))
    sums = None if mask is None else mask[..., FIRST] & mask[..., SECOND]
    z = layer(directed, key=KEY, mask=mask)
    expected = other(undirected, key=KEY, mask=sums)
    z.backward(dy)
    expected.backward(folded(dy))
    return (z, directed.grad), (spread(expected), spread(undirected.grad))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", LAYERS)
def test_a_directed_layer_is_the_undirected_one_on_the_sums(name: str, dtype: torch.dtype):
    theta = randn(4, 20, dtype=dtype)
    mask = torch.ones(4, 20, dtype=torch.bool)
    mask[1, 3] = mask[2, 17] = False
    for output, allowed in (("samples", None), ("mean", None), ("flat", mask)):
        settings = {"nb_samples": 3, "output": output}
        layer, other = LAYERS[name](**settings), LAYERS[name](**settings)
        shape = {"samples": (4, 3, 20), "mean": (4, 20), "flat": (12, 20)}[output]
        for step in range(3):
            dy = randn(*shape, seed=step + 2, dtype=dtype)
            (z, grad), (expected, expected_grad) = both(layer, other, theta, dy, allowed)
            assert torch.equal(z, expected)
            if "sst" in name and output == "mean":  # divides by S before it folds
                torch.testing.assert_close(grad, expected_grad)
            else:
                assert torch.equal(grad, expected_grad)
            assert grad.abs().sum() > 0
        if hasattr(layer, "stats"):
            assert str(layer.stats()) == str(other.stats())


@pytest.mark.parametrize("name", ["dpo", "loss"])
def test_a_directed_perturbed_optimiser_is_the_undirected_one_on_the_sums(name: str):
    theta, target = randn(4, 20), TREE(randn(4, 20, seed=9))
    mask = torch.ones(20, dtype=torch.bool)
    mask[6] = False

    def value(theta: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        if name == "dpo":
            z = aimle.DPO(TREE, nb_samples=4)(theta, key=KEY, mask=mask)
            return (folded(z) / 2 if z.shape[-1] == 20 else z) * target
        return aimle.perturbed_fenchel_young_loss(
            theta, target, TREE, nb_samples=4, key=KEY, mask=mask
        )

    directed, undirected = leaf(theta), leaf(folded(theta))
    wanted = target if name == "loss" else target[:, FIRST]
    got = value(directed, wanted, mask)
    expected = value(undirected, target[:, FIRST], mask[FIRST] & mask[SECOND])
    assert torch.equal(got, expected)
    got.sum().backward()
    expected.sum().backward()
    assert torch.equal(directed.grad, spread(undirected.grad))
    assert directed.grad.abs().sum() > 0


@pytest.mark.parametrize(
    "target",
    [aimle.AdaptiveTarget(scale="theta", rule="additive"), aimle.AdaptiveTarget.reference()],
)
def test_published_rules_draw_a_noise_for_each_direction(target: aimle.AdaptiveTarget):
    theta = randn(2, 20)
    layer = aimle.AIMLE(TREE, target=target, nb_samples=50)
    x = theta.unsqueeze(1) + aimle.sample_noise("gumbel", theta.shape, KEY, nb_samples=50)
    assert torch.equal(layer(theta, key=KEY), TREE(x))


def test_both_directions_share_the_noise_in_half_precision_and_in_evaluation():
    theta = randn(3, 20, dtype=torch.bfloat16)
    layer = aimle.IMLE(TREE, 1.0, nb_samples=2)
    z = layer(leaf(theta), key=KEY)
    assert z.dtype is torch.bfloat16
    sums = folded(theta.float())
    assert torch.equal(z.float(), spread(layer(sums, key=KEY)))
    with torch.no_grad():
        assert torch.equal(layer.eval()(theta), TREE(theta).unsqueeze(1))
        assert torch.equal(layer.train()(theta, key=KEY), z)


def test_the_layer_over_directed_trees_compiles_and_is_not_differentiated_twice():
    theta, layer = randn(3, 20, dtype=torch.float32), aimle.IMLE(TREE, 1.0)
    z, dy = layer(rows := leaf(theta), key=KEY), randn(3, 1, 20, dtype=torch.float32)
    z.backward(dy)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    other = leaf(theta)
    z_compiled = compiled(other, key=KEY)
    z_compiled.backward(dy)
    assert torch.equal(z, z_compiled)
    assert torch.equal(rows.grad, other.grad)
    rows = leaf(theta)
    (grad,) = torch.autograd.grad(layer(rows, key=KEY).pow(3).sum(), rows, create_graph=True)
    with pytest.raises(RuntimeError, match="second derivative"):
        grad.sum().backward()


def test_messages_are_about_the_directed_scores():
    layer = aimle.IMLE(TREE, 1.0)
    with pytest.raises(ValueError, match=r"mask.*\[2, 20\]"):
        layer(randn(2, 20), mask=torch.ones(2, 10, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"connected"):
        layer(randn(2, 20), mask=torch.zeros(1, dtype=torch.bool))


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_fold_and_spread_are_each_others_gradient(device: str):
    ops = torch.ops.aimle
    theta = randn(2, 3, 20, device=device)
    assert ops.fold_directions(theta, N).shape == (2, 3, 10)
    assert ops.spread_directions(theta[..., :10], N).shape == (2, 3, 20)
    if device == "meta":
        return
    assert torch.equal(ops.fold_directions(theta, N), folded(theta))
    assert torch.equal(ops.spread_directions(theta[..., :10], N), spread(theta[..., :10]))
    for op, rows in ((ops.fold_directions, theta), (ops.spread_directions, theta[..., :10])):
        assert torch.autograd.gradcheck(lambda x, op=op: op(x, N), leaf(rows))
    with pytest.raises(ValueError, match=r"fold_directions.*20 entries.*vertices=5.*\[2, 10\]"):
        ops.fold_directions(randn(2, 10), N)
