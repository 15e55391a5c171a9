"""aimle.per_instance with worker processes: they are replaced, stopped, and never left behind."""

import copy
import functools
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import ModuleType
from unittest import mock

import numpy as np
import pytest
import torch
from instance_solvers import (
    DiesOnce,
    best_two,
    dies_below_zero,
    fails_below_zero,
    in_this_worker,
    never_ends_below_zero,
    returns_a_lock,
)
from layer_cases import run

import aimle
from aimle.black_box import ray_worker
from aimle.black_box.process_worker import ProcessWorker
from aimle.black_box.worker_pool import StartError, WorkerDied, WorkerPool

TOPK = aimle.TopK(2)
DEADLINE = 300.0


def scores_of(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def ends(pid: int) -> bool:
    """Whether a process is gone before the deadline; one that nobody waits for is."""
    until = time.monotonic() + DEADLINE
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


def appears(file: Path) -> str:
    until = time.monotonic() + DEADLINE
    while not file.exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    return file.read_text()


def pids_of(solver: aimle.PerInstance) -> list[int]:
    return [post.worker.pid for post in solver._started[1]._posts]


def test_nothing_depends_on_the_number_of_workers():
    theta, key = scores_of(5, 6), torch.tensor([1, 2])
    results = []
    for workers in (0, 1, 3):
        with aimle.per_instance(best_two, workers=workers) as solver:
            layer = aimle.AIMLE(solver, nb_samples=3, noise="gumbel")
            results.append((*run(layer, theta, key=key), layer.alpha, solver.stats()))
    for z, gradient, alpha, stats in results[1:]:
        assert torch.equal(z, results[0][0])
        assert torch.equal(gradient, results[0][1])
        assert alpha == results[0][2]
        assert stats == results[0][3]


def test_workers_are_other_processes_without_torch_and_stay():
    with aimle.per_instance(in_this_worker, workers=2) as solver:
        seen = [solver(torch.zeros(6, 33)) for _ in range(2)]
        pids = set(pids_of(solver))
        assert len(pids) == 2
        for z in seen:
            bits = z[:, :-1].long() << torch.arange(32)
            assert set(bits.sum(1).tolist()) <= pids
            assert not z[:, -1].any()
    assert all(ends(pid) for pid in pids)


def test_the_first_failure_is_reported_whoever_finds_it():
    x = scores_of(8, 6).abs()
    x[[2, 5, 7], 0] = -torch.tensor([1.0, 2.0, 3.0])
    for workers in (1, 3):
        with aimle.per_instance(fails_below_zero, workers=workers) as solver:
            with pytest.raises(aimle.SolverError, match=r"row 2 of 8 .*first score -1") as raised:
                solver(x)
            assert isinstance(raised.value.__cause__, ZeroDivisionError)
            assert "fails_below_zero" in raised.value.trace
            assert torch.equal(solver(x.abs()), TOPK(x.abs()))


def test_a_time_limit_ends_the_worker_and_not_the_pool():
    x = scores_of(6, 5).abs()
    x[1, 0] = -1.0
    solver = aimle.per_instance(never_ends_below_zero, workers=2, timeout=2.0, on_error="nan")
    with solver:
        with pytest.warns(UserWarning, match=r"row 1 of 6 .* longer than timeout=2 s"):
            z = solver(x)
        assert z.isnan().any(1).tolist() == [False, True, False, False, False, False]
        rest = [0, 2, 3, 4, 5]
        assert torch.equal(z[rest], TOPK(x[rest]))
        assert torch.equal(solver(x[rest]), TOPK(x[rest]))
    raising = aimle.per_instance(never_ends_below_zero, workers=1, timeout=0.1)
    with raising, pytest.raises(aimle.SolverError) as raised:
        raising(x[1:2])
    assert raised.value.reason == "timeout"
    assert np.array_equal(np.load(raised.value.path)["scores"], x[1].numpy())


def test_a_worker_that_dies_is_replaced_and_its_instance_tried_again(tmp_path: Path):
    x = scores_of(8, 6).abs()
    x[3, 0] = -1.0
    with aimle.per_instance(DiesOnce(tmp_path), workers=2) as solver:
        assert torch.equal(solver(x), TOPK(x))
        assert (tmp_path / "died").exists()


def test_an_instance_that_kills_its_worker_twice_is_reported():
    x = scores_of(6, 5).abs()
    x[4, 0] = -1.0
    with aimle.per_instance(dies_below_zero, workers=2) as solver:
        with pytest.raises(aimle.SolverError, match=r"row 4 .* died 2 times: signal 9 \(SIGKILL"):
            solver(x)
        assert torch.equal(solver(x[:4]), TOPK(x[:4]))


def test_workers_killed_between_calls_are_replaced():
    x = scores_of(6, 5)
    with aimle.per_instance(best_two, workers=2) as solver:
        solver(x)
        for pid in pids_of(solver):
            os.kill(pid, signal.SIGKILL)
            assert ends(pid)
        assert torch.equal(solver(x), TOPK(x))


def test_a_worker_killed_before_it_begins_is_no_fault_of_the_instance(tmp_path: Path, monkeypatch):
    x = scores_of(1, 5).abs()
    submit, stopped = ProcessWorker.submit, []

    def submit_to_a_dying_worker(worker: ProcessWorker, task) -> None:
        if stopped:
            submit(worker, task)
            return
        stopped.append(worker.pid)
        os.kill(worker.pid, signal.SIGSTOP)  # it receives the instance but cannot read it
        submit(worker, task)
        os.kill(worker.pid, signal.SIGKILL)

    with aimle.per_instance(DiesOnce(tmp_path), workers=1) as solver:
        assert torch.equal(solver(x), TOPK(x))
        monkeypatch.setattr(ProcessWorker, "submit", submit_to_a_dying_worker)
        x[0, 0] = -1.0
        assert torch.equal(solver(x), TOPK(x))
    assert stopped
    assert (tmp_path / "died").exists()


def test_copies_have_workers_of_their_own():
    x = scores_of(4, 5)
    layer = aimle.AIMLE(aimle.per_instance(best_two, workers=1), noise=None)
    layer(x)
    twin = copy.deepcopy(layer)
    assert torch.equal(twin(x), layer(x))
    mine, others = pids_of(layer.solver), pids_of(twin.solver)
    assert set(mine).isdisjoint(others)
    del twin
    assert all(ends(pid) for pid in others)
    assert torch.equal(layer(x)[:, 0], TOPK(x))
    del layer
    assert all(ends(pid) for pid in mine)


def test_a_forked_process_starts_its_own():
    x = scores_of(4, 5)
    with aimle.per_instance(best_two, workers=1) as solver:
        expected = solver(x)
        pids = pids_of(solver)
        child = os.fork()
        if child == 0:  # torch itself must not run here: it has threads
            outcome = 1
            try:
                own = solver._running()
                z = own.run([(row, (), {}) for row in x.numpy()], True)
                same = np.array_equal([each.solution for each in z], expected.numpy())
                outcome = 0 if same and pids_of(solver) != pids else 1
                solver.close()
            finally:
                os._exit(outcome)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert pids_of(solver) == pids
        assert torch.equal(solver(x), expected)


PROGRAM = """
import signal, sys, torch, aimle
from instance_solvers import TellsAndWaits
signal.signal(signal.SIGINT, signal.default_int_handler)
solver = aimle.per_instance(TellsAndWaits(sys.argv[1]), workers=1)
solver(torch.zeros(3, 4))
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "SIGKILL"])
def test_workers_end_with_their_parent_in_mid_solve(how: signal.Signals, tmp_path: Path):
    file = tmp_path / "pid"
    folders = [Path(aimle.__file__).parents[1], Path(__file__).parents[1] / "helpers"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    command = [sys.executable, "-c", PROGRAM, str(file)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as parent:
        worker = int(appears(file))
        parent.send_signal(how)
        _, said = parent.communicate(timeout=DEADLINE)
    assert ends(worker)
    assert ("KeyboardInterrupt" in said) == (how is signal.SIGINT)


def test_a_function_that_cannot_travel_is_refused_with_a_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(TypeError, match=r"fn to be picklable.*cloudpickle.*workers=0"):
        aimle.per_instance(lambda x: best_two(x), workers=1)(scores_of(2, 5))


def test_a_function_that_cloudpickle_cannot_pickle_is_refused_with_a_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", ModuleType("cloudpickle"))
    monkeypatch.setattr("cloudpickle.dumps", pickle.dumps, raising=False)
    fn = functools.partial(best_two, threading.Lock())
    with pytest.raises(TypeError, match=r"fn .*picklable.*_thread.lock.*inside the function") as no:
        aimle.per_instance(fn, workers=1)(scores_of(2, 5))
    assert "install cloudpickle" not in str(no.value)


def test_an_argument_that_cannot_be_pickled_is_refused_with_a_remedy():
    with aimle.per_instance(best_two, workers=1) as solver:
        with pytest.raises(TypeError, match=r"extra arguments .*_thread.lock.*threads"):
            solver(scores_of(2, 5), threading.Lock())
        assert torch.equal(solver(scores_of(2, 5)), TOPK(scores_of(2, 5)))


def test_an_argument_that_a_worker_cannot_load_is_a_failure_of_its_row(monkeypatch):
    here = ModuleType("only_in_this_process")
    here.Argument = type("Argument", (), {"__module__": here.__name__})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, here.__name__, here)
    with aimle.per_instance(best_two, workers=1) as solver:
        with pytest.raises(aimle.SolverError, match=r"row 0 .*No module named 'only_in_this_proc"):
            solver(scores_of(2, 5), here.Argument())
        assert torch.equal(solver(scores_of(2, 5)), TOPK(scores_of(2, 5)))


def test_an_answer_that_cannot_be_pickled_is_refused_by_its_type():
    solver = aimle.per_instance(returns_a_lock, workers=1)
    with solver, pytest.raises(TypeError, match=r"row 0.* to return numbers but got object"):
        solver(scores_of(2, 5))


def test_what_ray_cannot_send_is_refused_with_a_remedy(monkeypatch):
    def refuse(*_: object) -> None:
        raise TypeError("cannot pickle '_thread.lock' object")

    ray = mock.MagicMock()
    monkeypatch.setattr(ray_worker, "_ray", lambda: ray)
    worker = ray_worker.RayWorker(best_two, False)
    worker._actor.begin.remote = refuse
    with pytest.raises(TypeError, match=r"extra arguments .*_thread.lock.*threads"):
        worker.submit((None, (), {}))
    ray.remote.return_value.return_value.remote = refuse
    with pytest.raises(TypeError, match=r"fn .*picklable.*_thread.lock.*inside the function"):
        ray_worker.RayWorker(best_two, False)


SCRIPT = """
def solve(scores):
    return scores == scores.max()
def main():
    import aimle, torch
    print(aimle.per_instance(solve, workers=1)(torch.eye(3)).tolist())
"""


@pytest.mark.parametrize("guarded", [True, False])
def test_a_function_of_the_script_itself(guarded: bool, tmp_path: Path):
    """Without cloudpickle a worker imports the script: it must be able to."""
    script = tmp_path / "script.py"
    condition = "__name__ == '__main__'" if guarded else "True"
    script.write_text(f"{SCRIPT}\nif {condition}: main()\n")
    (tmp_path / "cloudpickle.py").write_text("raise ImportError")
    folders = [tmp_path, Path(aimle.__file__).parents[1]]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    result = subprocess.run(
        [sys.executable, str(script)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    if guarded:
        assert result.stdout == "[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]\n"
    else:
        assert result.returncode != 0
        assert "under `if __name__ == '__main__':`" in result.stderr


def test_a_module_that_workers_cannot_import_is_told(tmp_path: Path, monkeypatch):
    (tmp_path / "only_here.py").write_text(
        "import os\nif os.environ.get('AIMLE_WORKER'): raise LookupError('not in a worker')\n"
        "def solve(x): return x\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import only_here

    with pytest.raises(RuntimeError, match=r"could not load the function(.|\n)*not in a worker"):
        aimle.per_instance(only_here.solve, workers=1)(scores_of(2, 5))


class Scripted:
    """A worker that dies as often as it is told, in place of one of its answers or in submit."""

    left: int

    def __init__(self, where: str) -> None:
        self.where = where
        self.answers = [("ready",)]

    def die_in(self, where: str) -> None:
        if self.where == where and Scripted.left > 0:
            Scripted.left -= 1
            raise WorkerDied("as told")

    def submit(self, task) -> None:
        self.die_in("submit")
        self.answers = [("began",), ("solved", task[0])]

    def answer(self) -> tuple:
        self.die_in(self.answers[0][0])
        return self.answers.pop(0)

    def kill(self) -> None:
        pass


class FarAway(Scripted):
    """A worker whose death shows in its next answer alone, as that of a Ray actor."""

    def __init__(self) -> None:
        super().__init__("solved")
        self.alive = True

    def answer(self) -> tuple:
        if not self.alive:
            raise WorkerDied("found dead")
        return super().answer()


def test_a_death_between_runs_is_no_fault_of_the_next_instance():
    tasks = [(number, (), {}) for number in range(3)]
    workers: list[FarAway] = []

    def make() -> FarAway:
        workers.append(FarAway())
        return workers[-1]

    Scripted.left = 0
    pool = WorkerPool(make, lambda workers, _: workers, 1, None)
    pool.run(tasks, True)
    workers[0].alive = False
    Scripted.left = 1  # its successor dies on the first instance, which is forgiven once
    assert [each.solution for each in pool.run(tasks, True)] == [0, 1, 2]
    assert len(workers) == 3


@pytest.mark.parametrize("where", ["ready", "submit", "began"])
@pytest.mark.parametrize("count", [1, 3])
def test_workers_lost_before_they_begin_are_no_fault_of_an_instance(where: str, count: int):
    tasks = [(number, (), {}) for number in range(5)]
    Scripted.left = count + 2
    pool = WorkerPool(lambda: Scripted(where), lambda workers, _: workers, count, None)
    assert [each.solution for each in pool.run(tasks, True)] == [0, 1, 2, 3, 4]
    pool.close()
    Scripted.left = count + 3
    with pytest.raises(StartError, match=f"{count + 3} workers ended before .*as told"):
        pool.run(tasks, True)


def test_a_death_in_mid_solve_is_forgiven_once():
    tasks = [(number, (), {}) for number in range(5)]
    pool = WorkerPool(lambda: Scripted("solved"), lambda workers, _: workers, 1, None)
    Scripted.left = 1
    assert [each.failure for each in pool.run(tasks, True)] == [""] * 5
    Scripted.left = 2
    outcomes = pool.run(tasks, True)
    assert (outcomes[0].failure, outcomes[1:]) == ("died", [None] * 4)
    Scripted.left = 2
    assert [each.failure for each in pool.run(tasks, False)] == ["died", "", "", "", ""]


class Solved(torch.utils.data.Dataset):
    """Rows of scores, each with what a layer over worker processes makes of it."""

    def __init__(self, solver: aimle.PerInstance) -> None:
        self.layer = aimle.AIMLE(solver, nb_samples=2, noise="gumbel")

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> torch.Tensor:
        with torch.no_grad():
            return self.layer(scores_of(1, 6), key=torch.tensor([index, 7]))[0]


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_layer_in_the_workers_of_a_data_loader(start: str):
    """Each of them starts workers of its own, also if this process had some before."""
    with aimle.per_instance(best_two, workers=2) as solver:
        data = Solved(solver)
        expected = torch.stack([data[index] for index in range(4)])  # starts this process's own
        loader = torch.utils.data.DataLoader(
            data, batch_size=2, num_workers=2, multiprocessing_context=start
        )
        assert torch.equal(torch.cat(list(loader)), expected)
        assert torch.equal(data[0], expected[0])
