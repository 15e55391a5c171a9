"""Callable solvers run the stages one by one, with the same bits as the fused layer."""

import functools
import math
import subprocess
import sys
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_cases import NOISES, PROBLEMS, Disguised, as_strangers_see, leaf, randn, run, state_of
from torch import Tensor
from torch.nn.functional import one_hot

import aimle
from aimle.perturbed_map import _ALL_STATS


def both(solver: aimle.Solver, make, theta: Tensor, dy: Tensor | None, call: dict, **for_stranger):
    """(z, gradient, state) of the fused layer and of the staged one."""
    results = []
    for given_solver in (solver, Disguised(solver, **for_stranger)):
        layer = make(given_solver).to(theta.device)
        native = isinstance(given_solver, aimle.Solver)
        arguments = call if native else {k: v for k, v in call.items() if k != "k"}
        results.append((*run(layer, theta, dy, **arguments), state_of(layer)))
    return results


def assert_same(fused, staged) -> None:
    torch.testing.assert_close(staged[0], fused[0], rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(staged[1], fused[1], rtol=0, atol=0, equal_nan=True)
    states = [dict(state) for *_, state in (staged, fused)]
    for state in states:  # a callable does not tell what it clips
        state["layer_stats"][_ALL_STATS.index("clipped_share")] = 0.0
    torch.testing.assert_close(*states, rtol=0, atol=0, equal_nan=True)


MODES = {
    "central": {"symmetric_perturbation": True},
    "forward": {"symmetric_perturbation": False},
    "forward at two temperatures": {
        "symmetric_perturbation": False,
        "target_noise_temperature": 0.5,
    },
    "sample": {"target": aimle.AdaptiveTarget(0.7, scope="sample")},
    "batch": {"target": aimle.AdaptiveTarget(0.7, scope="batch")},
    "reference": {"target": aimle.AdaptiveTarget.reference(initial_alpha=0.7)},
    "fixed": {"target": aimle.FixedTarget(1.5)},
}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("noise", NOISES)
def test_staged_equals_fused(name: str, noise: str, device: torch.device, key: Tensor):
    problem = PROBLEMS[name]
    theta = problem.theta(2, 3, dtype=torch.float32, device=device)
    for mode in MODES.values():
        for output in ("samples", "flat", "mean"):
            for sense in problem.senses:
                arguments: dict[str, Any] = {
                    "noise": NOISES[noise],
                    "nb_samples": 3,
                    "output": output,
                    "sense": sense,
                    "target": aimle.AdaptiveTarget(0.7),
                    **mode,
                }
                if not as_strangers_see(problem, arguments["target"]):
                    continue
                fused, staged = both(
                    problem.solver,
                    lambda solver, given=arguments: aimle.AIMLE(solver, **given),
                    theta,
                    None,
                    {"key": key},
                )
                assert_same(fused, staged)


@pytest.mark.parametrize("estimator", [aimle.STE, aimle.IMLE, aimle.DBB, aimle.Identity])
@pytest.mark.parametrize("training", [True, False])
def test_every_estimator_takes_a_callable(
    estimator: type, training: bool, device: torch.device, key: Tensor
):
    problem = PROBLEMS["topk"]
    theta = problem.theta(5, device=device)
    fused, staged = both(
        problem.solver, lambda s: estimator(s).train(training), theta, None, {"key": key}
    )
    assert_same(fused, staged)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("output", ["samples", "flat", "mean"])
def test_staged_equals_fused_in_every_type(
    dtype: torch.dtype, output: str, device: torch.device, key: Tensor
):
    problem = PROBLEMS["topk"]
    theta = problem.theta(5, dtype=dtype, device=device)
    for symmetric in (True, False):
        fused, staged = both(
            problem.solver,
            lambda solver, symmetric=symmetric: aimle.AIMLE(
                solver,
                nb_samples=7,
                output=output,
                symmetric_perturbation=symmetric,
                target=aimle.AdaptiveTarget(0.7),
            ),
            theta,
            None,
            {"key": key},
        )
        assert staged[0].dtype == staged[1].dtype == dtype
        assert_same(fused, staged)


@pytest.mark.parametrize("name", ["topk", "grid"])
@pytest.mark.parametrize("shape", ["whole", "one row for all"])
def test_a_callable_sees_masked_scores_as_infinite(
    name: str, shape: str, device: torch.device, key: Tensor
):
    problem = PROBLEMS[name]
    theta = problem.theta(2, 3, device=device)
    mask = torch.ones(problem.instance, dtype=torch.bool, device=device)
    mask[..., 1:2] = False
    if name == "grid":
        mask[0] = True
    if shape == "whole":
        mask = mask.expand_as(theta)
    fused, staged = both(
        problem.solver,
        lambda solver: aimle.AIMLE(solver, nb_samples=3, target=aimle.AdaptiveTarget(0.7)),
        theta,
        None,
        {"key": key, "mask": mask},
    )
    assert_same(fused, staged)


# ---- What a callable may be ----------------------------------------------------------------------


def hardmax(scores: Tensor) -> Tensor:
    return one_hot(scores.argmax(-1), scores.shape[-1]).to(scores)


def test_any_function_will_do(device: torch.device, key: Tensor):
    theta = randn(5, 7, device=device)
    target = aimle.AdaptiveTarget.paper(0.7)
    expected = run(aimle.AIMLE(aimle.Argmax(), target=target).to(device), theta, key=key)
    for solver in (hardmax, lambda x: hardmax(x), torch.nn.Softmax(-1)):
        soft = isinstance(solver, torch.nn.Module)
        layer = aimle.AIMLE(solver, target=target, fractional=soft).to(device)
        z, gradient = run(layer, theta, key=key)
        assert z.shape == (5, 1, 7)
        if not soft:
            assert torch.equal(z, expected[0])
            assert torch.equal(gradient, expected[1])
        assert gradient.count_nonzero() > 0


def test_the_dimensions_behind_the_batch_are_the_instances(device: torch.device, key: Tensor):
    """A callable without instance_dims: one batch dimension, the rest is the instance's."""

    def cheapest(costs: Tensor) -> Tensor:
        assert costs.shape == (6, 4, 5)
        return aimle.GridPath()(costs)

    problem = PROBLEMS["grid"]
    theta = problem.theta(3, device=device)
    target = aimle.AdaptiveTarget(0.7)
    settings = {"noise": "normal", "temperature": 0.3, "nb_samples": 2}
    settings["symmetric_perturbation"] = False
    expected = run(
        aimle.AIMLE(problem.solver, target=target, **settings).to(device), theta, key=key
    )
    layer = aimle.AIMLE(cheapest, target=target, sense="min", **settings).to(device)
    z, gradient = run(layer, theta, key=key)
    assert torch.equal(z, expected[0])
    assert torch.equal(gradient, expected[1])


def test_extra_arguments_reach_the_callable_in_backward_too(device: torch.device):
    seen = []

    def solver(scores: Tensor, shift: Tensor, *, sign: int = 1) -> Tensor:
        seen.append((shift, sign))
        return hardmax(sign * scores + shift)

    layer = aimle.AIMLE(solver, target=aimle.AdaptiveTarget(0.7)).to(device)
    theta, shift = leaf(randn(3, 4, device=device)), randn(4, device=device)
    layer(theta, shift, sign=-1).square().sum().backward()
    assert len(seen) == 3
    assert all(given is shift and sign == -1 for given, sign in seen)
    with pytest.raises(TypeError, match="takes no extra arguments"):
        aimle.AIMLE(aimle.Argmax()).to(device)(theta, shift)


def test_a_callable_may_keep_or_change_what_it_was_given(device: torch.device, key: Tensor):
    """Returning its input, or writing into it, does not disturb the layer."""

    def in_place(scores: Tensor) -> Tensor:
        return scores.copy_(hardmax(scores))

    theta = randn(5, 7, device=device)
    for symmetric in (True, False):
        results = [
            run(
                aimle.AIMLE(
                    solver,
                    nb_samples=3,
                    symmetric_perturbation=symmetric,
                    target=aimle.AdaptiveTarget(0.7),
                ).to(device),
                theta,
                key=key,
            )
            for solver in (hardmax, in_place)
        ]
        assert torch.equal(results[0][0], results[1][0])
        assert torch.equal(results[0][1], results[1][1])


@functools.cache
def multiplies_bfloat16() -> bool:
    """Where the CPU has matrix tiles that the system does not permit, PyTorch cannot; asked in a
    process of its own, since a failure breaks later convolutions of the process as well."""
    program = "import torch; torch.zeros(200, 7).bfloat16() @ torch.zeros(7, 7).bfloat16()"
    return subprocess.run([sys.executable, "-c", program], capture_output=True).returncode == 0


@pytest.mark.parametrize("symmetric", [True, False])
def test_autocast_does_not_reach_a_callable(symmetric: bool, device: torch.device, key: Tensor):
    """Forward runs under autocast and backward does not: both must solve in one precision."""
    weights = randn(7, 7, dtype=torch.float32, device=device)
    if device.type == "cpu" and not multiplies_bfloat16():
        pytest.skip("PyTorch cannot multiply bfloat16 on this machine")

    def solver(scores: Tensor) -> Tensor:
        return hardmax(scores @ weights)

    theta, dy = (randn(200, *n, 7, dtype=torch.float32, device=device) for n in ((), (1,)))
    results = []
    for enabled in (False, True):
        target = aimle.AdaptiveTarget.paper(0.01)
        layer = aimle.AIMLE(solver, symmetric_perturbation=symmetric, target=target).to(device)
        given = leaf(theta)
        with torch.autocast(device.type, torch.bfloat16, enabled=enabled):
            assert (given @ weights).dtype == (torch.bfloat16 if enabled else torch.float32)
            z = layer(given, key=key)
        z.backward(dy)
        results.append((z, given.grad))
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])


