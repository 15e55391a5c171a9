"""Layers in training: graphs, checkpoints, copies, saved and resumed runs."""

import copy
import io
import math
import threading
import warnings
from collections.abc import Callable

import pytest
import torch
from layer_cases import PROBLEMS, Disguised, assert_same_state, leaf, randn, run, state_of
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import aimle

STATE = ("alpha", "gbar", "updates")


def make(stranger: bool = False, **settings) -> aimle.AIMLE:
    solver = aimle.TopK(3)
    settings = {"nb_samples": 2, "target": aimle.AdaptiveTarget.paper(1.0), **settings}
    return aimle.AIMLE(Disguised(solver) if stranger else solver, **settings)


both_paths = pytest.mark.parametrize("stranger", [False, True], ids=["fused", "staged"])


# ---- State ---------------------------------------------------------------------------------------


def test_the_state_is_three_buffers(device: torch.device):
    layer = make().to(device)
    assert set(layer.state_dict()) == set(STATE)
    assert layer.alpha.dtype == layer.gbar.dtype == torch.float64
    assert layer.updates.dtype == torch.int64
    assert (layer.alpha, layer.gbar, layer.updates) == (1.0, 1.0, 0)
    default = aimle.AIMLE(aimle.TopK(3))
    assert set(default.state_dict()) == {*STATE, "reach"}
    assert (default.alpha, default.reach) == (4.0, 0.0)
    assert aimle.AIMLE(aimle.TopK(3), target=aimle.AdaptiveTarget.paper()).alpha == 0.0
    assert list(layer.parameters()) == []
    assert list(aimle.IMLE(aimle.TopK(3)).state_dict()) == []
    assert "velocity" in make(target=aimle.AdaptiveTarget.paper(momentum=0.5)).state_dict()


@pytest.mark.parametrize(
    "convert",
    [
        nn.Module.half,
        nn.Module.bfloat16,
        nn.Module.double,
        nn.Module.float,
        lambda module: module.to(torch.bfloat16),
        lambda module: module.to(torch.float16),
    ],
)
def test_conversions_leave_the_state_alone(convert, device: torch.device):
    model = nn.Sequential(nn.Linear(4, 8), make(noise=aimle.SumOfGamma(3))).to(device)
    layer = model[1]
    for _ in range(3):
        run(layer, randn(5, 8, device=device))
    before, table = state_of(layer), layer.table.clone()
    convert(model)
    assert_same_state(layer, before)
    for name, value in before.items():
        assert getattr(layer, name).dtype == value.dtype
    assert torch.equal(layer.table, table)
    x = torch.randn(5, 4, device=device, dtype=model[0].weight.dtype)
    model(x).square().sum().backward()
    assert layer.updates == 4
    assert model[0].weight.grad.isfinite().all()


def test_deepcopy_is_independent(device: torch.device, key: Tensor):
    layer = make(noise=aimle.SumOfGamma(3)).to(device)
    theta = PROBLEMS["topk"].theta(4, device=device)
    run(layer, theta)
    twin = copy.deepcopy(layer)
    assert_same_state(twin, state_of(layer))
    expected = run(layer, theta, key=key)
    assert twin.updates == 1
    got = run(twin, theta, key=key)
    assert torch.equal(expected[0], got[0])
    assert torch.equal(expected[1], got[1])
    assert_same_state(twin, state_of(layer))


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: range) -> list[Tensor]:
    """Losses of some steps; the seed of each comes from its number."""
    device = next(model.parameters()).device
    losses = []
    for step in steps:
        torch.manual_seed(step)
        x = torch.randn(6, 4, device=device)
        loss = (model(x) - 0.3).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


@both_paths
@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_a_resumed_run_continues_bit_for_bit(stranger: bool, momentum: float, device: torch.device):
    target = aimle.AdaptiveTarget.paper(0.5, step=0.05, momentum=momentum)

    def build() -> tuple[nn.Module, torch.optim.Optimizer]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), make(stranger, target=target)).to(device)
        return model, torch.optim.Adam(model.parameters(), lr=0.1)

    model, optimizer = build()
    train(model, optimizer, range(10))
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    expected = train(model, optimizer, range(10, 20))

    file.seek(0)
    saved = torch.load(file)
    resumed, optimizer = build()
    resumed.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    assert resumed[1].updates == 10
    assert torch.equal(torch.stack(train(resumed, optimizer, range(10, 20))), torch.stack(expected))
    for name, value in model.state_dict().items():
        assert torch.equal(resumed.state_dict()[name], value), name
    assert model[1].alpha != 0.5


