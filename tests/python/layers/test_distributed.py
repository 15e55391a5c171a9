"""Adaptive layers in two processes over gloo, against one process with the same global batch."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from distributed_cases import (
    STEPS,
    TARGETS,
    Model,
    N,
    batches,
    cases,
    make_layer,
    state_of,
    train,
)
from two_processes import TwoProcesses

import aimle


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> TwoProcesses:
    return TwoProcesses(cases, tmp_path_factory.mktemp("two_processes"), limit=1200.0)


def alone(solver: str = "native", target: str = "default", steps: int = STEPS, **settings) -> list:
    return train(Model(make_layer(solver, target)), steps=steps, **settings)


both_solvers = pytest.mark.parametrize("solver", ["native", "callable"])


def test_alpha_turns_in_these_cases():
    for target in TARGETS:
        alphas = [state[0][0] for state in alone(target=target)]
        moves = {after > before for before, after in itertools.pairwise(alphas)}
        assert moves == {True, False}


@both_solvers
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("broadcast", [True, False])
def test_the_state_under_ddp_is_that_of_one_process(
    solver: str, target: str, broadcast: bool, results: TwoProcesses
):
    expected = alone(solver, target)
    assert results[f"ddp {solver} {target} {broadcast}"] == [expected, expected]


@both_solvers
def test_the_state_under_fsdp_is_that_of_one_process(solver: str, results: TwoProcesses):
    expected = alone(solver)
    assert results[f"fsdp {solver}"] == [expected, expected]


@pytest.mark.parametrize("name", ["accumulated", "uneven", "evaluated by one"])
def test_the_state_is_that_of_one_process_when(name: str, results: TwoProcesses):
    assert results[name] == [alone(), alone()]


def test_the_state_under_compiled_ddp_is_that_of_one_process(results: TwoProcesses):
    for trace, graphs in results["compiled"]:
        assert trace == alone()
        assert graphs == 1


def test_calls_of_one_step_make_one_update(results: TwoProcesses):
    """By the mean of their counts, which is here that of one call."""
    assert results["called twice"] == [alone(), alone()]


@pytest.mark.parametrize("name", ["no gradient", "unused"])
def test_a_process_without_a_gradient_counts_nothing(name: str, results: TwoProcesses):
    expected = alone(share=lambda rows, step: rows[: len(rows) // 2] if step % 3 == 0 else rows)
    assert results[name] == [[state[0] for state in expected]] * 2


@pytest.mark.parametrize(("reentrant", "fsdp"), [(True, False), (False, False), (False, True)])
def test_recomputed_calls_do_not_communicate(reentrant: bool, fsdp: bool, results: TwoProcesses):
    """One message a step, and one at the end; the first step has none to make under FSDP."""
    expected = [alone(), STEPS if fsdp else STEPS + 1]
    assert results[f"recomputed {reentrant} {fsdp}"] == [expected, expected]


def test_a_call_that_only_backward_sees_is_refused(results: TwoProcesses):
    for message in results["recomputed True True"]:
        assert "[aimle.AIMLE]" in message
        assert "use_reentrant=False" in message


# ---- Groups --------------------------------------------------------------------------------------


def test_a_group_given_by_hand(results: TwoProcesses):
    assert results["group of both"] == [alone(), alone()]


@pytest.mark.parametrize("name", ["own state", "group of one"])
def test_a_layer_can_be_alone(name: str, results: TwoProcesses):
    expected = [alone(share=lambda rows, step, rank=rank: rows.chunk(2)[rank]) for rank in (0, 1)]
    assert results[name] == expected
    assert expected[0] != expected[1]


@pytest.mark.parametrize(
    ("name", "messages"), [("under DDP", STEPS + 1), ("by hand", STEPS)], ids=["ddp", "by hand"]
)
def test_layers_share_one_message_a_step(name: str, messages: int, results: TwoProcesses):
    single = {target: alone(target=target) for target in TARGETS}
    expected = [
        [*one, *two, *three]
        for one, two, three in zip(
            single["default"], single["paper"], single["default"], strict=True
        )
    ]
    assert results[f"three layers {name}"] == [[expected, [3 * 3 * 8] * messages]] * 2


def test_what_is_no_group_is_refused(results: TwoProcesses):
    for messages in results["refused"]:
        assert len(messages) == 3
        for message in messages:
            assert "[aimle.AIMLE] expected process_group" in message
            assert "outside of the group give None" in message


# ---- Life of a layer -----------------------------------------------------------------------------


def test_copies_and_pickles(results: TwoProcesses):
    for seen in results["copies"]:
        assert all(seen)


def test_one_process_can_diagnose_alone(results: TwoProcesses):
    model = Model()
    train(model, steps=3)
    expected = train(model, steps=3)
    assert results["diagnosed by one"] == [expected, expected]


def test_a_call_outside_of_ddp_is_this_process_s_own(results: TwoProcesses):
    for before, at_first, moved in results["outside of DDP"]:
        assert before == at_first
        assert moved


def test_a_resumed_training_goes_on_as_that_of_one_process(results: TwoProcesses):
    model = Model()
    train(model, steps=20)
    expected = train(model, steps=20)
    assert results["resumed"] == [[expected, expected]] * 2


@pytest.mark.parametrize("broadcast", [True, False])
def test_in_join_every_process_moves_its_own_state(broadcast: bool, results: TwoProcesses):
    """And DDP's broadcast makes them one, if it is on."""
    (first, own_of_first), (second, own_of_second) = results[f"joined {broadcast}"]
    assert own_of_first != own_of_second
    if broadcast:
        assert first == second
        assert first[2] == 12  # updates
    else:
        assert (first, second) == (own_of_first, own_of_second)


def test_a_process_by_itself_moves_its_state_in_backward():
    layer = make_layer()
    x, d = next(batches(1))
    (layer(x.requires_grad_()).squeeze(1) * d).sum().backward()
    assert layer.updates == 1
    assert layer.process_group == "auto"
    before = state_of(layer)
    aimle.reduce_state(layer)
    assert state_of(layer) == before
    with pytest.raises(TypeError, match=r"expected module to be a torch.nn.Module but got int"):
        aimle.reduce_state(3)


@pytest.mark.parametrize("move", [lambda layer: layer.half(), lambda layer: layer.to("cpu")])
def test_counts_move_with_the_layer(move: Callable[[aimle.AIMLE], aimle.AIMLE], tmp_path: Path):
    """In a group of one, for which a layer waits all the same."""
    dist = torch.distributed
    store = dist.FileStore(str(tmp_path / "store"), 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        layer = make_layer(process_group=dist.group.WORLD)
        x = torch.linspace(-1, 1, N).repeat(2, 1).requires_grad_()
        (layer(x).squeeze(1) * torch.arange(N)).sum().backward()
        assert layer.updates == 0
        seen = str(layer.stats())
        move(layer)
        assert str(layer.stats()) == seen
        aimle.reduce_state(layer)
        assert layer.updates == 1
        restarted = make_layer(process_group=dist.group.WORLD).to("meta").to_empty(device="cpu")
        assert torch.equal(restarted._waiting(), torch.zeros(3, dtype=torch.float64))
    finally:
        dist.destroy_process_group()
