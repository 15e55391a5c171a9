"""The key of a call on a GPU: PyTorch's numbers, even if they are computed on the CPU."""

import functools
import random
from collections.abc import Iterator

import pytest
import torch
from gpu_cases import SOLVERS
from torch import Tensor

import aimle

pytestmark = pytest.mark.usefixtures("gpu")

draw_host_key = torch.ops.aimle.draw_host_key.default


def default_generator() -> torch.Generator:
    torch.cuda.init()
    return torch.cuda.default_generators[torch.cuda.current_device()]


@pytest.mark.parametrize("own", [False, True])
def test_a_host_key_is_what_the_generator_writes(own: bool, gpu: torch.device):
    pick = random.Random(0)
    generator = torch.Generator(gpu) if own else default_generator()
    given = generator if own else None
    like, on_gpu = torch.empty(0, device=gpu), torch.empty(2, dtype=torch.int64, device=gpu)
    for _ in range(60):
        seed = pick.choice([0, 1, 2**32, 2**64 - 1, pick.getrandbits(64)])
        offset = 4 * pick.choice([0, 1, 2**30 - 1, 2**32 - 1, 2**32, pick.getrandbits(60)])

        def restart(seed: int = seed, offset: int = offset) -> None:
            generator.manual_seed(seed)
            generator.set_offset(offset)

        restart()
        on_gpu.random_(-(2**63), None, generator=given)
        after = generator.get_state()
        restart()
        key = draw_host_key(like, generator=given)
        assert key.device.type == "cpu"
        assert key.tolist() == on_gpu.tolist(), f"seed {seed}, offset {offset}"
        assert torch.equal(generator.get_state(), after), f"seed {seed}, offset {offset}"


def test_host_keys_among_other_draws(gpu: torch.device):
    like = torch.empty(0, device=gpu)

    def draws(draw_key) -> list[Tensor]:
        torch.manual_seed(11)
        drawn = []
        for size in (3, 1000, 100_000, 5_000_000):
            drawn += [torch.rand(size, device=gpu).cpu(), draw_key(like).cpu()]
            drawn += [draw_key(like).cpu(), torch.randn(size, device=gpu).cpu()]
        return drawn

    torch.testing.assert_close(draws(draw_host_key), draws(aimle.draw_key), rtol=0, atol=0)


def test_a_generator_of_the_cpu_is_refused_as_ever(gpu: torch.device):
    like, generator = torch.empty(0, device=gpu), torch.Generator()
    with pytest.raises(RuntimeError) as expected:
        aimle.draw_key(like, generator=generator)
    with pytest.raises(RuntimeError) as got:
        draw_host_key(like, generator=generator)
    assert str(got.value).splitlines()[0] == str(expected.value).splitlines()[0]


def test_a_host_key_leaves_the_dropout_of_cudnn_alone(gpu: torch.device):
    """A generator that is set anew makes cuDNN draw a seed for its dropout in the next call."""
    lstm, x = torch.nn.LSTM(3, 4, num_layers=2, dropout=0.5).to(gpu), torch.ones(5, 2, 3).to(gpu)

    def moved_by_a_call() -> int:
        before = default_generator().get_offset()
        lstm(x)
        return default_generator().get_offset() - before

    moved_by_a_call()
    expected = moved_by_a_call()
    draw_host_key(x)
    assert moved_by_a_call() == expected


# ---- Layers --------------------------------------------------------------------------------------


def step(layer: torch.nn.Module, theta: Tensor, key: Tensor | None = None) -> list[Tensor]:
    theta = theta.detach().requires_grad_()
    z = layer(theta, key=key)
    (z * torch.linspace(-1, 1, z.shape[-1], device=z.device)).sum().backward()
    return [z.detach(), theta.grad]


