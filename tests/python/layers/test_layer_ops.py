"""The layer ops under PyTorch's own checks, and the layers under torch.compile."""

from collections.abc import Callable

import pytest
import torch
from layer_cases import PROBLEMS, assert_same_state, leaf, randn, state_of
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend
from torch._functorch import config as functorch_config
from torch.library import opcheck
from torch.utils.checkpoint import checkpoint

import aimle
from aimle.callable_solver.staged import CallableSolver

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")

ops = torch.ops.aimle


class Call:
    """The arguments of the layer ops for one layer and one theta."""

    def __init__(
        self,
        layer: aimle.PerturbedMap,
        theta: Tensor,
        *,
        stranger: bool = False,
        mask: Tensor | None = None,
        k: Tensor | None = None,
    ) -> None:
        layer.to(theta.device)
        text = layer.solver.text
        if stranger:
            minimises = layer.solver.sense == "min"
            dims = layer.solver.instance_dims
            text = CallableSolver(minimises, dims, layer.solver.fixed_size).text
        self.theta, self.layer = theta, layer
        self.key = torch.tensor([1, 2], device=theta.device)
        self.inputs = (theta, self.key, mask, k, layer.table)
        self.state = tuple(layer._state())
        self.settings = (
            f"solver={text} {layer._settings(layer.training)}",
            *layer._temperatures(),
        )

    def z_and_bits(self) -> tuple[Tensor, Tensor]:
        native = f"solver={self.layer.solver.text} {self.layer._settings(True)}"
        return ops.perturbed_map_forward(*self.inputs, native, *self.layer._temperatures())

    def dy(self) -> Tensor:
        z, _ = self.z_and_bits()
        return randn(*z.shape, dtype=z.dtype, device=z.device)


def topk(**settings) -> aimle.AIMLE:
    return aimle.AIMLE(
        aimle.TopK(3), nb_samples=2, **{"target": aimle.AdaptiveTarget(0.7), **settings}
    )


LAYERS: dict[str, tuple[Callable[[], aimle.PerturbedMap], str, dict]] = {
    "central": (topk, "topk", {}),
    "forward": (lambda: topk(symmetric_perturbation=False), "topk", {}),
    "mean": (lambda: topk(output="mean", noise=aimle.SumOfGamma(3)), "topk", {}),
    "flat": (lambda: topk(output="flat", noise="normal"), "topk", {}),
    "momentum": (lambda: topk(target=aimle.AdaptiveTarget.paper(momentum=0.5)), "topk", {}),
    "fixed": (lambda: topk(target=aimle.FixedTarget(2.0)), "topk", {}),
    "straight through": (lambda: aimle.STE(aimle.TopK(3)), "topk", {}),
    "grid": (lambda: aimle.AIMLE(aimle.GridPath(), noise=None), "grid", {}),
    "tree": (lambda: aimle.AIMLE(aimle.SpanningTree(5), noise="logistic"), "tree", {}),
    "mask and k": (
        topk,
        "topk",
        {"mask": torch.arange(8) > 1, "k": torch.tensor([[1, 2, 3]])},
    ),
}


def call_for(name: str, device: torch.device, *, grad: bool = False, **settings) -> Call:
    make, problem, given = LAYERS[name]
    theta = PROBLEMS[problem].theta(2, 3, dtype=torch.float32, device=device).requires_grad_(grad)
    given = {key: value.to(device) for key, value in given.items()}
    return Call(make(), theta, **given, **settings)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_opcheck_of_the_layer(name: str, grad: bool, device: torch.device):
    call = call_for(name, device, grad=grad)
    opcheck(ops.perturbed_map.default, (*call.inputs, *call.state, *call.settings))


@pytest.mark.parametrize("name", LAYERS)
def test_opcheck_of_forward_and_backward(name: str, device: torch.device):
    call = call_for(name, device)
    opcheck(ops.perturbed_map_forward.default, (*call.inputs, *call.settings))
    _, bits = call.z_and_bits()
    opcheck(
        ops.perturbed_map_backward.default,
        (call.dy(), bits, *call.inputs, *call.state, *call.settings),
    )


@pytest.mark.parametrize("name", [name for name in LAYERS if name != "mask and k"])
def test_opcheck_of_the_stages(name: str, device: torch.device):
    call = call_for(name, device, stranger=True)
    dy, solver = call.dy(), call.layer.solver
    opcheck(ops.perturb.default, (*call.inputs, *call.settings))
    if name == "straight through":
        opcheck(ops.straight_through.default, (dy, *call.inputs, *call.settings))
        return
    stepped = (dy, *call.inputs, *call.state[:3:2], None, *call.settings)
    opcheck(ops.step.default, stepped)
    left, right, lambda_, counted = ops.step(*stepped)
    solutions = (solver(left), solver(right), lambda_, counted)
    sizes = ops.solution_sizes(*solutions[:2])
    opcheck(ops.solution_sizes.default, solutions[:2])
    opcheck(ops.step.default, (dy, *call.inputs, *call.state[:3:2], sizes, *call.settings))
    opcheck(ops.difference.default, (*solutions, *call.inputs, *call.state, *call.settings))