@pytest.mark.parametrize("output", ["samples", "flat", "mean"])
def test_changing_z_does_not_change_the_gradient(output: str, device: torch.device, key: Tensor):
    """The forward difference keeps its own z."""
    gradients = []
    for edit in (False, True):
        layer = aimle.AIMLE(
            hardmax,
            symmetric_perturbation=False,
            output=output,
            target=aimle.AdaptiveTarget(0.7),
        ).to(device)
        theta = leaf(randn(5, 7, device=device))
        z = layer(theta, key=key)
        if edit:
            z.detach().zero_()
        z.backward(randn(*z.shape, device=device))
        gradients.append(theta.grad)
    assert torch.equal(*gradients)


def test_forward_calls_a_solver_once_and_backward_as_often_as_it_must(device: torch.device):
    for settings_, calls in (
        ({}, 3),
        ({"symmetric_perturbation": False}, 2),
        ({"symmetric_perturbation": False, "target_noise_temperature": 0.5}, 3),
    ):
        solver = Disguised(aimle.TopK(2))
        layer = aimle.AIMLE(solver, nb_samples=4, target=aimle.AdaptiveTarget(0.5), **settings_)
        run(layer.to(device), randn(3, 6, device=device))
        assert len(solver.seen) == calls


# ---- Anything goes -------------------------------------------------------------------------------

