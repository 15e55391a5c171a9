"""Directed trees on the GPU: the CPU's bits, for layers that fold both directions of an edge."""

import pytest
import torch
from directed_trees import KEY, LAYERS, N, folded, spread
from layer_cases import leaf, randn

pytestmark = pytest.mark.usefixtures("gpu")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fold_and_spread_give_the_same_bits(dtype: torch.dtype):
    ops = torch.ops.aimle
    theta = randn(7, 20, dtype=dtype)
    assert torch.equal(ops.fold_directions(theta.cuda(), N).cpu(), folded(theta))
    assert torch.equal(ops.spread_directions(folded(theta).cuda(), N).cpu(), spread(folded(theta)))
    mask = theta > -0.5
    on_gpu = ops.fold_directions(mask.cuda(), N).cpu()
    assert torch.equal(on_gpu, ops.fold_directions(mask, N))


@pytest.mark.parametrize(
    "name", ["noise scale", "noise scale, forward", "imle", "imle_central", "thresholds", "ste"]
)
def test_a_directed_layer_gives_the_bits_of_the_cpu(name: str):
    theta, mask = randn(6, 20, dtype=torch.float32), torch.ones(6, 20, dtype=torch.bool)
    mask[1, 3] = mask[2, 17] = False
    on_cpu, on_gpu = LAYERS[name](nb_samples=3), LAYERS[name](nb_samples=3).cuda()
    for step in range(3):
        dy = randn(6, 3, 20, seed=step + 2, dtype=torch.float32)
        rows, device_rows = leaf(theta), leaf(theta.cuda())
        z = on_cpu(rows, key=KEY, mask=mask)
        device_z = on_gpu(device_rows, key=KEY.cuda(), mask=mask.cuda())
        z.backward(dy)
        device_z.backward(dy.cuda())
        assert torch.equal(z, device_z.cpu())
        assert torch.equal(rows.grad, device_rows.grad.cpu())


def test_a_directed_layer_is_captured_without_a_wait():
    layer = LAYERS["imle"](nb_samples=3).cuda()
    theta = leaf(randn(6, 20, dtype=torch.float32).cuda())
    key, dy = KEY.cuda(), randn(6, 3, 20, dtype=torch.float32).cuda()
    layer(theta, key=key).backward(dy)
    expected, theta.grad = theta.grad, None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        (grad,) = torch.autograd.grad(layer(theta, key=key), theta, dy)
    graph.replay()
    assert torch.equal(grad, expected)