def test_opcheck_of_narrow_types(device: torch.device):
    for dtype in (torch.bfloat16, torch.float64):
        theta = PROBLEMS["topk"].theta(2, 3, dtype=dtype, device=device)
        call = Call(topk(), theta.requires_grad_())
        opcheck(ops.perturbed_map.default, (*call.inputs, *call.state, *call.settings))
        call = Call(topk(), theta.detach(), stranger=True)
        opcheck(ops.perturb.default, (*call.inputs, *call.settings))
        state = (*call.state[:3:2], None)
        opcheck(ops.step.default, (call.dy(), *call.inputs, *state, *call.settings))


def with_counts(call: Call) -> tuple[Tensor | None, ...]:
    """The state of a layer whose backward leaves its counts to a reduction."""
    *state, stats = call.state
    return (*state, torch.cat([stats, stats.new_zeros(3)]))


@pytest.mark.parametrize("name", ["central", "momentum", "grid"])
def test_opcheck_of_shared_counts(name: str, device: torch.device):
    call = call_for(name, device)
    state = with_counts(call)
    _, bits = call.z_and_bits()
    backward = (call.dy(), bits, *call.inputs, *state, *call.settings)
    opcheck(ops.perturbed_map_backward.default, backward)
    counts = torch.tensor([7.0, 3.0, 1.0], dtype=torch.float64, device=device)
    opcheck(ops.apply_counts.default, (counts, *state, *call.settings))


@pytest.mark.parametrize("name", ["central", "forward", "mean", "momentum", "mask and k"])
def test_counts_make_the_update_of_backward(name: str, device: torch.device):
    call, shared = call_for(name, device), call_for(name, device)
    state = with_counts(shared)
    _, bits = call.z_and_bits()
    dy = call.dy()
    for _ in range(3):
        ops.perturbed_map_backward(dy, bits, *call.inputs, *call.state, *call.settings)
        ops.perturbed_map_backward(dy, bits, *shared.inputs, *state, *shared.settings)
        assert state[2] == call.state[2] - 1
        counts = state[4][-3:].clone()
        assert counts[1] > 0
        ops.apply_counts(counts, *state, *shared.settings)
        assert not state[4][-3:].any()
        for one, other in zip(call.state[:4], state[:4], strict=True):
            assert one is None or torch.equal(one, other)
        torch.testing.assert_close(call.state[4], state[4][:-3], rtol=0, atol=0, equal_nan=True)
    before = [each.clone() for each in state[:3]]
    ops.apply_counts(torch.zeros_like(counts), *state, *shared.settings)
    assert all(torch.equal(one, other) for one, other in zip(before, state[:3], strict=True))


# ---- torch.compile -------------------------------------------------------------------------------


def train(layer: torch.nn.Module, run: Callable, thetas: list[Tensor], **call) -> list[Tensor]:
    """z, gradients and the state over some training steps."""
    seen = []
    for step, theta in enumerate(thetas):
        torch.manual_seed(step)
        x = leaf(theta)
        z = run(x, **call)
        (z - 0.3).square().sum().backward()
        seen += [z.detach().clone(), x.grad.clone(), *state_of(layer).values()]
    return seen


def assert_compiles(
    make: Callable[[], torch.nn.Module], thetas: list[Tensor], *, backend="aot_eager", **call
) -> None:
    """Compiled without a break, and equal to eager bit for bit under one seed."""
    torch._dynamo.reset()
    device = thetas[0].device
    eager, layer = make().to(device), make().to(device)
    compiled = torch.compile(layer, fullgraph=True, backend=backend)
    expected = train(eager, eager, thetas, **call)
    got = train(layer, compiled, thetas, **call)
    torch.testing.assert_close(got, expected, rtol=0, atol=0, equal_nan=True)
    assert any(tensor.nan_to_num().count_nonzero() > 0 for tensor in expected[1::2])


def thetas_for(problem: str, device: torch.device, steps: int = 3) -> list[Tensor]:
    return [
        PROBLEMS[problem].theta(4, seed=step, dtype=torch.float32, device=device)
        for step in range(steps)
    ]


@pytest.mark.parametrize("name", LAYERS)
def test_compiled_equals_eager(name: str, device: torch.device):
    make, problem, given = LAYERS[name]
    given = {key: value.to(device) for key, value in given.items()}
    if "k" in given:
        given["k"] = torch.tensor([1, 2, 3, 4], device=device)
    assert_compiles(make, thetas_for(problem, device), **given)


@pytest.mark.parametrize("name", ["central", "forward"])
def test_compiled_by_inductor_equals_eager(name: str, device: torch.device):
    make, problem, _ = LAYERS[name]
    assert_compiles(make, thetas_for(problem, device), backend="inductor")


