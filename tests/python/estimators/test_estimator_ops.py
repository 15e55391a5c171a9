"""The composed estimators as ops: PyTorch's own checks, symbolic sizes, torch.export."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.library import opcheck

import aimle

ops = torch.ops.aimle
KEY = torch.tensor([7, 11])
SOLVERS = {
    "gumbel_softmax": aimle.Argmax(),
    "gumbel_rao": aimle.Argmax(),
    "reinmax": aimle.Argmax(),
    "softsub": aimle.TopK(2),
    "l2x": aimle.TopK(2),
    "sst": aimle.TopK(2),
    "exact": aimle.TopK(2),
    "sfe": aimle.TopK(2),
}
RELAXATIONS = ("gumbel_softmax", "gumbel_rao", "softsub", "l2x", "sst")
EVERY = [*SOLVERS, "dpo", "aimle_covariance", "identity"]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)
    torch._dynamo.reset()


def scores(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3))


def arguments(name: str, output: str, hard: bool) -> tuple:
    settings = (None, None, KEY, SOLVERS[name].text, 3, output)
    return (*settings, torch.tensor(0.7), hard) if name in RELAXATIONS else settings


@pytest.mark.parametrize("name", SOLVERS)
def test_opcheck_of_samples(name: str):
    op = getattr(ops, name).default
    opcheck(op, (scores(4, 5).requires_grad_(), *arguments(name, "flat", hard=False)))
    rest = list(arguments(name, "samples", hard=True))
    rest[0] = torch.arange(5) < 4
    if isinstance(SOLVERS[name], aimle.TopK):
        rest[1] = torch.tensor([2, 0, 1, 2])
    opcheck(op, (scores(4, 5), *rest))
    rest[2] = None  # without noise
    opcheck(op, (scores(4, 5), *rest))


def test_bad_arguments_of_ops_are_named():
    theta, rest = scores(4, 5), (None, None, KEY, "topk:k=2")
    for call, error, message in (
        (lambda: ops.exact(theta.long(), *rest, 3, "flat"), TypeError, "theta of a floating-point"),
        (lambda: ops.exact(theta, *rest, 0, "flat"), ValueError, "nb_samples >= 1"),
        (lambda: ops.exact(theta, *rest, 3, "sum"), ValueError, 'output to be "samples" or "flat"'),
        (lambda: ops.softsub(theta, *rest, 3, "flat"), ValueError, "softsub.* a temperature"),
        (lambda: ops.reinmax(theta, *rest, 3, "flat"), TypeError, 'not apply to solver "topk:k=2"'),
        (
            lambda: ops.noise_score(theta, "none"),
            ValueError,
            'noise to be one of .*"logistic" but got "none"',
        ),
        (
            lambda: ops.project(theta, "half", 1, None),
            ValueError,
            'projection to be one of .*"half"',
        ),
    ):
        with pytest.raises(error, match=message):
            call()


def test_opcheck_of_surrogates():
    theta, z = scores(4, 5).requires_grad_(), aimle.TopK(2)(scores(4, 3, 5))
    f = scores(4, 3).requires_grad_()
    for rows in ((None, None), (torch.arange(5) < 5, torch.tensor([2, 2, 2, 2]))):
        for leave_one_out in (False, True):
            settings = (*rows, "topk:k=2", leave_one_out)
            opcheck(ops.sfe_surrogate.default, (theta, z, f, *settings))
            flat = (theta, z.flatten(0, 1), f.flatten(), *settings)
            opcheck(ops.sfe_surrogate.default, flat)
    for samples in (3, 1):  # one sample has no covariance
        call = (theta, z[:, :samples], f[:, :samples], 0.5, -0.7, 1)
        opcheck(ops.covariance_surrogate.default, call)
    opcheck(ops.scale_gradient.default, (theta, 0.25))


@pytest.mark.parametrize("noise", ["normal", "gumbel", "logistic"])
def test_opcheck_of_perturbed_optimisers(noise: str):
    theta, eps, target = scores(4, 5).requires_grad_(), scores(3, 4, 5), scores(4, 5)
    opcheck(ops.noise_score.default, (eps, noise))
    z, mask = aimle.TopK(2)(theta + eps), torch.arange(5) < 4
    for tau, dims in ((0.7, 1), (-0.7, 2)):
        solutions = (eps, z, mask)
        for flag in (False, True):
            opcheck(ops.dpo.default, (theta, *solutions, noise, tau, dims, flag))
            call = (theta, target, *solutions, tau, dims, flag)
            opcheck(ops.fenchel_young.default, call)


@pytest.mark.parametrize("projection", ["std", "mean", "norm", "none"])
def test_opcheck_of_projections(projection: str):
    for dims, mask in ((1, None), (2, torch.arange(5) < 4)):
        opcheck(ops.project.default, (scores(4, 3, 5).requires_grad_(), projection, dims, mask))


def test_opcheck_of_directions():
    tree = "spanning_tree:n=4"
    both, edges = scores(3, 12).requires_grad_(), scores(3, 6).requires_grad_()
    mask = torch.arange(12) > 0
    for x, solver in ((both, tree), (mask, tree), (edges, tree), (both, "topk:k=2")):
        opcheck(ops.undirected.default, (x, solver))
    for like in (both, edges):
        opcheck(ops.directed.default, (edges, like, tree))
    sums = ops.undirected(both, tree)
    torch.testing.assert_close(sums.sum(-1), both.sum(-1))
    assert torch.equal(ops.undirected(ops.directed(sums, both, tree), tree), 2 * sums)
    assert ops.undirected(mask, tree).tolist().count(False) == 1
    for unchanged in (edges, torch.ones(1, dtype=torch.bool), torch.tensor(True)):
        assert torch.equal(ops.undirected(unchanged, tree), unchanged)


def by_sorting(x: Tensor) -> Tensor:
    return torch.zeros_like(x).scatter(-1, x.topk(2).indices, 1.0)


@pytest.mark.parametrize("name", ["dpo", "fenchel_young"])
def test_callables_have_the_gradient_of_native_solvers_in_one_graph(name: str):
    target = aimle.TopK(2)(scores(9, 6))

    def value_with(solver: aimle.Solver | Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
        layer = aimle.DPO(solver)

        def value(theta: Tensor) -> Tensor:
            if name == "dpo":
                return layer(theta, key=KEY) * torch.arange(6)
            wanted = target[: len(theta)]
            return aimle.perturbed_fenchel_young_loss(theta, wanted, solver, nb_samples=3, key=KEY)

        return value

    native, callable_ = value_with(aimle.TopK(2)), value_with(by_sorting)
    compiled = [torch.compile(f, fullgraph=True, backend="aot_eager") for f in (native, callable_)]
    for batch in (4, 9, 7):  # compiled for one size, then for all
        expected = gradient(native, scores(batch, 6))
        for function in (callable_, *compiled):
            torch.testing.assert_close(gradient(function, scores(batch, 6)), expected)


@pytest.mark.parametrize(
    "solver", [aimle.TopK(2), aimle.SpanningTree(4), by_sorting], ids=["topk", "tree", "callable"]
)
def test_one_compiled_graph_of_the_fenchel_young_loss_serves_every_size(solver):
    def loss(theta: Tensor, target: Tensor, temperature: float = 1.0) -> Tensor:
        settings = {"nb_samples": 3, "temperature": temperature, "key": KEY}
        return aimle.perturbed_fenchel_young_loss(theta, target, solver, **settings)

    compiled = torch.compile(loss, fullgraph=True, dynamic=True, backend="aot_eager")
    for batch, stance in ((4, "default"), (5, "fail_on_recompile"), (9, "fail_on_recompile")):
        theta, target = scores(batch, 12), solver(scores(batch + 1, 12)[1:])
        expected = gradient(lambda theta, target=target: loss(theta, target), theta)
        with torch.compiler.set_stance(stance):
            got = gradient(lambda theta, target=target: compiled(theta, target), theta)
        torch.testing.assert_close(got, expected)
    torch.testing.assert_close(compiled(theta, target, 0.5), loss(theta, target, 0.5))


def losses(layer: nn.Module, theta: Tensor) -> Tensor:
    z = layer(theta, key=KEY)
    f = (z**2 * torch.arange(z.shape[-1])).sum(-1)
    return layer.surrogate(theta, z, f) if hasattr(layer, "surrogate") else f


def gradient(function, theta: Tensor) -> Tensor:
    theta = theta.clone().requires_grad_()
    function(theta).sum().backward()
    return theta.grad


@pytest.mark.parametrize("name", EVERY)
def test_one_compiled_graph_serves_every_size(name: str):
    settings = {"alpha_range": (1.0, 1.0)} if name == "aimle_covariance" else {}
    layer = aimle.estimator(name, SOLVERS.get(name, aimle.TopK(2)), nb_samples=3, **settings)

    def step(theta: Tensor) -> Tensor:
        return losses(layer, theta)

    compiled = torch.compile(step, fullgraph=True, dynamic=True, backend="aot_eager")
    for batch, stance in ((4, "default"), (5, "fail_on_recompile"), (9, "fail_on_recompile")):
        theta = scores(batch, 6)
        with torch.compiler.set_stance(stance):
            got = gradient(compiled, theta)
        torch.testing.assert_close(got, gradient(step, theta))


@pytest.mark.parametrize("name", EVERY)
def test_estimators_export_with_a_symbolic_batch(name: str):
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = aimle.estimator(name, SOLVERS.get(name, aimle.TopK(2)), nb_samples=3)

        def forward(self, theta: Tensor, key: Tensor) -> Tensor:
            return self.layer(theta, key=key)

    for training in (True, False):
        net = Net().train(training)
        batch = torch.export.Dim("batch", min=2, max=1000)
        program = torch.export.export(
            net, (scores(4, 6), KEY), dynamic_shapes={"theta": {0: batch}, "key": None}
        )
        for exported in (program, program.run_decompositions()):
            theta = scores(7, 6)
            assert torch.equal(exported.module()(theta, KEY), net(theta, KEY))