@both_paths
def test_settings_may_change_between_steps(stranger: bool, device: torch.device, key: Tensor):
    """Another lambda and another temperature give what a new layer with them gives."""
    solver = Disguised(aimle.TopK(3)) if stranger else aimle.TopK(3)
    theta = randn(20, 8, device=device)
    changed = aimle.IMLE(solver, 0.5, nb_samples=2).to(device)
    first = run(changed, theta, key=key)[1]
    changed.target = aimle.FixedTarget(4.0)
    changed.theta_noise_temperature = 0.25
    made = aimle.IMLE(solver, 4.0, nb_samples=2, theta_noise_temperature=0.25).to(device)
    assert repr(changed) == repr(made)
    gradient = run(changed, theta, key=key)[1]
    assert torch.equal(gradient, run(made, theta, key=key)[1])
    assert not torch.equal(gradient, first)
    assert changed.stats()["lambda_mean"] == 4.0
    changed.target_noise_temperature = 2.0
    assert (changed.theta_noise_temperature, changed.target_noise_temperature) == (0.25, 2.0)


def test_another_adaptive_target_takes_over_the_state(device: torch.device, key: Tensor):
    layer = make(target=aimle.AdaptiveTarget.paper(1.0, step=0.5)).to(device)
    run(layer, randn(5, 8, device=device), key=key)
    alpha = layer.alpha.clone()
    layer.target = aimle.AdaptiveTarget.paper(step=0.125)
    assert layer.alpha == alpha != 1.0
    run(layer, randn(5, 8, device=device), key=key)
    assert (layer.alpha - alpha).abs() == 0.125


def test_leaving_the_meta_device_a_layer_is_as_new(device: torch.device):
    settings = {
        "noise": aimle.SumOfGamma(3),
        "target": aimle.AdaptiveTarget.paper(0.5, momentum=0.5),
    }
    made = make(**settings).to(device)
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(4, 8), make(**settings))
    layer = model.to("meta").to_empty(device=device)[1]
    assert set(layer.state_dict()) == {*STATE, "velocity"}
    for (name, value), expected in zip(layer.named_buffers(), made.buffers(), strict=True):
        torch.testing.assert_close(value, expected, rtol=0, atol=0, equal_nan=True, msg=name)


def test_one_target_may_serve_many_layers(device: torch.device):
    target = aimle.AdaptiveTarget.paper(0.5)
    first, second = (make(target=target).to(device) for _ in range(2))
    run(first, randn(3, 8, device=device))
    assert (first.updates, second.updates) == (1, 0)


# ---- Graphs --------------------------------------------------------------------------------------


@both_paths
def test_alpha_is_read_at_backward_time(stranger: bool, device: torch.device, key: Tensor):
    theta, dy = randn(4, 8, device=device), randn(4, 2, 8, device=device)
    layer = make(stranger).to(device)
    x = leaf(theta)
    z = layer(x, key=key)
    layer.alpha.fill_(3.0)
    z.backward(dy)
    expected = run(
        make(stranger, target=aimle.AdaptiveTarget.paper(3.0)).to(device), theta, dy, key=key
    )
    assert torch.equal(x.grad, expected[1])


@both_paths
@pytest.mark.parametrize("symmetric", [True, False])
def test_two_calls_in_one_graph(stranger: bool, symmetric: bool, device: torch.device, key: Tensor):
    """One backward pass through both: two updates, each reading the alpha it finds."""
    theta, dy = randn(4, 8, device=device), randn(4, 2, 8, device=device)
    layer = make(stranger, symmetric_perturbation=symmetric).to(device)
    x = leaf(theta)
    (layer(x, key=key) * dy).sum().add((layer(2 * x, key=key + 1) * dy).sum()).backward()
    assert layer.updates == 2
    assert x.grad.isfinite().all()
    assert x.grad.count_nonzero() > 0


@both_paths
def test_retain_graph_and_accumulation(stranger: bool, device: torch.device, key: Tensor):
    theta, dy = randn(4, 8, device=device), randn(4, 2, 8, device=device)
    frozen = aimle.AdaptiveTarget.paper(1.0, step=0.0)
    for symmetric in (True, False):
        layer = make(stranger, target=frozen, symmetric_perturbation=symmetric).to(device)
        _, once = run(layer, theta, dy, key=key)
        x = leaf(theta)
        z = layer(x, key=key)
        z.backward(dy, retain_graph=True)
        assert torch.equal(x.grad, once)
        z.backward(dy)
        assert torch.equal(x.grad, 2 * once)
        layer(x, key=key).backward(dy)
        assert torch.equal(x.grad, 3 * once)
        assert layer.updates == 4


