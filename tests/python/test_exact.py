"""Exact distributions against lists of structures, finite differences and multiprecision."""

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator

import mpmath
import networkx as nx
import numpy as np
import oracles
import pytest
import torch
from torch import Tensor
from torch.library import opcheck

import aimle
from aimle import exact

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")

ops = torch.ops.aimle


@pytest.fixture(autouse=True)
def everything_on_the_device(device: torch.device) -> Iterator[None]:
    with contextlib.nullcontext() if device.type == "cpu" else device:
        yield


def seeded(*shape: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    generator = torch.Generator("cpu").manual_seed(seed)
    x = torch.randn(*shape, generator=generator, dtype=torch.float64, device="cpu")
    return scale * x.to(torch.get_default_device())


def subsets(n: int, k: int) -> Tensor:
    chosen = list(itertools.combinations(range(n), k))
    z = torch.zeros(len(chosen), n, dtype=torch.float64)
    for row, entries in zip(z, chosen, strict=True):
        row[list(entries)] = 1
    return z


def trees(n: int) -> Tensor:
    """Those sets of n - 1 edges that reach every vertex."""
    found = []
    for z in subsets(n * (n - 1) // 2, n - 1):
        chosen = [edge for edge, used in zip(oracles.edges(n), z.tolist(), strict=True) if used]
        graph = nx.Graph(chosen)
        if len(graph) == n and nx.is_connected(graph):
            found.append(z)
    return torch.stack(found)


def directed(z: Tensor, n: int) -> Tensor:
    position = {edge: index for index, edge in enumerate(oracles.edges(n))}
    return z[:, [position[min(arc), max(arc)] for arc in oracles.arcs(n)]]


# A solver, the number of entries of a row, and all its structures.
STRUCTURES: dict[str, tuple[aimle.Solver, int, Callable[[], Tensor]]] = {
    "categorical": (aimle.Argmax(), 6, lambda: torch.eye(6, dtype=torch.float64)),
    "k_subset": (aimle.TopK(3), 7, lambda: subsets(7, 3)),
    "tree": (aimle.SpanningTree(5), 10, lambda: trees(5)),
    "directed_tree": (aimle.SpanningTree(4), 12, lambda: directed(trees(4), 4)),
}


@pytest.fixture(params=STRUCTURES)
def structures(request: pytest.FixtureRequest) -> tuple[aimle.Solver, int, Tensor]:
    solver, n, build = STRUCTURES[request.param]
    return solver, n, build()


# ---- Values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_values_are_those_of_the_list(structures, scale: float):
    solver, n, z = structures
    x, v = seeded(20, n, scale=scale), seeded(20, n, seed=1)
    exponents = x @ z.T
    p = exponents.softmax(-1)
    mu = p @ z
    along = v @ z.T
    cov = (p * (along - (p * along).sum(-1, keepdim=True))) @ z
    torch.testing.assert_close(exact.log_partition(solver, x), exponents.logsumexp(-1))
    torch.testing.assert_close(exact.marginals(solver, x), mu, rtol=1e-10, atol=1e-14)
    torch.testing.assert_close(exact.covariance(solver, x, v), cov, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_other_dtypes_are_the_same_numbers_rounded(structures, dtype: torch.dtype):
    solver, n, _ = structures
    x, v = seeded(4, 5, n).to(dtype), seeded(4, 5, n, seed=1).to(dtype)
    for function, extra in (
        (exact.log_partition, ()),
        (exact.marginals, ()),
        (exact.covariance, (v,)),
    ):
        got = function(solver, x, *extra)
        assert got.dtype == dtype
        expected = function(solver, x.double(), *(t.double() for t in extra))
        torch.testing.assert_close(got, expected.to(dtype))


def test_a_hundred_of_a_thousand_in_float32():
    x = seeded(2, 1000, scale=10.0).float()
    mu = exact.marginals(aimle.TopK(100), x)
    assert mu.min() >= 0
    assert mu.max() <= 1
    torch.testing.assert_close(mu.double().sum(-1), torch.full((2,), 100.0).double())
    assert exact.log_partition(aimle.TopK(100), x).isfinite().all()


def test_masks_and_k_per_row():
    x = seeded(3, 6)
    mask = torch.tensor([True, True, False, True, True, True])
    k = torch.tensor([0, 2, 5])
    mu = exact.marginals(aimle.TopK(1), x, mask=mask, k=k)
    torch.testing.assert_close(mu.sum(-1), k.double())
    assert (mu[:, 2] == 0).all()
    for row in range(3):
        alone = exact.marginals(aimle.TopK(int(k[row])), x[row][mask])
        torch.testing.assert_close(mu[row][mask], alone)
    assert torch.equal(exact.marginals(aimle.TopK(1), x, k=2), exact.marginals(aimle.TopK(2), x))


def test_trees_of_equal_weights():
    mu = exact.marginals(aimle.SpanningTree(10), torch.full((45,), 3.0))
    torch.testing.assert_close(mu, torch.full((45,), 0.2), rtol=1e-7, atol=0)


def tree_logits(kind: str) -> Tensor:
    """45 logits of a graph of 10 vertices."""
    if kind == "random":
        return seeded(45, scale=12.0).clamp(-30, 30)
    if kind == "uniform":
        generator = torch.Generator("cpu").manual_seed(2)
        uniform = torch.rand(45, generator=generator, device="cpu").double()
        return (60 * uniform - 30).to(torch.get_default_device())
    return torch.tensor(
        [30.0 if (i < 5) == (j < 5) else -30.0 for i, j in oracles.edges(10)]
    ).double()


@pytest.mark.parametrize("kind", ["random", "uniform", "clusters"])
def test_trees_are_those_of_multiprecision(kind: str):
    """Kirchhoff's theorem with 120 digits: the determinant, its inverse, and their derivatives."""
    n, x, v = 10, tree_logits(kind), seeded(45, seed=3)

    def marginals_at(logits: list) -> tuple[object, list]:
        laplacian = mpmath.zeros(n)
        for (i, j), logit in zip(oracles.edges(n), logits, strict=True):
            w = mpmath.exp(logit)
            laplacian[i, i] += w
            laplacian[j, j] += w
            laplacian[i, j] -= w
            laplacian[j, i] -= w
        reduced = laplacian[: n - 1, : n - 1]
        inverse = reduced**-1
        green = lambda i, j: inverse[i, j] if max(i, j) < n - 1 else mpmath.mpf(0)  # noqa: E731
        mu = [
            mpmath.exp(logit) * (green(i, i) + green(j, j) - 2 * green(i, j))
            for (i, j), logit in zip(oracles.edges(n), logits, strict=True)
        ]
        return mpmath.log(mpmath.det(reduced)), mu

    with mpmath.workdps(120):
        logits = [mpmath.mpf(value) for value in x.tolist()]
        step = mpmath.mpf(10) ** -40
        log_z, mu = marginals_at(logits)
        _, ahead = marginals_at([a + step * b for a, b in zip(logits, v.tolist(), strict=True)])
        cov = [float((b - a) / step) for a, b in zip(mu, ahead, strict=True)]
        log_z, mu = float(log_z), [float(value) for value in mu]

    tree = aimle.SpanningTree(n)
    assert exact.log_partition(tree, x).item() == pytest.approx(log_z, rel=1e-14)
    got = exact.marginals(tree, x)
    torch.testing.assert_close(got, torch.tensor(mu, dtype=torch.float64), rtol=1e-13, atol=0)
    torch.testing.assert_close(got.sum(), torch.tensor(9.0).double(), rtol=1e-14, atol=0)
    torch.testing.assert_close(
        exact.covariance(tree, x, v), torch.tensor(cov, dtype=torch.float64), rtol=0, atol=1e-14
    )


# ---- Gradients -----------------------------------------------------------------------------------


def test_gradients(structures):
    solver, n, _ = structures
    x = seeded(2, n).requires_grad_()
    v = seeded(2, n, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: exact.log_partition(solver, x), x)
    assert torch.autograd.gradgradcheck(lambda x: exact.log_partition(solver, x), x)
    assert torch.autograd.gradcheck(lambda x: exact.marginals(solver, x), x)
    assert torch.autograd.gradcheck(lambda v: exact.covariance(solver, x.detach(), v), v)


def test_a_third_derivative_is_refused(structures):
    solver, n, _ = structures
    x = seeded(n).requires_grad_()
    (first,) = torch.autograd.grad(exact.marginals(solver, x)[0], x, create_graph=True)
    with pytest.raises(NotImplementedError, match=r"covariance.*scores"):
        first[0].backward()


def test_gradients_with_masks_are_zero_where_masked():
    x = seeded(3, 6).requires_grad_()
    mask = torch.tensor([True, True, False, True, True, True])
    k = torch.tensor([1, 2, 4])
    assert torch.autograd.gradcheck(lambda x: exact.marginals(aimle.TopK(1), x, mask=mask, k=k), x)
    (exact.marginals(aimle.TopK(1), x, mask=mask, k=k)[:, 0].sum()).backward()
    assert (x.grad[:, 2] == 0).all()


def test_the_synthetic_study_has_the_gradient_known_for_it():
    random = np.random.RandomState(0)
    theta = torch.tensor(random.randn(10)).requires_grad_()
    b = torch.tensor(np.abs(random.randn(10)))
    assert theta[0].item() == pytest.approx(1.764052, abs=1e-6)
    assert b[0].item() == pytest.approx(0.144044, abs=1e-6)
    known = [0.11518, -0.09237, -0.04979, 0.19866, 0.00682, 0.00298, -0.16651, 0.01369, 0.00830]
    known.append(-0.03696)
    for solver in (aimle.Argmax(), aimle.TopK(1)):
        (gradient,) = torch.autograd.grad(exact.expected_square(solver, theta, b), theta)
        torch.testing.assert_close(gradient, torch.tensor(known).double(), rtol=0, atol=5e-6)


def test_expected_square_is_that_of_the_list(structures):
    solver, n, z = structures
    x = seeded(4, n).requires_grad_()
    b, weight = seeded(4, n, seed=1), seeded(n, seed=2)
    f = (weight * (z - b.unsqueeze(1)).square()).sum(-1)
    expected = ((x @ z.T).softmax(-1) * f).sum(-1)
    got = exact.expected_square(solver, x, b, weight=weight)
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(
        torch.autograd.grad(got.sum(), x), torch.autograd.grad(expected.sum(), x)
    )


# ---- Lists ---------------------------------------------------------------------------------------


def rows(z: Tensor) -> set[tuple]:
    return {tuple(row) for row in z.flatten(1).int().tolist()}


def test_structures_are_all_of_them(structures):
    solver, n, z = structures
    listed = exact.structures(solver, torch.zeros(2, n))
    assert listed.dtype == torch.uint8
    assert listed.shape == z.shape
    assert rows(listed) == rows(z)


def test_the_expectation_of_z_is_the_marginals(structures):
    solver, n, _ = structures
    x = seeded(2, 3, n)
    torch.testing.assert_close(exact.expected(solver, x, lambda z: z), exact.marginals(solver, x))
    torch.testing.assert_close(exact.probabilities(solver, x).sum(-1), torch.ones(2, 3).double())


def entangled(z: Tensor) -> Tensor:
    """A function of all of z, on its last dimension."""
    weights = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype)
    return torch.sin((z * weights).sum(-1)) + torch.where(z > 0, 1.3, 0.9).prod(-1)


def test_the_gradient_of_any_function(structures):
    solver, n, _ = structures
    x, h = seeded(2, n), 1e-5
    gradient = exact.exact_gradient(solver, x, entangled)
    assert gradient.shape == x.shape
    for j in range(n):
        shift = torch.zeros(n, dtype=x.dtype)
        shift[j] = h
        ahead = exact.expected(solver, x + shift, entangled)
        behind = exact.expected(solver, x - shift, entangled)
        torch.testing.assert_close(gradient[:, j], (ahead - behind) / (2 * h), rtol=1e-6, atol=1e-9)


def test_the_gradient_of_a_square_by_list_and_in_closed_form(structures):
    solver, n, _ = structures
    x, b = seeded(3, n), seeded(3, n, seed=1)
    listed = exact.exact_gradient(solver, x, lambda z: (z - b.unsqueeze(1)).square().sum(-1))
    leaf = x.clone().requires_grad_()
    (closed,) = torch.autograd.grad(exact.expected_square(solver, leaf, b).sum(), leaf)
    torch.testing.assert_close(listed, closed)
    torch.testing.assert_close(closed, -2 * exact.covariance(solver, x, b))


@pytest.mark.parametrize("neighbourhood", [4, 8])
def test_grid_paths(neighbourhood: int):
    solver = aimle.GridPath(neighbourhood)
    x, v = seeded(2, 3, 4).requires_grad_(), seeded(2, 3, 4, seed=1)
    z = exact.structures(solver, x).double()
    p = torch.softmax(-torch.einsum("bij,nij->bn", x, z), -1)
    mu = exact.marginals(solver, x)
    torch.testing.assert_close(mu, torch.einsum("bn,nij->bij", p, z))
    torch.testing.assert_close(mu[:, 0, 0], torch.ones(2).double())
    (of_log_partition,) = torch.autograd.grad(exact.log_partition(solver, x).sum(), x)
    torch.testing.assert_close(of_log_partition, -mu)
    (of_mu,) = torch.autograd.grad((mu * v).sum(), x)
    torch.testing.assert_close(of_mu, -exact.covariance(solver, x, v))
    count = 5000
    drawn = exact.sample(solver, x.detach(), torch.tensor([1, 2]), count)
    assert drawn.shape == (2, count, 3, 4)
    assert rows(drawn.flatten(0, 1)) <= rows(z)
    error = 5 * (mu * (1 - mu) / count).clamp_min(0).sqrt() + 1e-9
    assert ((drawn.mean(1) - mu).abs() <= error).all()
    costs = x.detach() + 3
    best = exact.structures(solver, x)[(costs.unsqueeze(1) * z).sum((-1, -2)).argmin(-1)]
    assert torch.equal(best.double(), solver(costs))


def test_grid_paths_around_walls():
    costs = seeded(2, 3, 3)
    costs[0, 1, 1] = math.inf
    mask = torch.ones(3, 3, dtype=torch.bool)
    mask[1, 1] = False
    solver = aimle.GridPath(4)
    masked = exact.marginals(solver, seeded(2, 3, 3), mask=mask)
    assert (masked[:, 1, 1] == 0).all()
    torch.testing.assert_close(exact.marginals(solver, costs)[0], masked[0])
    mask[0, 0] = False
    with pytest.raises(ValueError, match="leave none"):
        exact.marginals(solver, costs, mask=mask)


def test_lists_that_are_too_long_are_refused():
    for solver, x, words in (
        (aimle.TopK(30), torch.ones(60), "at most 1000000"),
        (aimle.SpanningTree(8), torch.ones(28), "vertices=8"),
        (aimle.GridPath(), torch.ones(5, 4), "4 x 4"),
    ):
        with pytest.raises(ValueError, match=words):
            exact.structures(solver, x)
    with pytest.raises(ValueError, match=r"\[N, ...\] or \[\*batch, N\]"):
        exact.expected(aimle.Argmax(), torch.ones(3), lambda z: z.sum())


# ---- Samples -------------------------------------------------------------------------------------


def test_samples_have_the_marginals(structures):
    solver, n, _ = structures
    x = seeded(2, 3, n)
    count = 20_000
    z = exact.sample(solver, x, torch.tensor([5, 6]), count)
    assert z.shape == (2, 3, count, n)
    assert ((z == 0) | (z == 1)).all()
    mu = exact.marginals(solver, x)
    error = (z.mean(-2) - mu).abs()
    assert (error <= 5 * (mu * (1 - mu) / count).sqrt() + 1e-12).all()


def test_samples_are_a_function_of_the_key(structures):
    solver, n, _ = structures
    x, key = seeded(4, n), torch.tensor([5, 6])
    z = exact.sample(solver, x, key, 7)
    assert torch.equal(z, exact.sample(solver, x, key, 7))
    assert torch.equal(z[:, :3], exact.sample(solver, x, key, 3))
    assert torch.equal(z[:2], exact.sample(solver, x[:2], key, 7))
    assert torch.equal(z[:, 0], exact.sample(solver, x, key))
    assert not torch.equal(z, exact.sample(solver, x, torch.tensor([5, 7]), 7))
    assert not exact.sample(solver, x.requires_grad_(), key).requires_grad


# ---- Misuse --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: exact.marginals("topk", x), TypeError, "aimle.TopK.*str"),
        (lambda x: exact.marginals(aimle.TopK(9), x), ValueError, "k <= n.*k=9, n=6"),
        (lambda x: exact.marginals(aimle.TopK(2), x, k=2.0), TypeError, "k to be an int.*float"),
        (lambda x: exact.marginals(aimle.Argmax(), x, k=2), TypeError, "Argmax takes no k"),
        (lambda x: exact.marginals(aimle.Argmax(), [1.0]), TypeError, "scores.*tensor.*list"),
        (lambda x: exact.marginals(aimle.Argmax(), x.long()), TypeError, "float32.*int64"),
        (lambda x: exact.marginals(aimle.TopK(2), x * -math.inf), ValueError, "row 0.*k=2.*0 of 6"),
        (
            lambda x: exact.covariance(aimle.TopK(2), x, x[0]),
            ValueError,
            "v of the shape of scores",
        ),
        (lambda x: exact.sample(aimle.TopK(2), x, x), TypeError, "key of int64"),
        (
            lambda x: exact.sample(aimle.TopK(2), x, torch.tensor([1, 2]), 0),
            ValueError,
            "nb_samples >= 1",
        ),
        (lambda x: ops.marginals(x, "grid_path", []), ValueError, "expected solver"),
        (lambda x: ops.marginals(x, "topk", []), ValueError, "1 solver_args"),
    ],
)
def test_misuse_is_named(call: Callable, error: type[Exception], words: str, device: torch.device):
    if device.type == "cuda" and words.startswith("row"):
        pytest.skip("what is found in a row raises on the CPU alone")
    with pytest.raises(error, match=words):
        call(torch.ones(3, 6))


