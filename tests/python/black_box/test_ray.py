"""aimle.per_instance on a Ray cluster of two workers on this machine."""

import os
import signal
from pathlib import Path

import pytest
import torch
from extras import need, start_ray
from instance_solvers import DiesOnce, best_two, dies_below_zero, never_ends_below_zero
from layer_cases import run

import aimle
from aimle.black_box.ray_worker import RayWorker

ray = need("ray")

TOPK = aimle.TopK(2)


@pytest.fixture(scope="module", autouse=True)
def cluster():
    folders = [Path(aimle.__file__).parents[1], Path(__file__).parents[1] / "helpers"]
    environment = {"PYTHONPATH": os.pathsep.join(map(str, folders))}
    start_ray(runtime_env={"env_vars": environment})
    yield
    ray.shutdown()


def scores_of(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).abs()


def solver_of(fn, **settings) -> aimle.PerInstance:
    return aimle.per_instance(fn, workers=2, pool="ray", **settings)


def test_the_cluster_has_the_numbers_of_this_process():
    theta, key = scores_of(4, 6), torch.tensor([1, 2])
    with solver_of(best_two) as solver:
        got = run(aimle.AIMLE(solver, nb_samples=2), theta, key=key)
    expected = run(aimle.AIMLE(aimle.per_instance(best_two), nb_samples=2), theta, key=key)
    assert torch.equal(got[0], expected[0])
    assert torch.equal(got[1], expected[1])


def test_a_worker_killed_in_mid_batch_is_replaced(tmp_path: Path):
    x = scores_of(8, 6)
    x[3, 0] = -1.0
    with solver_of(DiesOnce(tmp_path)) as solver:
        assert torch.equal(solver(x), TOPK(x))
    assert (tmp_path / "died").exists()


def process_of(worker: RayWorker) -> int:
    return ray.get(worker._actor.__ray_call__.remote(lambda _: os.getpid()))


def test_an_actor_killed_between_calls_is_no_fault_of_the_next_instance(tmp_path: Path):
    x = scores_of(1, 6)
    for round_ in range(3):
        folder = tmp_path / str(round_)
        folder.mkdir()
        x[0, 0] = 1.0
        with aimle.per_instance(DiesOnce(folder), workers=1, pool="ray") as solver:
            assert torch.equal(solver(x), TOPK(x))
            (post,) = solver._started[1]._posts
            os.kill(process_of(post.worker), signal.SIGKILL)
            x[0, 0] = -1.0
            assert torch.equal(solver(x), TOPK(x))
        assert (folder / "died").exists()


def test_an_actor_killed_just_before_a_task_is_no_fault_of_its_instance(
    tmp_path: Path, monkeypatch
):
    x = scores_of(1, 6)
    submit, killed = RayWorker.submit, []

    def submit_to_a_dead_actor(worker: RayWorker, task) -> None:
        if not killed:
            killed.append(process_of(worker))
            os.kill(killed[0], signal.SIGKILL)  # Ray reports it some time after this
        submit(worker, task)

    with aimle.per_instance(DiesOnce(tmp_path), workers=1, pool="ray") as solver:
        assert torch.equal(solver(x), TOPK(x))
        monkeypatch.setattr(RayWorker, "submit", submit_to_a_dead_actor)
        x[0, 0] = -1.0
        assert torch.equal(solver(x), TOPK(x))
    assert killed
    assert (tmp_path / "died").exists()


def test_an_instance_that_kills_its_worker_twice_is_reported():
    x = scores_of(5, 6)
    x[3, 0] = -1.0
    with solver_of(dies_below_zero) as solver:
        with pytest.raises(aimle.SolverError, match=r"row 3 .* died 2 times") as raised:
            solver(x)
        assert raised.value.reason == "died"
        assert torch.equal(solver(x[:3]), TOPK(x[:3]))


def test_a_time_limit_ends_the_worker():
    x = scores_of(5, 6)
    x[1, 0] = -1.0
    solver = solver_of(never_ends_below_zero, timeout=3.0, on_error="nan")
    with solver, pytest.warns(UserWarning, match="row 1 of 5"):
        z = solver(x)
    assert z.isnan().any(1).tolist() == [False, True, False, False, False]
