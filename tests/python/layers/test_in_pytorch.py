"""Layers with other features of PyTorch, for native and callable solvers."""

import copy
import io
import pickle
import subprocess
import sys

import pytest
import torch
from repository import ROOT
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import aimle

N = 6
WEIGHTS = torch.linspace(-1, 1, N)


def best_two(scores: Tensor) -> Tensor:
    return torch.zeros_like(scores).scatter(-1, scores.topk(2, -1).indices, 1.0)


SOLVERS = {"native": aimle.TopK(2), "callable": best_two}
each_solver = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def model_of(solver) -> nn.Sequential:
    return nn.Sequential(nn.Linear(N, N), aimle.AIMLE(solver, nb_samples=3))


def loss_of(z: Tensor) -> Tensor:
    return (z * WEIGHTS).sum(-1).mean()


def train(model: nn.Sequential, steps: int = 3) -> list[Tensor]:
    """Weights, gradient and state after some steps."""
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model(torch.randn(4, N))).backward()
        optimizer.step()
    layer = model[1]
    return [model[0].weight.detach(), model[0].weight.grad, layer.alpha, layer.gbar, layer.updates]


def assert_same(one: list[Tensor], other: list[Tensor]):
    for a, b in zip(one, other, strict=True):
        assert torch.equal(a, b)


@each_solver
@pytest.mark.parametrize("copy_of", ["deepcopy", "pickle", "torch.save"])
def test_copies_go_on_alike(solver, copy_of: str):
    model = model_of(solver)
    train(model)
    if copy_of == "deepcopy":
        twin = copy.deepcopy(model)
    elif copy_of == "pickle":
        twin = pickle.loads(pickle.dumps(model))
    else:
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        twin = torch.load(file, weights_only=False)
    assert_same(train(model), train(twin))


@each_solver
def test_functional_call_moves_the_state_it_was_given(solver):
    model = model_of(solver)
    twin = copy.deepcopy(model)
    x, key = torch.randn(4, N), torch.tensor([1, 2])
    given = {name: value.clone() for name, value in model.state_dict().items()}
    given["0.weight"].requires_grad_()

    def run(theta: Tensor) -> Tensor:
        return torch.func.functional_call(model[1], buffers, (theta,), {"key": key})

    buffers = {name[2:]: value for name, value in given.items() if name.startswith("1.")}
    loss_of(run(x @ given["0.weight"].T)).backward()
    loss_of(twin[1](x @ twin[0].weight.T, key=key)).backward()
    assert torch.equal(given["0.weight"].grad, twin[0].weight.grad)
    assert given["1.updates"] == 1
    assert model[1].updates == 0
    assert torch.equal(given["1.alpha"], twin[1].alpha)


def test_vmap_is_a_batch_of_batches():
    layer, theta, key = aimle.STE(aimle.TopK(2)), torch.randn(3, 4, N), torch.tensor([1, 2])
    each = torch.stack([layer(rows, key=key) for rows in theta])
    assert torch.equal(torch.vmap(lambda rows: layer(rows, key=key))(theta), each)
    with pytest.raises(RuntimeError, match="vmap cannot map a callable solver"):
        torch.vmap(aimle.STE(best_two))(theta)


@each_solver
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(solver, dtype: torch.dtype):
    model = model_of(solver)
    x = torch.randn(4, N)
    with torch.autocast("cpu", dtype):
        z = model(x)
        loss = loss_of(z)
    loss.backward()
    assert z.dtype == dtype
    assert set(z.unique().tolist()) == {0.0, 1.0}
    assert model[0].weight.grad.dtype == torch.float32
    assert model[0].weight.grad.isfinite().all()
    assert model[1].alpha.dtype == torch.float64


@each_solver
def test_an_overflow_of_the_gradient_scaler_leaves_the_state_alone(solver):
    model = model_of(solver)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1e38, growth_interval=1)
    before = [value.clone() for value in model.state_dict().values()]
    loss = loss_of(model(torch.randn(4, N))) * 1e3
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    assert_same([*model.state_dict().values()], before)
    assert scaler.get_scale() < 1e38


@each_solver
@pytest.mark.parametrize("use_reentrant", [False, True])
def test_activation_checkpointing(solver, use_reentrant: bool):
    results, model, x = [], model_of(solver), torch.randn(4, N)
    for wrapped in (False, True):
        each, leaf = copy.deepcopy(model), x.clone().requires_grad_()
        torch.manual_seed(2)
        z = checkpoint(each, leaf, use_reentrant=use_reentrant) if wrapped else each(leaf)
        loss_of(z).backward()
        results.append([z.detach(), leaf.grad, each[1].alpha, each[1].updates])
    assert_same(*results)


@each_solver
def test_two_calls_in_one_step(solver):
    layer, twin = aimle.AIMLE(solver), aimle.AIMLE(solver)
    theta, key = torch.randn(4, N, requires_grad=True), torch.tensor([1, 2])
    (loss_of(layer(theta, key=key)) + loss_of(layer(2 * theta, key=key))).backward()
    assert layer.updates == 2
    together = theta.grad.clone()
    theta.grad = None
    # Backward runs from the last call to the first.
    loss_of(twin(2 * theta, key=key)).backward()
    loss_of(twin(theta, key=key)).backward()
    torch.testing.assert_close(theta.grad, together)
    assert torch.equal(layer.alpha, twin.alpha)