@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_a_grid_without_a_distribution_gives_nan(value: float):
    costs = seeded(2, 3, 3)
    costs[1, 1, 1] = value
    solver = aimle.GridPath()
    for got in (
        exact.marginals(solver, costs),
        exact.covariance(solver, costs, costs),
        exact.sample(solver, costs, torch.tensor([1, 2])),
    ):
        assert got[0].isfinite().all()
        assert got[1].isnan().all()


def test_a_row_of_nan_gives_nan():
    x = seeded(3, 6)
    x[1, 2] = math.nan
    mu = exact.marginals(aimle.TopK(2), x)
    assert mu[1].isnan().all()
    assert mu[0].isfinite().all()
    assert mu[2].isfinite().all()


# ---- The ops under PyTorch's own checks ----------------------------------------------------------


@pytest.mark.parametrize("with_gradient", [False, True])
def test_opcheck(structures, with_gradient: bool):
    solver, n, _ = structures
    settings = solver.layer_arguments()
    x = seeded(3, n).requires_grad_(with_gradient)
    key = torch.tensor([1, 2])
    opcheck(ops.structures.default, (*settings, [n]))
    # The covariance's own gradient in the scores is refused, so only v takes one.
    for op, arguments in (
        (ops.log_partition.default, (x,)),
        (ops.marginals.default, (x,)),
        (ops.covariance.default, (x.detach(), seeded(3, n).requires_grad_(with_gradient))),
        (ops.exact_sample.default, (x, key, 4)),
    ):
        opcheck(op, (*arguments, *settings), {"mask": torch.ones(n) > 0})


def test_compiled_values_and_gradients_equal_eager(structures):
    solver, n, _ = structures

    def loss(x: Tensor) -> Tensor:
        return exact.log_partition(solver, x).sum() + exact.marginals(solver, x).square().sum()

    torch._dynamo.reset()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager", dynamic=True)
    for batch in (3, 5):
        x = seeded(batch, n).requires_grad_()
        (expected,) = torch.autograd.grad(loss(x), x)
        (got,) = torch.autograd.grad(compiled(x), x)
        torch.testing.assert_close(got, expected)
