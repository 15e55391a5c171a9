"""The GPU gives the bits of the CPU: noise, solutions, gradients and state, on random instances.

Every test draws its own instances from a seed, which stands in the message of a failure together
with all settings.
"""

import math
import random
from dataclasses import dataclass, field

import pytest
import torch
from layer_cases import Disguised, published
from torch import Tensor

import aimle
from aimle.perturbed_map import _ALL_STATS

pytestmark = pytest.mark.usefixtures("gpu")


def same(got: Tensor, expected: Tensor) -> bool:
    """Equal bit for bit, but for NaNs, which have no one form."""
    got = got.cpu()
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return False
    if not got.is_floating_point():
        return torch.equal(got, expected)
    integers = {2: torch.int16, 4: torch.int32, 8: torch.int64}[got.element_size()]
    equal = got.contiguous().view(integers) == expected.contiguous().view(integers)
    return bool((equal | (got.isnan() & expected.isnan())).all())


NOISES = (
    aimle.Gumbel(),
    aimle.Normal(),
    aimle.Logistic(),
    aimle.SumOfGamma(1),
    aimle.SumOfGamma(10),
    aimle.SumOfGamma(350, 100),
)


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_noise(noise: aimle.Noise, gpu: torch.device):
    for seed, (batch, samples, n) in enumerate(
        [(1, 1, 1), (3, 2, 2), (5, 7, 13), (100, 10, 20), (2, 3, 1000), (1, 1, 1_000_003)]
    ):
        key = torch.tensor([seed * 0x9E3779B97F4A7C1 - 5, -seed])
        draw = {"nb_samples": samples}
        expected = aimle.sample_noise(noise, (batch, n), key, **draw)
        got = aimle.sample_noise(noise, (batch, n), key.to(gpu), **draw)
        assert same(got, expected), f"batch={batch}, samples={samples}, n={n}"


# ---- Solutions -----------------------------------------------------------------------------------

LENGTHS = (*range(1, 37), 63, 64, 65, 100, 127, 128, 129, 200, 256, 257, 400, 512, 700, 1000, 1024)
LONG = (1025, 2000, 5003, 20_000, 70_001)


