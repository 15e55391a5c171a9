"""The switchboard of LibTorch programs against the Python one: the same names, settings, z,
gradients and state, bit for bit, for the same key.

The C++ side is tests/torch/switchboard_ops.cpp, built beside the C++ tests.
"""

import inspect
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

import aimle
from aimle.settings.shared import CallableSettings

LIBRARY = aimle._library.find().parent / "tests" / "libaimle_switchboard_ops.so"
if not LIBRARY.is_file():
    pytest.skip(f"no {LIBRARY.name}: built with the C++ tests only", allow_module_level=True)
torch.ops.load_library(str(LIBRARY))
_ops = torch.ops.aimle_switchboard
INFOS = {row[0]: row[1:] for row in _ops.infos()}

SOLVERS = {
    "argmax": (aimle.Argmax(), (7,)),
    "topk": (aimle.TopK(3), (7,)),
    "spanning_tree": (aimle.SpanningTree(4), (6,)),
    "directed": (aimle.SpanningTree(4), (12,)),
    "grid_path": (aimle.GridPath(), (3, 3)),
    "lattice_path": (aimle.LatticePath(), (3, 3)),
    "chain": (aimle.Chain(), (3, 2, 2)),
    "bernoulli": (aimle.Bernoulli(), (7,)),
}
MEAN = ("dbb", "identity", "dpo")
# The ops whose kernels an estimator needs, where they are not those of the layers.
OPS = {"sfe": ("exact_sample", "log_partition"), "sst": ("marginals",)}
OPS |= {"exact": ("exact_sample", "marginals")}
OPS |= dict.fromkeys(
    ("gumbel_softmax", "gumbel_rao", "softsub", "l2x", "dpo", "reinmax"), ("gumbel", "solve")
)
# Settings that are not the defaults, in both languages.
SETTINGS = {
    "aimle": {"initial_alpha": 0.75, "step": 0.01, "target_norm": 2.0, "decay": 0.5},
    "aimle_forward": {"initial_alpha": 0.5, "scope": "batch", "noise": "logistic"},
    "aimle_noise": {"initial_alpha": 2.0, "factor": 1.5, "alpha_range": (0.5, 50.0)},
    "aimle_covariance": {
        "initial_alpha": 0.75,
        "share": 0.25,
        "step": 0.01,
        "target_norm": 1.0,
        "momentum": 0.5,
    },
    "imle": {"lambda_": 3.0, "theta_noise_temperature": 0.5, "target_noise_temperature": 0.25},
    "imle_central": {"lambda_": 2.0, "noise": "normal"},
    "ste": {"theta_noise_temperature": 2.0},
    "dbb": {"lambda_": 5.0},
    "identity": {"projection": "norm"},
    "thresholds": {"order": "first", "max_weight": 0.4, "noise": "normal"},
    "sfe": {"baseline": "leave_one_out"},
    "gumbel_softmax": {"temperature": 0.7, "hard": True},
    "softsub": {"temperature": 0.7, "hard": True},
    "sst": {"temperature": 0.7, "hard": True},
    "l2x": {"temperature": 0.3},
    "dpo": {"temperature": 0.5, "noise": "gumbel", "variance_reduction": "none"},
    "exact": {"noise_in_eval": True},
    "reinmax": {"noise_in_eval": True},
    "gumbel_rao": {"temperature": 0.7, "draws": 3},
}


def as_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ":".join(map(repr, value)) if isinstance(value, tuple) else str(value)


def require_kernels(name: str, device: torch.device) -> None:
    for op in OPS.get(name, ("perturbed_map_forward", "perturbed_map_backward")):
        if device.type == "cuda" and not torch._C._dispatch_has_kernel_for_dispatch_key(
            f"aimle::{op}", "CUDA"
        ):
            pytest.skip(f"{op} has no CUDA kernel")


def in_python(name, solver, settings, theta, key, call, weight, curvature, steps, training):
    layer = aimle.estimator(name, solver, **settings).to(theta.device).train(training)
    for _ in range(steps):
        leaf = theta.clone().requires_grad_()
        z = layer(leaf, key=key, **call)
        terms = z * weight + z**2 * curvature / 2
        losses = terms.flatten(-solver.instance_dims).sum(-1)
        if hasattr(layer, "surrogate"):
            extra = call if name == "sfe" else {}
            losses = layer.surrogate(leaf, z, losses, **extra)
        if losses.requires_grad:
            losses.sum().backward()
    gradient = torch.zeros_like(theta) if leaf.grad is None else leaf.grad
    state = [value for _, value in sorted(layer.state_dict().items())]
    return z.detach(), gradient, state


def in_cpp(name, solver, settings, theta, key, call, weight, curvature, steps, training):
    names = [setting.rstrip("_") for setting in settings]
    values = [as_text(value) for value in settings.values()]
    return _ops.estimate(
        name,
        solver.text,
        names,
        values,
        theta,
        key,
        call.get("mask"),
        call.get("k"),
        weight,
        curvature,
        steps,
        training,
    )


def calls(
    structure: str, instance: tuple[int, ...], device: torch.device
) -> Iterator[dict[str, Tensor]]:
    yield {}
    mask = torch.ones(instance, dtype=torch.bool, device=device)
    mask.view(-1)[1] = False
    if structure == "directed":
        mask = torch.ones(2, 3, *instance, dtype=torch.bool, device=device)
        mask[1, :, (0, 3)] = False  # both directions of one edge
    yield {"mask": mask}
    if structure == "topk":
        k = torch.tensor([[3, 0, 1], [2, 3, 3]], device=device)
        yield {"k": k}
        yield {"k": k, "mask": mask}