@each_solver
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_models_train_alike(solver, dynamic: bool):
    model = model_of(solver)
    twin = copy.deepcopy(model)
    compiled = torch.compile(model, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for batch in (4, 5):
        x, results = torch.randn(batch, N), []
        for each in (compiled, twin):
            torch.manual_seed(batch)
            loss_of(each(x)).backward()
        results = [[m[0].weight.grad, m[1].alpha, m[1].updates] for m in (model, twin)]
        assert_same(*results)


@each_solver
def test_exported_models_evaluate_alike(solver, tmp_path):
    model, x = model_of(solver).eval(), torch.randn(4, N)
    exported = torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    torch.export.save(exported, tmp_path / "model.pt2")
    loaded = torch.export.load(tmp_path / "model.pt2").module()
    for batch in (4, 9):
        x = torch.randn(batch, N)
        assert torch.equal(loaded(x), model(x))


PROCESSES = """
import copy, sys, torch, aimle
import torch.multiprocessing as processes

def best_two(scores):
    return torch.zeros_like(scores).scatter(-1, scores.topk(2, -1).indices, 1.0)

def train(layer, theta):
    theta = theta.clone().requires_grad_()
    z = layer(theta, key=torch.tensor([1, 2]))
    (z * torch.linspace(-1, 1, theta.shape[-1])).sum().backward()
    return z.detach().numpy(), theta.grad.numpy(), float(layer.alpha)

def train_there(layer, theta, results):
    torch.set_num_threads(1)  # as DataLoader does: OpenMP's threads do not survive a fork
    results.put(train(layer, theta))

if __name__ == "__main__":
    torch.manual_seed(0)
    for solver in (aimle.TopK(2), best_two):
        context = processes.get_context(sys.argv[1])
        results, layer = context.SimpleQueue(), aimle.AIMLE(solver)
        twin = copy.deepcopy(layer)  # a spawned process shares the tensors of the layer itself
        theta = torch.randn(2000, 40)
        layer(theta)  # used before the process starts
        process = context.Process(target=train_there, args=(layer, theta, results))
        process.start()
        there = results.get()
        process.join()
        assert process.exitcode == 0
        for a, b in zip(there, train(twin, theta), strict=True):
            assert (a == b).all() if hasattr(a, "all") else a == b
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_started_after_use(method: str, tmp_path):
    (tmp_path / "use.py").write_text(PROCESSES)
    result = subprocess.run(
        [sys.executable, str(tmp_path / "use.py"), method],
        env={"PYTHONPATH": str(ROOT / "python"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr


# ---- States of other layers ----------------------------------------------------------------------


def test_a_state_that_does_not_apply_is_left_out_with_a_warning():
    adaptive = model_of(aimle.TopK(2))
    train(adaptive)
    for layer in (aimle.IMLE(aimle.TopK(2), 3.0), aimle.Thresholds(aimle.TopK(2))):
        other = nn.Sequential(nn.Linear(N, N), layer)
        with pytest.warns(
            UserWarning, match=r"state of 1 has alpha, gbar, updates, reach .* has none"
        ):
            other.load_state_dict(adaptive.state_dict())
        assert torch.equal(other[0].weight, adaptive[0].weight)

        state = [value.clone() for value in adaptive[1].state_dict().values()]
        with pytest.warns(
            UserWarning, match=r"state of 1 was saved by a layer without an adaptive"
        ):
            adaptive.load_state_dict(other.state_dict())
        assert_same([*adaptive[1].state_dict().values()], state)


def test_half_a_state_is_an_error():
    adaptive = aimle.AIMLE(aimle.TopK(2))
    state = adaptive.state_dict()
    del state["gbar"]
    with pytest.raises(RuntimeError, match="gbar"):
        adaptive.load_state_dict(state)


def after_a_change_of(name: str, estimator: str, solver) -> Tensor | None:
    """theta's gradient if an argument changes in place before backward; None if that is refused."""
    layer = aimle.estimator(estimator, solver, **({} if estimator == "dbb" else {"nb_samples": 4}))
    torch.manual_seed(0)
    given = {"theta": torch.randn(5, 8, requires_grad=True), "key": torch.tensor([1, 2])}
    given["mask"] = torch.arange(8).expand(5, 8) != 1
    if estimator == "dbb":
        del given["key"]
    z = layer(given["theta"], **{each: given[each] for each in given if each != "theta"})
    with torch.no_grad():
        if name in given:
            given[name].copy_(given[name].flip(-1))
    try:
        z.backward(torch.randn(z.shape))
    except RuntimeError as error:
        if "modified by an inplace operation" in str(error):
            return None
        raise
    return given["theta"].grad


@pytest.mark.parametrize("name", ["theta", "key", "mask"])
@pytest.mark.parametrize("estimator", ["aimle", "imle", "dbb", "ste", "dpo"])
@each_solver
def test_a_change_in_place_before_backward_is_refused_or_harmless(name, estimator, solver):
    expected = after_a_change_of("none", estimator, solver)
    got = after_a_change_of(name, estimator, solver)
    assert got is None or torch.equal(got, expected)
    if (estimator, name) == ("dpo", "theta"):
        assert got is not None, "its gradient does not depend on theta"