def test_an_eager_layer_draws_no_key_on_the_gpu(gpu: torch.device, monkeypatch):
    layer, twin = (aimle.AIMLE(aimle.TopK(5), nb_samples=3).to(gpu) for _ in range(2))
    theta = torch.randn(7, 20, device=gpu)
    torch.manual_seed(3)
    expected = step(twin, theta, key=aimle.draw_key(theta))
    monkeypatch.setattr(aimle.functional, "_draw_key", None)
    torch.manual_seed(3)
    torch.testing.assert_close(step(layer, theta), expected, rtol=0, atol=0)


def test_a_captured_key_is_drawn_in_every_replay(gpu: torch.device):
    layer, theta = aimle.IMLE(aimle.TopK(5)).to(gpu), torch.randn(7, 20, device=gpu)

    def draw() -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            return draw_host_key(theta), layer(theta)

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        draw()
        aimle.draw_key(theta)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        key, z = draw()
    assert key.is_cuda
    torch.manual_seed(5)
    replayed = []
    for _ in range(4):
        graph.replay()
        replayed.append((key.tolist(), z.tolist()))
    torch.manual_seed(5)
    assert [tuple(x.tolist() for x in draw()) for _ in range(4)] == replayed
    assert len({tuple(key) for key, _ in replayed}) == 4


@pytest.mark.parametrize("given", [False, True])
def test_a_compiled_layer_takes_the_key_of_an_eager_one(given: bool, gpu: torch.device):
    torch._dynamo.reset()
    eager, layer = (aimle.AIMLE(aimle.TopK(5)).to(gpu) for _ in range(2))
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for seed in range(3):
        theta, key = torch.randn(7, 20, device=gpu), torch.tensor([seed, 8]) if given else None
        torch.manual_seed(seed)
        expected = step(eager, theta, key)
        torch.manual_seed(seed)
        torch.testing.assert_close(step(compiled, theta, key), expected, rtol=0, atol=0)


NOISES = ["gumbel", "normal", "logistic", aimle.SumOfGamma(5)]


def layers(name: str, noise: aimle.Noise | str) -> Iterator[torch.nn.Module]:
    solver = SOLVERS[name][0]
    yield aimle.AIMLE(solver, noise=noise, nb_samples=3, target=aimle.AdaptiveTarget(0.5))
    yield aimle.AIMLE(solver, noise=noise, symmetric_perturbation=False, output="mean")
    yield aimle.STE(solver, noise=noise)
    yield aimle.AIMLE(functools.partial(aimle.solve, solver), noise=noise, sense=solver.sense)
    yield aimle.STE(functools.partial(aimle.solve, solver), noise=noise, sense=solver.sense)
    if isinstance(noise, str):
        yield aimle.DPO(solver, noise=noise)
    if isinstance(noise, str) and solver.has_thresholds:
        yield aimle.Thresholds(solver, noise=noise)
    if name == "argmax":
        yield aimle.GumbelSoftmax(solver)


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("name", SOLVERS)
def test_a_key_may_lie_on_the_cpu(name: str, noise: aimle.Noise | str, gpu: torch.device):
    theta = torch.rand(9, *SOLVERS[name][1], device=gpu) + 0.5
    key = torch.tensor([2**62 + 77, -(2**61) + 5])
    strided = torch.stack([key, key], -1)[:, 0]
    for here, there in zip(layers(name, noise), layers(name, noise), strict=True):
        expected = step(here.to(gpu), theta, key.to(gpu))
        got = step(there.to(gpu), theta, strided)
        torch.testing.assert_close(got, expected, rtol=0, atol=0, msg=str(here))
        for ours, theirs in zip(there.buffers(), here.buffers(), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("solver", [aimle.Argmax(), aimle.TopK(5), aimle.SpanningTree(6)], ids=str)
def test_exact_samples_take_a_key_on_the_cpu(solver: aimle.Solver, gpu: torch.device):
    scores, key = torch.randn(6, 15, device=gpu), torch.tensor([5, 6])
    expected = aimle.exact.sample(solver, scores, key.to(gpu), 20)
    assert torch.equal(aimle.exact.sample(solver, scores, key, 20), expected)