TARGETS = st.one_of(
    st.builds(aimle.FixedTarget, st.sampled_from([0.0, 0.5, 10.0])),
    st.builds(
        aimle.AdaptiveTarget,
        initial_alpha=st.sampled_from([1e-6, 0.3, 2.0]),
        target_norm=st.sampled_from([None, 1.0]),
        scope=st.sampled_from(["example", "sample", "batch"]),
        scale=st.sampled_from(["auto", "theta", "noise"]),
    ),
)


@st.composite
def calls(draw) -> dict[str, Any]:
    """Everything that makes one call of a layer."""
    target = draw(TARGETS)
    names = [name for name, problem in PROBLEMS.items() if as_strangers_see(problem, target)]
    problem = PROBLEMS[draw(st.sampled_from(names))]
    scale = getattr(target, "scale", "theta")
    scaled = scale == "noise"
    noises = [noise for noise in NOISES.values() if noise is not None or not scaled]
    # A callable cannot say which rows have a single solution; only the paper's norms see those.
    topk = isinstance(problem.solver, aimle.TopK) and scale == "theta"
    return {
        "problem": problem,
        "batch": draw(st.lists(st.integers(1, 3), max_size=2)),
        "seed": draw(st.integers(0, 2**32)),
        "dtype": draw(st.sampled_from([torch.float32, torch.float64, torch.bfloat16])),
        "mask": draw(st.booleans()) and problem.solver.instance_dims == 1 and topk,
        "k": draw(st.booleans()) and topk,
        "dy": draw(st.sampled_from(["random", "zero", "one zero", "one nan"])),
        "layer": {
            "target": target,
            "noise": draw(st.sampled_from(noises)),
            "nb_samples": draw(st.integers(1, 5)),
            "symmetric_perturbation": draw(st.booleans()),
            "theta_noise_temperature": draw(st.sampled_from([0.0, 0.5, 1.0])),
            "target_noise_temperature": draw(st.sampled_from([None, 0.5])),
            "sense": draw(st.sampled_from([None, *problem.senses])),
            "output": draw(st.sampled_from(["samples", "flat", "mean"])),
        },
    }


@settings(max_examples=300, deadline=None)
@given(calls())
def test_fuzz(call: dict[str, Any]):
    problem, dtype = call["problem"], call["dtype"]
    theta = problem.theta(*call["batch"], seed=call["seed"], dtype=dtype)
    key = torch.tensor([call["seed"], 1])
    arguments: dict[str, Any] = {"key": key}
    for_stranger = {}
    samples = call["layer"]["nb_samples"]
    if call["mask"]:
        arguments["mask"] = torch.arange(problem.instance[-1]) % 4 < 3
    if call["k"]:
        generator = torch.Generator().manual_seed(call["seed"])
        arguments["k"] = torch.randint(0, 6, call["batch"], generator=generator)
        for_stranger["k"] = arguments["k"].flatten().repeat_interleave(samples)
    template = aimle.AIMLE(problem.solver, **call["layer"])(theta, key=key)
    dy = randn(*template.shape, seed=call["seed"] + 1, dtype=dtype)
    if call["dy"] == "zero":
        dy.zero_()
    if call["dy"] == "one zero":
        dy.view(-1, *problem.instance)[0].zero_()
    if call["dy"] == "one nan":
        dy.view(-1)[-1] = math.nan
    fused, staged = both(
        problem.solver,
        lambda solver: aimle.AIMLE(solver, **call["layer"]),
        theta,
        dy,
        arguments,
        **for_stranger,
    )
    assert_same(fused, staged)
    z, gradient, state = fused
    assert z.isfinite().all()
    assert call["dy"] == "one nan" or gradient.isfinite().all()
    if "alpha" in state:
        assert state["alpha"].isfinite()
        assert call["dy"] not in ("zero", "random") or state["updates"] == (call["dy"] == "random")
