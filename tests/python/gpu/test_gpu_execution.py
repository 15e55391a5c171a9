"""Properties of GPU execution: no host sync, streams, captured graphs, sizes, memory, errors."""

import contextlib
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from gpu_cases import SOLVERS
from torch import Tensor

import aimle

pytestmark = pytest.mark.usefixtures("gpu")


LAYERS = {
    "aimle": lambda solver: aimle.AIMLE(solver, nb_samples=3, target=aimle.AdaptiveTarget(0.5)),
    "forward": lambda solver: aimle.AIMLE(
        solver, nb_samples=3, symmetric_perturbation=False, target=aimle.AdaptiveTarget(0.5)
    ),
    "batch": lambda solver: aimle.AIMLE(solver, target=aimle.AdaptiveTarget(0.5, scope="batch")),
    "mean": lambda solver: aimle.AIMLE(
        solver, nb_samples=4, output="mean", noise=aimle.SumOfGamma(5)
    ),
    "imle": lambda solver: aimle.IMLE(solver),
    "ste": lambda solver: aimle.STE(solver),
}


def theta_for(solver: str, batch: int, device: torch.device) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    theta = torch.randn(batch, *SOLVERS[solver][1], generator=generator)
    return (theta.abs() + 0.5 if solver == "grid" else theta).to(device)


def step(layer: torch.nn.Module, theta: Tensor) -> tuple[Tensor, Tensor]:
    theta = theta.detach().requires_grad_()
    z = layer(theta)
    (z * torch.linspace(-1, 1, z.shape[-1], device=z.device)).sum().backward()
    return z.detach(), theta.grad


@contextlib.contextmanager
def no_sync():
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_no_host_sync(solver: str, layer: str, gpu: torch.device):
    module, theta = LAYERS[layer](SOLVERS[solver][0]).to(gpu), theta_for(solver, 7, gpu)
    with no_sync():
        z, gradient = step(module, theta)
    assert z.isfinite().all()
    assert gradient.isfinite().all()


def test_check_is_the_one_sync(gpu: torch.device):
    x = torch.randn(3, 5, device=gpu)
    x[1, 2] = math.nan
    assert aimle.solve(aimle.TopK(2), x)[1].isnan().all()  # a row of NaN, no exception
    with pytest.raises(ValueError, match=r"row 1: expected numbers but got scores\[1, 2\]=nan"):
        aimle.solve(aimle.TopK(2), x, check=True)
    mask = torch.zeros(3, 5, dtype=torch.bool, device=gpu)
    z, status = aimle.solve(aimle.TopK(2), x, mask=mask, return_status=True)
    assert z.isnan().all()
    assert (status == aimle.Status.TOO_FEW_ENTRIES).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_side_stream(solver: str, gpu: torch.device):
    layer = LAYERS["aimle"](SOLVERS[solver][0]).to(gpu)
    twin = LAYERS["aimle"](SOLVERS[solver][0]).to(gpu)
    theta, stream = theta_for(solver, 64, gpu), torch.cuda.Stream()
    torch.manual_seed(3)
    expected = step(twin, theta)
    torch.cuda.synchronize()
    torch.manual_seed(3)
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)  # a kernel on another stream would be done long before
        late = theta * 1
        got = step(layer, late)
    stream.synchronize()
    torch.testing.assert_close(got, expected, rtol=0, atol=0)
    torch.testing.assert_close(layer.alpha, twin.alpha, rtol=0, atol=0)


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_captured_training_step(solver: str, layer: str, gpu: torch.device):
    """Forward, backward, controller and optimiser in one graph: fresh noise, alpha moves."""
    choose = LAYERS[layer](SOLVERS[solver][0]).to(gpu)
    weights = torch.nn.Parameter(theta_for(solver, 64, gpu))
    optimiser = torch.optim.Adam([weights], lr=1e-3, capturable=True)
    target = torch.rand_like(weights)

    def train() -> Tensor:
        z = choose(weights)
        z = z.mean(1) if z.dim() > weights.dim() else z
        loss = (z - target).square().sum()
        optimiser.zero_grad(set_to_none=False)
        loss.backward()
        optimiser.step()
        return z.detach()

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            train()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        z = train()
    alphas, samples, before = [], [], weights.detach().clone()
    for _ in range(4):
        graph.replay()
        samples.append(z.clone())
        if choose.alpha is not None:
            alphas.append(choose.alpha.clone())
    assert not torch.equal(weights, before)
    assert all(sample.isfinite().all() for sample in samples)
    assert any(not torch.equal(samples[0], other) for other in samples[1:])
    if alphas:
        assert len({alpha.item() for alpha in alphas}) == 4


def test_a_graph_gives_what_eager_gives(gpu: torch.device):
    """The key as an input of the graph: replays equal eager calls with that key."""
    layer, twin = (LAYERS["aimle"](aimle.TopK(5)).to(gpu) for _ in range(2))
    theta = theta_for("topk", 100, gpu)
    key = torch.zeros(2, dtype=torch.int64, device=gpu)

    def run(module: torch.nn.Module) -> tuple[Tensor, Tensor]:
        x = theta.detach().requires_grad_()
        z = module(x, key=key)
        (z * torch.linspace(-1, 1, 20, device=gpu)).sum().backward()
        return z.detach(), x.grad

    run(layer)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = run(layer)
    run(twin)
    for i in range(5):
        key.copy_(torch.tensor([i, 7 * i]))
        graph.replay()
        torch.testing.assert_close(captured, run(twin), rtol=0, atol=0)
        torch.testing.assert_close(layer.alpha, twin.alpha, rtol=0, atol=0)
        torch.testing.assert_close(layer.layer_stats, twin.layer_stats, rtol=0, atol=0)