def random_scores(rng: random.Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Plain, with many ties, of all magnitudes, or with infinities; now and then a NaN."""
    generator = torch.Generator().manual_seed(rng.getrandbits(60))
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    kind = rng.randrange(5)
    if kind == 1:
        x = (2 * x).round() / 2
    if kind == 2:
        x = x * torch.exp(20 * torch.randn(shape, generator=generator, dtype=torch.float64))
    if kind >= 3:
        u = torch.rand(shape, generator=generator)
        x[u < 0.1] = -math.inf
        x[u > 0.95] = math.inf
        x[(u > 0.2) & (u < 0.25)] = -0.0
    if kind == 4:
        x[torch.rand(shape, generator=generator) < 0.2 / shape[-1]] = math.nan
    return x.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("n", [*LENGTHS, *LONG])
def test_topk_and_argmax(n: int, dtype: torch.dtype, gpu: torch.device):
    for seed in range(8 if n in LENGTHS else 3):
        rng = random.Random(1000 * n + seed)
        rows = rng.choice([1, 3, 33, 70]) if n in LENGTHS else 3
        x = random_scores(rng, (rows, n), dtype)
        mask = torch.rand(rows, n, generator=torch.Generator().manual_seed(seed)) < 0.8
        mask = rng.choice([None, mask])
        k = rng.choice([0, 1, n // 2, n, rng.randint(0, n), min(n, 32)])
        row_k = torch.tensor([rng.randint(-1, n + 1) for _ in range(rows)])
        calls = [(aimle.TopK(k), None), (aimle.TopK(k), row_k), (aimle.Argmax(), None)]
        for solver, per_row in calls:
            given = {"mask": mask, "k": per_row, "return_status": True}
            z, status = aimle.solve(solver, x, **given)
            on_gpu = {name: v.to(gpu) if torch.is_tensor(v) else v for name, v in given.items()}
            got_z, got_status = aimle.solve(solver, x.to(gpu), **on_gpu)
            told = f"seed={seed}, rows={rows}, {solver}, k={per_row}, mask={mask is not None}"
            assert same(got_status, status), told
            assert same(got_z, z), told


# ---- Layers --------------------------------------------------------------------------------------


@dataclass
class Case:
    """A layer, its input and the gradient it is handed."""

    solver: aimle.Solver
    settings: dict
    theta: Tensor
    mask: Tensor | None = None
    k: Tensor | None = None
    estimator: type = aimle.AIMLE
    dy_seed: int = 0
    zero_dy: bool = False
    nan_dy: bool = False
    told: dict = field(default_factory=dict)

    def run(self, device: torch.device, solver=None, steps: int = 2) -> list[Tensor]:
        """z, gradients and state over some steps."""
        layer = self.estimator(solver or self.solver, **self.settings).to(device)
        call = {"mask": self.mask, "k": self.k}
        call = {name: v.to(device) for name, v in call.items() if v is not None}
        seen = []
        for step in range(steps):
            theta = self.theta.detach().clone().to(device).requires_grad_()
            key = torch.tensor([self.dy_seed, step], device=device)
            z = layer(theta, key=key, **call)
            z.backward(self.dy(z.shape, step).to(device))
            buffers = [b.clone() for name, b in layer.named_buffers() if name != "table"]
            seen += [z.detach(), theta.grad, *buffers]
        return [tensor.cpu() for tensor in seen]

    def dy(self, shape: torch.Size, step: int) -> Tensor:
        generator = torch.Generator().manual_seed(self.dy_seed + step)
        dy = torch.randn(shape, generator=generator, dtype=torch.float64)
        rows = dy.view(-1, self.theta.shape[-1])
        if self.zero_dy:
            rows[torch.rand(len(rows), generator=generator) < 0.3] = 0.0
            rows[torch.rand(len(rows), generator=generator) < 0.2] *= 1e-9
        if self.nan_dy:
            rows[torch.rand(len(rows), generator=generator) < 0.1, 0] = math.nan
            rows[torch.rand(len(rows), generator=generator) < 0.1, -1] = math.inf
        return dy.to(self.theta.dtype)


def random_target(rng: random.Random, noise: aimle.Noise | None):
    if rng.random() < 0.2:
        return aimle.FixedTarget(rng.choice([0.0, 0.3, 5.0]))
    if rng.random() < 0.1:
        return aimle.AdaptiveTarget.reference()
    settings = {
        "scope": rng.choice(["example", "sample", "batch"]),
        "scale": rng.choice(["auto", "theta"] + ["noise"] * (noise is not None)),
    }
    if rng.random() < 0.5:
        return aimle.AdaptiveTarget(rng.choice([0.1, 0.5, 2.0]), **settings)
    return aimle.AdaptiveTarget.paper(
        rng.choice([0.0, 0.5, 2.0]),
        step=rng.choice([1e-3, 0.1]),
        target_norm=rng.choice([0.5, 1.0, 4.0]),
        momentum=rng.choice([0.0, 0.5]),
        **settings,
    )


def random_case(solver_name: str, seed: int) -> Case:
    rng = random.Random(seed)
    noise = rng.choice([None, *NOISES[:5]])
    batch = rng.choice([1, 5, 40, 1500]) if rng.random() < 0.5 else rng.randint(1, 12)
    samples = rng.choice([1, 2, 3, 10, 33]) if batch < 1000 else 1
    dtype = rng.choice([torch.float32, torch.float32, torch.float64, torch.bfloat16])
    n, k, mask, theta = rng.choice([5, 8, 20, 31]), None, None, None
    if solver_name in ("topk", "argmax") and rng.random() < 0.4 and batch < 1000:
        n = rng.choice([33, 64, 130, 350, 1000, 1300])
    if solver_name == "tree":
        vertices = rng.choice([2, 5, 10, 17])
        solver = aimle.SpanningTree(vertices)
        n = vertices * (vertices - 1) // rng.choice([1, 2])
    elif solver_name == "grid":
        solver = aimle.GridPath(rng.choice([4, 8]))
        theta = random_plain(rng, (batch, rng.randint(1, 6), rng.randint(1, 7)), dtype).abs()
    elif solver_name == "lattice":
        moves = rng.choice(["all", "straight", "diagonal"])
        shape = (batch, rng.randint(3, 9), rng.randint(1, 3))
        solver = rng.choice([aimle.LatticePath, aimle.LatticeMoves])(moves)
        shape += (3,) * isinstance(solver, aimle.LatticeMoves)
        theta = random_plain(rng, shape, dtype)
        if rng.random() < 0.4:
            mask = torch.ones(shape, dtype=torch.bool)
            mask[::2, 3:] = False
    elif solver_name == "argmax":
        solver = aimle.Argmax()
    else:
        solver = aimle.TopK(rng.randint(0, n // 2))
        if rng.random() < 0.3:
            k = torch.tensor([rng.randint(0, n // 2) for _ in range(batch)])
    if theta is None:
        theta = random_plain(rng, (batch, n), dtype)
    if solver_name in ("topk", "argmax"):
        generator = torch.Generator().manual_seed(seed)
        u = torch.rand(batch, n, generator=generator)
        if rng.random() < 0.3:
            mask = u > 0.2
            mask[:, : n // 2 + 1] = True
        if rng.random() < 0.2 and mask is None:
            theta[(u < 0.2) & (torch.arange(n) > n // 2)] = -math.inf
            theta[u > 0.97] = math.inf
        if rng.random() < 0.2:
            theta[torch.rand(batch, generator=generator) < 0.2, 0] = math.nan
    settings = {
        "noise": noise,
        "nb_samples": samples,
        "target": random_target(rng, noise),
        "symmetric_perturbation": rng.random() < 0.6,
        "theta_noise_temperature": rng.choice([1.0, 0.5]),
        "target_noise_temperature": rng.choice([None, 1.0]),
        "output": rng.choice(["samples", "flat", "mean"]),
        "sense": rng.choice([None, "max", "min"]) if solver_name != "grid" else None,
    }
    return Case(
        solver,
        settings,
        theta,
        mask,
        k,
        dy_seed=seed,
        zero_dy=rng.random() < 0.3,
        nan_dy=rng.random() < 0.2,
    )


def random_plain(rng: random.Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    generator = torch.Generator().manual_seed(rng.getrandbits(60))
    theta = torch.randn(shape, generator=generator, dtype=torch.float64)
    return (theta if rng.random() < 0.8 else theta.round()).to(dtype)


def assert_same_case(case: Case, gpu: torch.device, told: str) -> None:
    expected, got = case.run(torch.device("cpu")), case.run(gpu)
    names = ["z", "gradient", *(f"buffer {i}" for i in range(len(expected) // 2 - 2))] * 2
    for i, (name, e, g) in enumerate(zip(names, expected, got, strict=True)):
        step = i // (len(expected) // 2)
        assert same(g, e), (
            f"{told}, step {step}: {name} of {tuple(case.theta.shape)} {case.theta.dtype}, "
            f"{case.solver}, {case.settings}, mask={case.mask is not None}, "
            f"k={case.k is not None}, zero_dy={case.zero_dy}, nan_dy={case.nan_dy}: "
            f"{(g != e).sum()} differ, "
            f"first at {(g != e).nonzero()[:1].tolist()}"
        )


@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("solver", ["topk", "argmax", "tree", "grid", "lattice"])
def test_layers(solver: str, part: int, gpu: torch.device):
    for seed in range(40 * part, 40 * part + 40):
        assert_same_case(random_case(solver, seed), gpu, f"seed {seed}")


CLIPPED = _ALL_STATS.index("clipped_share")


def seen_alike(case: Case) -> bool:
    """Whether a callable knows what the native solver knows: not of rows with one solution, nor of
    the two directions of an edge, unless the paper's rule ignores both."""
    if published(case.settings["target"]):
        return True
    solver, n = case.solver, case.theta.shape[-1]
    if isinstance(solver, aimle.SpanningTree):
        return n == solver.n * (solver.n - 1) // 2 > solver.n - 1
    return not isinstance(solver, aimle.Argmax | aimle.TopK) or 0 < getattr(solver, "k", 1) < n


@pytest.mark.parametrize("solver", ["topk", "argmax", "tree", "grid", "lattice"])
def test_staged_layers(solver: str, gpu: torch.device):
    """A callable's stages: the same bits on both devices, and as the fused layer."""
    for seed in range(40):
        case = random_case(solver, seed)
        if case.k is not None or case.mask is not None or not case.theta.isfinite().all():
            continue
        if not seen_alike(case):
            continue
        fused = case.run(torch.device("cpu"))
        staged = case.run(gpu, solver=Disguised(case.solver))
        for e, g in zip(fused, staged, strict=True):
            if e.shape == (len(_ALL_STATS),):  # a callable does not tell what it clips
                e[CLIPPED] = g[CLIPPED] = 0.0
            assert same(g, e), f"seed {seed}: {case}"


@pytest.mark.parametrize("estimator", [aimle.IMLE, aimle.DBB, aimle.STE, aimle.Identity])
def test_every_estimator(estimator: type, gpu: torch.device):
    for seed in range(10):
        case = random_case("topk", seed)
        kept = ("nb_samples", "noise") if estimator in (aimle.IMLE, aimle.STE) else ()
        case.settings = {name: case.settings[name] for name in kept}
        case.estimator, case.zero_dy = estimator, False
        if estimator is aimle.Identity:  # its projection is PyTorch's own, which rounds its own way
            expected, got = case.run(torch.device("cpu"), steps=1), case.run(gpu, steps=1)
            torch.testing.assert_close(got[1], expected[1], equal_nan=True)
            continue
        assert_same_case(case, gpu, f"seed {seed}")


def test_eval_mode(gpu: torch.device):
    theta = torch.randn(30, 20)
    results = []
    for device in (torch.device("cpu"), gpu):
        layer = aimle.AIMLE(aimle.TopK(5), nb_samples=3).to(device).eval()
        x = theta.clone().to(device).requires_grad_()
        z = layer(x)
        z.backward(torch.ones_like(z) * torch.arange(20, device=device))
        results.append((z.detach().cpu(), x.grad.cpu()))
    assert all(same(g, e) for e, g in zip(*results, strict=True))
