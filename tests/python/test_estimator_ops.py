"""The composed estimators as ops: PyTorch's own checks, symbolic sizes, torch.export."""

import pytest
import torch
from torch import Tensor, nn
from torch.library import opcheck

import aimle

ops = torch.ops.aimle
KEY = torch.tensor([7, 11])
SOLVERS = {
    "gumbel_softmax": aimle.Argmax(),
    "reinmax": aimle.Argmax(),
    "softsub": aimle.TopK(2),
    "l2x": aimle.TopK(2),
    "sst": aimle.TopK(2),
    "exact": aimle.TopK(2),
    "sfe": aimle.TopK(2),
}
RELAXATIONS = ("gumbel_softmax", "softsub", "l2x", "sst")
EVERY = list(SOLVERS)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)
    torch._dynamo.reset()


def scores(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3))


def arguments(name: str, output: str, hard: bool) -> tuple:
    settings = (None, None, KEY, *SOLVERS[name].layer_arguments(), 3, output)
    return (*settings, torch.tensor(0.7), hard) if name in RELAXATIONS else settings


@pytest.mark.parametrize("name", SOLVERS)
def test_opcheck_of_samples(name: str):
    op = getattr(ops, name).default
    for output in ("samples", "flat", "mean"):
        opcheck(op, (scores(4, 5).requires_grad_(), *arguments(name, output, hard=False)))
    theta, *rest = scores(4, 5), *arguments(name, "samples", hard=True)
    rest[0] = torch.arange(5) < 4
    opcheck(op, (theta, *rest))
    rest[2] = None  # without noise
    opcheck(op, (theta, *rest))
    if isinstance(SOLVERS[name], aimle.TopK):
        rest[1] = torch.tensor([2, 0, 1, 2])
        opcheck(op, (theta, *rest))


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
    layer = aimle.estimator(name, SOLVERS[name], nb_samples=3)
    graphs = []

    def backend(graph: torch.fx.GraphModule, inputs: list[Tensor]):
        graphs.append(graph)
        return torch._dynamo.backends.registry.lookup_backend("aot_eager")(graph, inputs)

    step = torch.compile(lambda x: losses(layer, x), fullgraph=True, dynamic=True, backend=backend)
    for sizes in ((4, 6), (5, 6), (9, 6)):
        theta = scores(*sizes)
        expected = gradient(lambda x: losses(layer, x), theta)
        torch.testing.assert_close(gradient(step, theta), expected)
    assert len(graphs) == 1


@pytest.mark.parametrize("name", EVERY)
def test_estimators_export_with_a_symbolic_batch(name: str):
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = aimle.estimator(name, SOLVERS[name], nb_samples=3)

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