@both_paths
def test_an_unused_output_costs_nothing(stranger: bool, device: torch.device):
    layer = make(stranger).to(device)
    theta = leaf(randn(4, 8, device=device))
    layer(theta)
    assert torch.autograd.grad(theta.sum(), theta)[0].eq(1).all()
    with torch.no_grad():
        assert not layer(theta).requires_grad
    with torch.inference_mode():
        layer(theta)
    assert not layer(theta.detach()).requires_grad
    assert layer.updates == 0


@both_paths
@pytest.mark.parametrize("linear", [False, True])
def test_a_second_derivative_is_refused(stranger: bool, linear: bool, device: torch.device):
    layer = make(stranger).to(device)
    theta = leaf(randn(4, 8, device=device))
    z = layer(theta)
    loss = (z * randn(*z.shape, device=device)).sum() if linear else z.square().sum()
    (gradient,) = torch.autograd.grad(loss, theta, create_graph=True)
    assert gradient.isfinite().all()
    with pytest.raises(RuntimeError, match=r"one backward pass.*second derivative"):
        gradient.square().sum().backward()


@both_paths
@pytest.mark.parametrize("reentrant", [False, True])
def test_activation_checkpointing_replays_the_noise(
    stranger: bool, reentrant: bool, device: torch.device
):
    theta = randn(4, 8, device=device)

    def gradient(through) -> tuple[Tensor, dict[str, Tensor]]:
        layer, x = make(stranger).to(device), leaf(theta)
        torch.manual_seed(7)
        through(lambda x: (layer(x) - 0.3).square(), x).sum().backward()
        return x.grad, state_of(layer)

    expected, state = gradient(lambda block, x: block(x))
    got, other = gradient(lambda block, x: checkpoint(block, x, use_reentrant=reentrant))
    assert torch.equal(got, expected)
    assert expected.count_nonzero() > 0
    for name, value in state.items():
        assert torch.equal(other[name], value)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_a_generator_says_to_pass_a_key(reentrant: bool, device: torch.device):
    layer = make(generator=torch.Generator(device)).to(device)
    theta = leaf(randn(4, 8, device=device))
    before = state_of(layer)
    out = checkpoint(lambda x: layer(x).square(), theta, use_reentrant=reentrant)
    with pytest.raises(RuntimeError, match=r"generator.*pass it as key"):
        out.sum().backward()
    assert_same_state(layer, before)


@pytest.mark.parametrize("cls", [aimle.SST, aimle.ExactMarginals, aimle.DPO])
def test_so_do_estimators_without_a_state(cls: type, device: torch.device):
    layer = cls(aimle.TopK(3), generator=torch.Generator(device)).to(device)
    theta = leaf(randn(4, 8, device=device))
    out = checkpoint(lambda x: layer(x).square(), theta, use_reentrant=False)
    with pytest.raises(RuntimeError, match=rf"{cls.__name__}\] a generator.*pass it as key"):
        out.sum().backward()


