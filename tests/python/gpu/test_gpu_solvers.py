"""GPU and CPU give the same solutions and statuses on thousands of instances."""

import math

import pytest
import torch
from torch import Tensor

import aimle

pytestmark = pytest.mark.usefixtures("gpu")

ops = torch.ops.aimle
CHECK_NEVER = 0


def draw(shape: tuple[int, ...], how: str, dtype: torch.dtype, seed: int) -> Tensor:
    """Scores without ties, with many, or with infinities, zeros of both signs and some NaN."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(*shape, generator=generator, dtype=torch.float64)
    if how == "tied":
        x = (2 * x).round()
    if how == "extreme":
        values = torch.tensor([torch.inf, -torch.inf, 0.0, -0.0, 1e-310, 1e30, -1e30, 1.0])
        picked = values.double()[torch.randint(8, shape, generator=generator)]
        x = torch.where(torch.rand(shape, generator=generator) < 0.5, picked, x)
        x[torch.rand(shape, generator=generator) < 0.3 / max(x[0].numel(), 1)] = torch.nan
    return x.to(dtype)


def draw_mask(shape: tuple[int, ...], seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    rarity = torch.rand(shape[0], *[1] * (len(shape) - 1), generator=generator) * 0.4
    return torch.rand(shape, generator=generator) >= rarity


def assert_same(name: str, on_cpu: tuple[Tensor, ...], on_gpu: tuple[Tensor, ...]) -> None:
    for what, a, b in zip(("z", "status"), on_cpu, on_gpu, strict=True):
        same = (a == b.cpu()) | (a.isnan() & b.cpu().isnan())
        wrong = ~same if a.dim() == 1 else (~same).flatten(1).any(1)
        rows = wrong.nonzero().flatten().tolist()
        assert not rows, f"{name}: {what} differs in rows {rows[:5]} of {len(a)}"


def tree(vertices: int, directed: bool = False) -> tuple:
    edges = vertices * (vertices - 1) // 2
    name = f"tree{vertices}{'d' * directed}"
    return (name, (edges * (1 + directed),), f"spanning_tree:n={vertices}")


def grid(height: int, width: int, **settings) -> tuple:
    text = aimle.GridPath(**settings).text
    return (f"grid{height}x{width}{settings}", (height, width), text)


def chain(length: int, labels: int) -> tuple:
    name = f"chain of {length}, {labels} labels"
    return (name, (length - 1, labels, labels), "chain")


def lattice(height: int, width: int, moves: str = "all") -> tuple:
    return (f"lattice{height}x{width}{moves}", (height, width), f"lattice_path:moves={moves}")


def lattice_moves(height: int, width: int, moves: str = "all") -> tuple:
    name, shape, _ = lattice(height, width, moves)
    return (f"{name}_moves", (*shape, 3), f"lattice_moves:moves={moves}")


def topk(n: int, k: int) -> tuple:
    return (f"top{k}of{n}", (n,), f"topk:k={k}")


# Name, shape of an instance, solver; and how many instances of it.
SOLVERS = [
    *[(400, ("argmax" + str(n), (n,), "argmax")) for n in (1, 7, 33, 1000, 3000)],
    *[(400, topk(n, k)) for n, k in ((1, 1), (5, 0), (20, 10), (33, 7), (128, 128), (1000, 50))],
    *[(40, topk(n, k)) for n, k in ((2000, 700), (20000, 100))],
    *[(3, topk(n, k)) for n, k in ((70000, 100), (200001, 100000))],
    *[(600, tree(n, directed)) for n in (1, 2, 3, 10, 30, 32) for directed in (False, True)],
    *[(60, tree(n, directed)) for n in (33, 64, 130) for directed in (False, True)],
    *[(3, tree(n, directed)) for n in (300, 400) for directed in (False, True)],
    *[(600, grid(*g)) for g in ((1, 1), (1, 5), (3, 3), (12, 12))],
    (600, grid(5, 7, neighbourhood=4)),
    (600, grid(9, 4, source=(-1, 0))),
    *[(100, grid(*g)) for g in ((30, 30), (70, 50))],
    (100, grid(24, 31, neighbourhood=4, source=(3, 3), target=(20, 30))),
    (2, grid(130, 140)),
    (2, grid(100, 200, neighbourhood=4)),
    *[(600, ("bernoulli" + str(n), (n,), "bernoulli")) for n in (1, 31, 32, 33, 1000, 5000)],
    (2, ("bernoulli2000001", (2000001,), "bernoulli")),
    *[(600, chain(*c)) for c in ((1, 3), (2, 2), (5, 1), (4, 3), (9, 2), (12, 5), (50, 20))],
    *[(60, chain(*c)) for c in ((6, 32), (6, 33), (4, 64), (3, 150))],
    *[(3, chain(*c)) for c in ((3, 300), (1500, 30), (20000, 3))],
    *[
        (600, make(*size, moves))
        for make in (lattice, lattice_moves)
        for moves in ("all", "straight", "diagonal")
        for size in ((1, 1), (1, 5), (5, 1), (7, 4), (20, 30))
    ],
    *[
        (60, make(*size, moves))
        for make in (lattice, lattice_moves)
        for moves in ("all", "diagonal")
        for size in ((60, 40), (100, 90))
    ],
    *[(3, make(*size)) for make in (lattice, lattice_moves) for size in ((150, 140), (600, 700))],
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float", "double"])
@pytest.mark.parametrize(("count", "case"), SOLVERS, ids=[case[0] for _, case in SOLVERS])
def test_solutions_are_the_same(count: int, case: tuple, dtype: torch.dtype):
    name, instance, solver = case
    for seed, how in enumerate(("plain", "tied", "extreme")):
        scores = draw((count, *instance), how, dtype, seed)
        for mask in (None, draw_mask(scores.shape, seed)):
            on_gpu = None if mask is None else mask.cuda()
            assert_same(
                f"{name} {how}",
                ops.solve(scores, solver, mask=mask, check=CHECK_NEVER),
                ops.solve(scores.cuda(), solver, mask=on_gpu, check=CHECK_NEVER),
            )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float", "double"])
@pytest.mark.parametrize("n", [1, 9, 30, 200, 2000, 70000])
def test_solutions_with_a_k_per_row_are_the_same(n: int, dtype: torch.dtype):
    count = 300 if n < 1000 else 8
    for seed, how in enumerate(("plain", "tied", "extreme")):
        scores = draw((count, n), how, dtype, seed)
        k = torch.randint(-1, n + 2, (count,), generator=torch.Generator().manual_seed(seed))
        assert_same(
            f"top-k of {n}",
            ops.solve(scores, "topk:k=0", row_data=k, check=CHECK_NEVER),
            ops.solve(scores.cuda(), "topk:k=0", row_data=k.cuda(), check=CHECK_NEVER),
        )


def graph(vertices: int, edges: int, cls: type, seed: int = 0) -> aimle.Solver:
    """Edges between vertices that are often near, so that there are long paths."""
    generator = torch.Generator().manual_seed(seed)
    tails = torch.randint(vertices, (edges,), generator=generator)
    steps = torch.randint(1, max(2, vertices // 10), (edges,), generator=generator)
    if cls is aimle.GraphPath:
        steps = steps * (1 - 2 * (torch.rand(edges, generator=generator) < 0.3).long())
    ends = torch.stack([tails, (tails + steps) % vertices], -1)
    if cls is aimle.DagPath:
        ends = ends.sort(-1).values
        ends = ends[ends[:, 0] < ends[:, 1]]
    return cls(ends, 0, vertices - 1, vertices)


# Vertices and edges from a warp to a row to device memory.
GRAPHS = [(600, 2, 3), (600, 20, 60), (300, 64, 500), (100, 200, 1500), (40, 900, 7000)]
GRAPHS += [(4, 3000, 40000), (2, 30000, 100000)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float", "double"])
@pytest.mark.parametrize("cls", [aimle.GraphPath, aimle.DagPath])
@pytest.mark.parametrize(("count", "vertices", "edges"), GRAPHS)
def test_paths_over_graphs_are_the_same(
    count: int, vertices: int, edges: int, cls: type, dtype: torch.dtype
):
    solver = graph(vertices, edges, cls)
    edges = solver.edges.shape[0]
    several = torch.stack([solver.data, graph(vertices, edges, aimle.GraphPath, 1).data])
    for seed, how in enumerate(("plain", "tied", "extreme")):
        scores = draw((count, edges), how, dtype, seed)
        rows = several.repeat(-(-count // 2), 1)[:count]  # every second one no DAG
        for data, mask in ((solver.data, None), (rows, draw_mask(scores.shape, seed))):
            on_gpu = None if mask is None else mask.cuda()
            assert_same(
                f"{solver.text} {how}",
                ops.solve(scores, solver.text, mask, data, CHECK_NEVER),
                ops.solve(scores.cuda(), solver.text, on_gpu, data.cuda(), CHECK_NEVER),
            )


def test_negative_costs_are_refused_alike():
    costs = draw((200, 6, 5), "tied", torch.float32, 0)
    solver = "grid_path:negative=error"
    refused = [ops.solve(c, solver, check=CHECK_NEVER) for c in (costs, costs.cuda())]
    assert_same("grid", *refused)
    assert (refused[0][1] == int(aimle.Status.NEGATIVE_COST)).any()


def test_symmetrise_gives_the_same_bits():
    for dtype in (torch.float32, torch.float64):
        x = draw((500, 30), "extreme", dtype, 0)
        x[0, :3] = torch.finfo(dtype).max
        on_gpu = ops.symmetrise(x.cuda(), 6).cpu()
        assert torch.equal(ops.symmetrise(x, 6).nan_to_num(7.5), on_gpu.nan_to_num(7.5))


# Solver, shape of an instance.
EXACT = {
    "argmax": ("argmax", (12,)),
    "topk": ("topk:k=4", (11,)),
    "long_topk": ("topk:k=60", (500,)),
    "tree": ("spanning_tree:n=10", (45,)),
    "directed_tree": ("spanning_tree:n=7", (42,)),
    "large_tree": ("spanning_tree:n=33", (33 * 16,)),
    "bernoulli": ("bernoulli", (9,)),
    "chain": ("chain", (6, 4, 4)),
    "lattice": ("lattice_path", (6, 5)),
    "lattice_moves": ("lattice_moves", (4, 5, 3)),
}


@pytest.mark.parametrize("scale", [0.5, 40.0, 400.0])
@pytest.mark.parametrize(("solver", "shape"), EXACT.values(), ids=EXACT.keys())
def test_exact_distributions_agree(solver: str, shape: tuple[int, ...], scale: float):
    count = 40 if shape[0] > 100 else 200
    # A random mask leaves few sequences or alignments.
    for seed, masked in enumerate((False, True) if len(shape) == 1 else (False,)):
        x = scale * draw((count, *shape), "plain", torch.float64, seed)
        rows = x.view(count, -1)
        rows[0, 0], rows[1, 1] = torch.nan, -torch.inf
        v = draw((count, *shape), "plain", torch.float64, seed + 10)
        mask = draw_mask(x.shape, seed) if masked else None
        results = []
        for device in ("cpu", "cuda"):
            scores = x.to(device).requires_grad_()
            allowed = None if mask is None else mask.to(device)
            settings = {"mask": allowed, "check": CHECK_NEVER}
            a = ops.log_partition(scores, solver, **settings)
            mu = ops.marginals(scores, solver, **settings)
            (product,) = torch.autograd.grad(mu, scores, v.to(device))
            results.append([t.detach().cpu() for t in (a, mu, product)])
        assert results[0][1].view(count, -1).isfinite().all(-1).sum() > count / 4
        for on_cpu, on_gpu in zip(*results, strict=True):
            torch.testing.assert_close(on_gpu, on_cpu, rtol=1e-8, atol=1e-9, equal_nan=True)
        single = ops.marginals(x.float().cuda(), solver, mask=allowed, check=CHECK_NEVER)
        expected = ops.marginals(x.float(), solver, mask=mask, check=CHECK_NEVER)
        torch.testing.assert_close(single.cpu(), expected, rtol=1e-5, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("scale", [0.1, 1.0, 100.0])
@pytest.mark.parametrize(("solver", "shape"), EXACT.values(), ids=EXACT.keys())
def test_exact_samples_are_the_same(solver: str, shape: tuple[int, ...], scale: float):
    """But for a uniform number that falls between two roundings of one probability."""
    x = scale * draw((20, *shape), "plain", torch.float64, 3)
    rows = x.view(20, -1)
    rows[0, 0], rows[1, 1] = torch.nan, -torch.inf
    mask = draw_mask(x.shape, 4)
    key = torch.tensor([5, 6])
    for allowed in (None, mask) if len(shape) == 1 else (None,):
        on_gpu = None if allowed is None else allowed.cuda()
        a = ops.exact_sample(x, key, 30, solver, mask=allowed, check=CHECK_NEVER)
        b = ops.exact_sample(x.cuda(), key.cuda(), 30, solver, mask=on_gpu, check=CHECK_NEVER).cpu()
        assert torch.equal(a.isnan(), b.isnan())
        a, b = a.nan_to_num(7.0).flatten(2), b.nan_to_num(7.0).flatten(2)
        assert (a != b).any(-1).sum() <= 1
        if solver.startswith(("argmax", "topk", "spanning_tree")):
            assert torch.equal(a.sum(-1), b.sum(-1))


def test_exact_distributions_with_a_k_per_row_agree():
    x = draw((100, 15), "plain", torch.float64, 1)
    k = torch.arange(100) % 18 - 1
    on_cpu = ops.marginals(x, "topk:k=0", row_data=k, check=CHECK_NEVER)
    on_gpu = ops.marginals(x.cuda(), "topk:k=0", row_data=k.cuda(), check=CHECK_NEVER)
    torch.testing.assert_close(on_gpu.cpu(), on_cpu, rtol=1e-8, atol=1e-9, equal_nan=True)


def test_no_solver_waits_for_the_device():
    """In this debug mode PyTorch raises an error where a call waits."""
    x = draw((50, 45), "plain", torch.float32, 0).cuda()
    grids = x[:, :36].reshape(50, 6, 6)
    v = torch.ones_like(x)
    key = torch.tensor([5, 6])
    warm_up_then = [lambda: None, lambda: torch.cuda.set_sync_debug_mode("error")]
    try:
        for prepare in warm_up_then:
            prepare()
            ops.solve(x, "spanning_tree:n=10")
            ops.solve(grids, "grid_path")
            ops.solve(grids, "lattice_path")
            ops.covariance(grids, torch.ones_like(grids), "lattice_path")
            ops.exact_sample(grids, key, 3, "lattice_path")
            ops.solve(x, "topk:k=5")
            ops.marginals(x, "topk:k=5")
            ops.covariance(x, v, "spanning_tree:n=10")
            ops.log_partition(x, "argmax")
            for solver in ("argmax", "topk:k=5", "spanning_tree:n=10"):
                ops.exact_sample(x, key, 3, solver)
    finally:
        torch.cuda.set_sync_debug_mode("default")


# ---- Thresholds ----------------------------------------------------------------------------------

THRESHOLDS = {
    "argmax": (aimle.Argmax(), 7),
    "topk": (aimle.TopK(4), 11),
    "long_topk": (aimle.TopK(50), 2000),
    "tree": (aimle.SpanningTree(10), 45),
    "directed_tree": (aimle.SpanningTree(6), 30),
    "large_tree": (aimle.SpanningTree(40), 780),
    "bernoulli": (aimle.Bernoulli(), 70),
    "chain": (aimle.Chain(), (4, 3, 3)),
    "long_chain": (aimle.Chain(), (12, 20, 20)),
    "lattice": (aimle.LatticePath(), (6, 5)),
    "straight_lattice": (aimle.LatticePath("straight"), (5, 7)),
    "large_lattice": (aimle.LatticePath("diagonal"), (60, 40)),
    "lattice_moves": (aimle.LatticeMoves(), (4, 5, 3)),
}


def gradient_and_stats(settings: dict, call: dict, theta: Tensor, d: Tensor, device: str) -> list:
    layer = aimle.Thresholds(**settings).to(device)
    theta = theta.detach().to(device, copy=True).requires_grad_()
    call = {name: tensor.to(device) for name, tensor in call.items()}
    z = layer(theta, key=torch.tensor([11, 12], device=device), **call)
    z.backward(d.to(device).expand_as(z))
    return [z.detach().cpu(), theta.grad.cpu(), *(stat.cpu() for stat in layer.stats().values())]


@pytest.mark.parametrize(("solver", "size"), THRESHOLDS.values(), ids=THRESHOLDS.keys())
def test_thresholds_give_the_same_bits(solver: aimle.Solver, size: int | tuple[int, ...]):
    instance = (size,) if isinstance(size, int) else size
    n = math.prod(instance)
    count = 40 if n < 100 else 5
    for seed in range(24):
        pick = torch.Generator().manual_seed(seed)
        one_of = lambda *values: values[int(torch.randint(len(values), (1,), generator=pick))]  # noqa: B023, E731
        settings = {
            "solver": solver,
            "noise": one_of("gumbel", "logistic", "normal"),
            "nb_samples": one_of(1, 2, 5),
            "order": one_of("first", "trapezoid"),
            "output": one_of("samples", "mean"),
            "sense": one_of("max", "min"),
            "theta_noise_temperature": one_of(0.3, 1.0),
            "max_weight": one_of(0.4, 20.0),
        }
        dtype = one_of(torch.float32, torch.float64)
        theta = draw((count, *instance), one_of("plain", "tied"), dtype, seed)
        samples = [1] * (settings["output"] == "samples")
        d = draw((count, *samples, *instance), "plain", dtype, seed + 100)
        call = {}
        if one_of(True, False):
            mask = (torch.arange(n) % 9 != 4).reshape(instance)
            if isinstance(solver, aimle.LatticePath):  # some way through must be left
                mask[:, 0] = mask[-1] = mask[:, -1] = True
                mask.fill_diagonal_(True)
            call["mask"] = mask
        if isinstance(solver, aimle.TopK) and one_of(True, False):
            call["k"] = torch.arange(count) % 5
        on_cpu = gradient_and_stats(settings, call, theta, d, "cpu")
        on_gpu = gradient_and_stats(settings, call, theta, d, "cuda")
        for what, a, b in zip(range(len(on_cpu)), on_cpu, on_gpu, strict=True):
            same = (a == b) | (a.isnan() & b.isnan())
            assert same.all(), (
                f"seed {seed}, {settings}, {dtype}, {list(call)}: part {what} differs"
            )