def test_a_seed_repeats_a_key(gpu: torch.device):
    like = torch.empty(0, device=gpu)
    torch.manual_seed(1)
    first, second = aimle.draw_key(like), aimle.draw_key(like)
    torch.manual_seed(1)
    assert torch.equal(aimle.draw_key(like), first)
    assert not torch.equal(first, second)
    generator = torch.Generator(gpu).manual_seed(5)
    drawn = aimle.draw_key(like, generator=generator)
    assert torch.equal(drawn, aimle.draw_key(like, generator=generator.manual_seed(5)))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_equals_eager(backend: str, gpu: torch.device):
    torch._dynamo.reset()
    eager, layer = (LAYERS["aimle"](aimle.TopK(5)).to(gpu) for _ in range(2))
    compiled = torch.compile(layer, fullgraph=True, backend=backend)
    for seed in range(3):
        theta = theta_for("topk", 50, gpu) + seed
        torch.manual_seed(seed)
        expected = step(eager, theta)
        torch.manual_seed(seed)
        torch.testing.assert_close(step(compiled, theta), expected, rtol=0, atol=0)
        torch.testing.assert_close(layer.alpha, eager.alpha, rtol=0, atol=0)


# ---- Reliability ---------------------------------------------------------------------------------


def test_mixed_devices_are_named(gpu: torch.device):
    theta = torch.randn(3, 5, device=gpu)
    with pytest.raises(ValueError, match=r"mask on the device of scores, cuda:0, .* on cpu"):
        aimle.solve(aimle.TopK(2), theta, mask=torch.ones(3, 5, dtype=torch.bool))
    layer = aimle.AIMLE(aimle.TopK(2)).to(gpu)
    with pytest.raises(ValueError, match=r"key on theta's device cpu .* it is on cuda:0"):
        layer(theta.cpu(), key=torch.tensor([1, 2], device=gpu))
    with pytest.raises(ValueError, match=r"key on the device of scores, cpu, .* it is on cuda:0"):
        aimle.exact.sample(aimle.TopK(2), theta.cpu(), torch.tensor([1, 2], device=gpu))
    at_home = aimle.AIMLE(aimle.TopK(2), target=aimle.AdaptiveTarget(0.5))
    with pytest.raises(ValueError, match=r"alpha on theta's device cuda:0 but it is on cpu"):
        at_home(theta.requires_grad_()).sum().backward()


def test_out_of_memory_leaves_a_usable_process(gpu: torch.device):
    free, _ = torch.cuda.mem_get_info()
    layer = aimle.AIMLE(aimle.TopK(2), nb_samples=int(free // (8 * 1000)) + 10_000).to(gpu)
    theta = torch.randn(1000, 8, device=gpu)
    with pytest.raises(torch.OutOfMemoryError):
        layer(theta)
    layer.nb_samples = 2
    z = layer(theta)
    assert (z.sum(-1) == 2).all()


@pytest.mark.parametrize("samples", [1, 8])
def test_more_than_two_to_the_31_elements(samples: int, gpu: torch.device):
    """Row numbers and addresses in 64 bits: the last rows are what they are alone."""
    if torch.cuda.mem_get_info()[0] < 40e9:
        pytest.skip("needs 40 GB of free memory")
    n = 20
    count = (2**31 // n + 1000) // samples + 1
    theta = torch.randn(count, n, device=gpu)
    key = torch.tensor([5, 6], device=gpu)
    layer = aimle.AIMLE(
        aimle.TopK(10),
        nb_samples=samples,
        noise=aimle.SumOfGamma(10),
        target=aimle.FixedTarget(2.0),
    ).to(gpu)
    with torch.no_grad():
        z = layer(theta, key=key)
    assert z.numel() > 2**31
    assert (z[-5000:].sum(-1) == 10).all()
    assert (z[:5000].sum(-1) == 10).all()
    # The last rows again from the noise itself.
    rows = 3
    first = count - rows
    words = (
        aimle.sample_noise(aimle.SumOfGamma(10), (count, n), key, nb_samples=samples)
        .view(count, samples, n)[first:]
        .clone()
    )
    scores = theta[first:].unsqueeze(1) + words
    assert torch.equal(aimle.solve(aimle.TopK(10), scores), z[first:].view(rows, samples, n))
    del words, scores
    # Backward, too: one example at the far end.
    x = theta.requires_grad_()
    out = layer(x, key=key)
    dy = torch.zeros_like(out)
    dy.view(-1)[-n:] = torch.linspace(-1, 1, n, device=gpu)
    out.backward(dy)
    assert x.grad[:first].count_nonzero() == 0
    assert x.grad[-1].count_nonzero() > 0


POISONED = """
import torch, aimle
x = torch.randn(4, 8, device="cuda")
try:
    torch._assert_async(torch.zeros((), dtype=torch.bool, device="cuda"))
    torch.cuda.synchronize()
except RuntimeError:
    pass
try:
    aimle.solve(aimle.TopK(2), x)
except RuntimeError as error:
    print("reported:", error)
"""


def test_launch_errors_are_reported_at_their_op(gpu: torch.device):
    """In a process of its own, since an asynchronous fault poisons it for good."""
    done = subprocess.run(
        [sys.executable, "-c", POISONED],
        env=os.environ | {"PYTHONPATH": str(Path(aimle.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "reported:" in done.stdout, done.stdout + done.stderr
    assert "CUDA" in done.stdout