@pytest.mark.parametrize("structure", SOLVERS)
@pytest.mark.parametrize("name", aimle.estimators())
def test_cpp_gives_the_bits_of_python(name: str, structure: str, device, key):
    solver, instance = SOLVERS[structure]
    if solver.name not in INFOS[name][0].split(","):
        one = torch.zeros(2, *instance)
        with pytest.raises(TypeError, match="applies to"):
            aimle.estimator(name, solver)
        with pytest.raises(TypeError, match=f"{name} applies to .* but got "):
            in_cpp(name, solver, {}, one, key, {}, one, one, 1, True)
        return
    require_kernels(name, device)
    generator = torch.Generator().manual_seed(7)
    for dtype, samples, training in (
        (torch.float32, 1, True),
        (torch.float32, 3, True),
        (torch.float32, 3, False),
        (torch.float64, 3, True),
        (torch.bfloat16, 2, True),
    ):
        one = () if name in MEAN else (1,)
        theta, weight, curvature = (
            torch.randn(2, 3, *dims, *instance, generator=generator, dtype=dtype).to(device)
            for dims in ((), one, one)
        )
        if structure == "grid_path":
            theta = theta.abs()
        for own in ({}, SETTINGS[name]):
            settings = dict(own)
            if "nb_samples" in INFOS[name][1].split(","):
                least = 2 if name in ("dpo", "aimle_covariance") or "baseline" in own else 1
                settings["nb_samples"] = max(samples, least)
            for call in calls(structure, instance, device):
                arguments = (settings, theta, key, call, weight, curvature, 2, training)
                z, gradient, state = in_python(name, solver, *arguments)
                z_cpp, gradient_cpp, state_cpp = in_cpp(name, solver, *arguments)
                described = f"seed 7, {dtype}, training={training}, {settings}, {call}"
                assert z_cpp.dtype == dtype, described
                assert torch.equal(z, z_cpp), described
                assert torch.equal(gradient, gradient_cpp), described
                assert len(state) == len(state_cpp), described
                assert all(map(torch.equal, state, state_cpp)), described


def test_the_names_are_the_same_and_in_the_same_order():
    assert tuple(INFOS) == aimle.estimators()


@pytest.mark.parametrize("name", aimle.estimators())
def test_the_settings_are_the_same(name: str):
    layer = aimle.estimator(name, SOLVERS[INFOS[name][0].split(",")[0]][0])
    expected = set()
    for kind in type(layer).__mro__:
        if kind is torch.nn.Module or "__init__" not in vars(kind):
            continue
        parameters = inspect.signature(kind.__init__).parameters
        expected |= set(parameters) - {"self", "solver", "settings", "difference"}
        if "settings" not in parameters:
            break
    # C++ takes the settings of a target beside the others, and a generator that has no text; its
    # layers are in one process.
    expected -= {"target", "generator", "process_group"}
    expected -= set(CallableSettings.__annotations__)  # what Python is told of callables
    if isinstance(getattr(layer, "target", None), aimle.AdaptiveTarget):
        expected |= {"reference", *inspect.signature(aimle.AdaptiveTarget).parameters}
        expected -= {"_reference"}
    elif name.startswith("imle"):
        expected |= {"lambda_"}
    if name in ("aimle_forward", "imle_central"):
        expected -= {"symmetric_perturbation"}
    if name == "l2x":
        expected -= {"hard"}
    assert {setting.rstrip("_") for setting in expected} == set(INFOS[name][1].split(","))


@pytest.mark.parametrize("name", aimle.estimators())
def test_what_needs_losses_has_a_surrogate_in_both(name: str):
    layer = aimle.estimator(name, SOLVERS[INFOS[name][0].split(",")[0]][0])
    assert hasattr(layer, "surrogate") == (INFOS[name][2] == "true")
    z = layer(torch.randn(4, 7), key=torch.tensor([1, 2]))
    hard = ((z == 0) | (z == 1)).all().item()
    assert hard == (INFOS[name][3] == "false")


@pytest.mark.parametrize("structure", [name for name in SOLVERS if name != "directed"])
def test_the_perturbed_fenchel_young_loss_is_the_same(structure: str, device, key):
    solver, instance = SOLVERS[structure]
    torch.manual_seed(3)
    for dtype in (torch.float32, torch.float64):
        theta = torch.rand(4, *instance, dtype=dtype, device=device).requires_grad_()
        target = solver(torch.rand(4, *instance, dtype=dtype, device=device))
        for call in calls("", instance, device):
            theta.grad = None
            loss = aimle.perturbed_fenchel_young_loss(
                theta, target, solver, nb_samples=5, temperature=0.5, key=key, **call
            )
            loss.sum().backward()
            loss_cpp, gradient_cpp = _ops.fenchel_young(
                solver.text, theta, target, key, call.get("mask"), 5, 0.5
            )
            assert torch.equal(loss, loss_cpp)
            assert torch.equal(theta.grad, gradient_cpp)


@pytest.mark.parametrize("structure", SOLVERS)
def test_the_spo_plus_loss_is_the_same(structure: str, device):
    solver, instance = SOLVERS[structure]
    torch.manual_seed(3)
    for dtype in (torch.float32, torch.float64):
        theta = (3 * torch.rand(2, 3, *instance, dtype=dtype, device=device)).requires_grad_()
        truth = torch.rand(2, 3, *instance, dtype=dtype, device=device)
        for call in calls(structure if structure == "directed" else "", instance, device):
            for solution in (None, solver(truth, **call)):
                theta.grad = None
                loss = aimle.spo_plus_loss(theta, truth, solver, solution=solution, **call)
                loss.sum().backward()
                loss_cpp, gradient_cpp = _ops.spo_plus(
                    solver.text, theta, truth, solution, call.get("mask")
                )
                assert torch.equal(loss, loss_cpp)
                assert torch.equal(theta.grad, gradient_cpp)