@pytest.mark.parametrize("estimator", [aimle.IMLE, aimle.DBB, aimle.STE, aimle.Identity])
def test_every_estimator_compiles(estimator: type, device: torch.device):
    assert_compiles(lambda: estimator(aimle.TopK(3)), thetas_for("topk", device))


@pytest.mark.parametrize("training", [True, False])
def test_eval_mode_compiles(training: bool, device: torch.device):
    assert_compiles(lambda: topk().train(training), thetas_for("topk", device))


@pytest.mark.parametrize("symmetric", [True, False])
def test_callable_solvers_compile(symmetric: bool, device: torch.device):
    """A callable that torch.compile can trace goes into the graph, alpha included."""
    assert_compiles(
        lambda: aimle.AIMLE(
            Traceable(),
            nb_samples=2,
            symmetric_perturbation=symmetric,
            target=aimle.AdaptiveTarget(0.7),
        ),
        thetas_for("topk", device),
    )


class Traceable:
    instance_dims = 1

    def __call__(self, scores: Tensor) -> Tensor:
        return aimle.TopK(3)(scores)


def test_a_callable_that_cannot_be_traced_says_so(device: torch.device):
    def through_numpy(scores: Tensor) -> Tensor:
        order = [int(row.argmax()) for row in scores.tolist()]  # a list has no argmax
        return torch.tensor(order)

    torch._dynamo.reset()
    layer = aimle.AIMLE(through_numpy).to(device)
    before = state_of(layer)
    with pytest.raises(Exception, match=r"argmax|tolist|graph break"):
        torch.compile(layer, fullgraph=True, backend="aot_eager")(thetas_for("topk", device)[0])
    assert_same_state(layer, before)


def test_the_batch_may_change_without_another_compilation(device: torch.device):
    torch._dynamo.reset()
    eager, layer = topk().to(device), topk().to(device)
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(layer, fullgraph=True, backend=counter, dynamic=True)
    thetas = [
        PROBLEMS["topk"].theta(batch, seed=batch, dtype=torch.float32, device=device)
        for batch in (7, 3, 64)
    ]
    train(layer, compiled, thetas[:1])
    compilations = counter.frame_count
    layer.load_state_dict(eager.state_dict())
    expected = train(eager, eager, thetas)
    got = train(layer, compiled, thetas)
    torch.testing.assert_close(got, expected, rtol=0, atol=0)
    assert counter.frame_count == compilations


def test_a_layer_inside_a_compiled_model(device: torch.device):
    """The whole step in one graph: encoder, layer, loss; alpha moves as in eager."""

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encode = torch.nn.Linear(8, 8)
            self.choose = topk(output="mean")

        def forward(self, x: Tensor) -> Tensor:
            return x + self.choose(self.encode(x))

    def make() -> Model:
        torch.manual_seed(0)
        return Model()

    assert_compiles(make, thetas_for("topk", device, steps=5))


class Calls(torch.nn.Module):
    """A model that calls one layer as a user might."""

    def __init__(self, how: str, stranger: bool) -> None:
        super().__init__()
        self.how = how
        solver = Traceable() if stranger else aimle.TopK(3)
        self.choose = aimle.AIMLE(solver, nb_samples=2, target=aimle.AdaptiveTarget(0.7))

    def forward(self, x: Tensor) -> Tensor:
        if self.how == "twice":
            return self.choose(x) + 2 * self.choose(x.flip(-1))
        if self.how == "masked":
            return self.choose(x, mask=torch.arange(8, device=x.device) > 1)
        return checkpoint(lambda x: 2 * self.choose(x), x, use_reentrant=False)


@pytest.mark.parametrize("how", ["twice", "masked", "checkpointed"])
@pytest.mark.parametrize("stranger", [False, True], ids=["fused", "staged"])
def test_calls_inside_a_compiled_model(how: str, stranger: bool, device: torch.device):
    """Two calls update alpha twice; checkpointing replays the key inside the graph too.

    On a GPU torch gives compiled checkpoints a generator of their own, deaf to later seeds; without
    it they draw what eager code draws.
    """
    with functorch_config.patch(graphsafe_rng_functionalization=False):
        assert_compiles(lambda: Calls(how, stranger), thetas_for("topk", device))


def test_a_generator_under_compile_says_to_pass_a_key(device: torch.device, key: Tensor):
    torch._dynamo.reset()
    layer = topk(generator=torch.Generator(device)).to(device)
    theta = thetas_for("topk", device)[0]
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    with pytest.raises(Exception, match="pass it as key"):
        compiled(theta)
    assert torch.equal(compiled(theta, key=key), layer(theta, key=key))


def test_strangers_and_natives_agree_under_compile(device: torch.device):
    theta = thetas_for("topk", device)[0]
    results = []
    for solver in (aimle.TopK(3), Traceable()):
        torch._dynamo.reset()
        layer = aimle.AIMLE(solver, nb_samples=2, target=aimle.AdaptiveTarget.paper(0.7)).to(device)
        compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
        results.append(train(layer, compiled, [theta]))
    torch.testing.assert_close(*results, rtol=0, atol=0)