def test_gradient_scalers_see_an_overflow(device: torch.device):
    """inf in dy becomes NaN in theta's gradient, the step is skipped and the state rests."""
    layer, theta = make().to(device), leaf(randn(4, 8, device=device).float())
    optimizer = torch.optim.SGD([theta], lr=1.0)
    scaler = torch.amp.GradScaler(device.type, init_scale=2.0)
    before, value = state_of(layer), theta.detach().clone()
    scaler.scale((layer(theta) * math.inf).nansum() + theta.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(theta, value)
    assert scaler.get_scale() == 1.0
    assert_same_state(layer, before)


# ---- A step that cannot work ---------------------------------------------------------------------


def stuck(layer: aimle.AIMLE, theta: Tensor, passes: int) -> list[str]:
    """The warnings of so many backward passes."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(passes):
            run(layer, theta)
    return [str(each.message) for each in seen if "[aimle]" in str(each.message)]


def test_a_step_of_zero_warns_once():
    layer = aimle.AIMLE(aimle.TopK(2), target=aimle.AdaptiveTarget.paper())
    theta = torch.zeros(3, 6)
    assert stuck(layer, theta, 99) == []
    assert layer.stats()["idle_updates"] == 99
    (message,) = stuck(layer, theta, 150)
    assert "lambda of a layer was 0 in 100 consecutive backward passes" in message
    assert "AdaptiveTarget()" in message
    assert layer.stats()["idle_updates"] == 249


@pytest.mark.parametrize(("target_norm", "bound"), [(100.0, "upper"), (0.0, "lower")])
def test_alpha_at_a_bound_warns_once(target_norm: float, bound: str):
    target = aimle.AdaptiveTarget(target_norm=target_norm, alpha_range=(0.9, 1.1))
    layer = aimle.AIMLE(aimle.TopK(2), nb_samples=2, target=target)
    (message,) = stuck(layer, randn(3, 6), 1100)
    assert f"at its {bound} bound" in message
    assert "alpha_range" in message


def test_what_is_constant_on_purpose_does_not_warn():
    layer = aimle.AIMLE(aimle.TopK(2), target=aimle.AdaptiveTarget.constant(0.5))
    assert stuck(layer, randn(3, 6), 1100) == []
    assert layer.alpha == 0.5
    assert layer.stats()["updates_at_bound"] == 0


def short_steps(solver: aimle.Solver) -> aimle.AIMLE:
    """Its steps do not move costs above zero."""
    return aimle.AIMLE(solver, target=aimle.AdaptiveTarget.constant(0.01))


@pytest.mark.parametrize("layer", [short_steps, aimle.IMLE, aimle.DBB])
@pytest.mark.parametrize("costs", ["grid", "graph"])
def test_costs_below_zero_warn_once(layer: Callable[[aimle.Solver], nn.Module], costs: str):
    edges = torch.tensor([[0, 1], [1, 2], [0, 2]])
    solver = aimle.GridPath() if costs == "grid" else aimle.GraphPath(edges, 0, 2)
    theta = torch.full((2, 3, 3) if costs == "grid" else (2, 3), -100.0)
    one = layer(solver)
    assert stuck(one, theta, 299) == []
    assert one.stats()["clipped_share"] == 1
    (message,) = stuck(one, theta, 10)
    assert "300 consecutive backward passes" in message
    assert "softplus" in message
    assert stuck(one, theta.abs(), 1) == []
    assert stuck(one, theta, 310) == []


def test_some_costs_below_zero_do_not_warn():
    layer = aimle.AIMLE(aimle.GridPath())
    assert stuck(layer, randn(2, 3, 3), 400) == []
    assert layer.stats()["clipped_share"] > 0


def test_the_default_does_not_warn():
    layer = aimle.AIMLE(aimle.TopK(2))
    assert stuck(layer, randn(3, 6), 1100) == []
    assert layer.stats()["idle_updates"] == layer.stats()["updates_at_bound"] == 0


# ---- Scale of the loss, earlier states -----------------------------------------------------------


def test_a_constant_share_does_not_depend_on_the_scale_of_the_loss(key: Tensor):
    """As under a gradient scaler: a fixed lambda does, hence AdaptiveTarget.constant."""
    theta, dy = randn(5, 8).to(key.device), randn(5, 1, 8).to(key.device)

    def unscaled(make, scale: float) -> Tensor:
        return run(make().to(key.device), theta, dy * scale, key=key)[1] / scale

    def constant() -> aimle.AIMLE:
        return aimle.IMLE(aimle.TopK(3), target=aimle.AdaptiveTarget.constant(0.5))

    def fixed() -> aimle.AIMLE:
        return aimle.IMLE(aimle.TopK(3), 1.0)

    torch.testing.assert_close(unscaled(constant, 65536.0), unscaled(constant, 1.0))
    assert unscaled(constant, 1.0).count_nonzero() > 0
    assert unscaled(fixed, 65536.0).norm() < 1e-3 * unscaled(fixed, 1.0).norm()


def test_a_state_of_another_rule_is_refused_with_a_remedy():
    paper = aimle.AIMLE(aimle.TopK(3), target=aimle.AdaptiveTarget.paper())
    default = aimle.AIMLE(aimle.TopK(3))
    with pytest.raises(RuntimeError, match=r"target=aimle\.AdaptiveTarget\.paper\(\)"):
        default.load_state_dict(paper.state_dict())
    with pytest.raises(RuntimeError, match=r"target=aimle\.AdaptiveTarget\(\)"):
        paper.load_state_dict(default.state_dict())
    default.load_state_dict(aimle.AIMLE(aimle.TopK(3)).state_dict())


@pytest.mark.parametrize("kind", ["native", "callable"])
def test_threads_that_share_a_layer_lose_no_update(kind: str):
    def best(x: Tensor) -> Tensor:
        return torch.nn.functional.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype)

    layer = aimle.AIMLE(aimle.Argmax() if kind == "native" else best)
    dy = torch.arange(4.0).expand(1, 1, 4)

    def train() -> None:
        theta = leaf(torch.zeros(1, 4))
        for _ in range(400):
            layer(theta).backward(dy)

    threads = [threading.Thread(target=train) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert layer.updates == 800
