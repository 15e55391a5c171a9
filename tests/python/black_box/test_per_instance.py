"""aimle.per_instance: a function of one instance as a solver, here without workers."""

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from instance_solvers import best_two, fails_below_zero
from layer_cases import run

import aimle

TOPK = aimle.TopK(2)


def scores_of(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_layer_has_the_numbers_of_the_native_solver(symmetric: bool, dtype: torch.dtype):
    theta, key = scores_of(5, 6).to(dtype), torch.tensor([1, 2])
    settings = {"nb_samples": 3, "symmetric_perturbation": symmetric, "noise": "gumbel"}
    solver = aimle.per_instance(best_two, fixed_size=True)
    z, gradient = run(aimle.AIMLE(solver, **settings), theta, key=key)
    native_z, native_gradient = run(aimle.AIMLE(TOPK, **settings), theta, key=key)
    assert torch.equal(z, native_z)
    assert torch.equal(gradient, native_gradient)


ANSWERS = {
    "array": best_two,
    "list": lambda x: best_two(x).tolist(),
    "bools": lambda x: best_two(x).astype(bool),
    "integers": lambda x: best_two(x).astype(np.int8),
    "float64": lambda x: best_two(x).astype(np.float64),
    "tensor": lambda x: torch.from_numpy(best_two(x)).bool(),
    "nearly whole": lambda x: best_two(x) + 1e-6,
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("threads", [False, True])
def test_answers_are_converted(answer, threads: bool):
    pool = {"workers": 3, "pool": "threads"} if threads else {}
    x = scores_of(9, 6)
    assert torch.equal(aimle.per_instance(answer, **pool)(x), TOPK(x))


@pytest.mark.parametrize("settings", [{}, {"workers": 1, "pool": "threads"}])
@pytest.mark.parametrize("instance", ["numpy", "tensor"])
def test_a_function_may_return_the_same_array_again(settings: dict, instance: str):
    solution = np.zeros(6) if instance == "numpy" else torch.zeros(6)

    def solve(x):
        solution[:] = best_two(np.asarray(x)) if instance == "numpy" else aimle.TopK(2)(x)
        return solution

    scores = torch.randn(5, 6, generator=torch.Generator().manual_seed(0))
    solver = aimle.per_instance(solve, instance=instance, **settings)
    assert torch.equal(solver(scores), aimle.TopK(2)(scores))


def test_an_empty_batch():
    solver = aimle.per_instance(best_two, sense="max", cache=0.5)
    assert solver(torch.zeros(0, 6)).shape == (0, 6)
    theta = torch.zeros(0, 6, requires_grad=True)
    aimle.AIMLE(solver)(theta).sum().backward()
    assert theta.grad.shape == (0, 6)


def test_instances_may_be_tensors():
    def solve(scores: torch.Tensor) -> torch.Tensor:
        assert scores.shape == (6,)
        return TOPK(scores)

    x = scores_of(4, 6)
    assert torch.equal(aimle.per_instance(solve, instance="tensor")(x), TOPK(x))


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (lambda x: best_two(x)[:3], ValueError, ("row 0", "[6]", "[3]", "an entry for every")),
        (lambda x: best_two(x)[None], ValueError, ("row 0", "[6]", "[1, 6]")),
        (lambda x: ["a"] * 6, TypeError, ("row 0", "numbers")),
        (lambda x: best_two(x) * 0.5, ValueError, ("row 0", "fractional", "0.5", "fractional=T")),
    ],
)
def test_wrong_answers_name_the_row(answer, error: type[Exception], words: tuple[str, ...]):
    with pytest.raises(error) as raised:
        aimle.per_instance(answer)(torch.arange(12.0).reshape(2, 6))
    assert all(word in str(raised.value) for word in words)


def test_fractional_solutions_on_request():
    solver = aimle.per_instance(lambda x: best_two(x) * 0.5, fractional=True)
    x = scores_of(3, 6)
    assert torch.equal(solver(x), TOPK(x) / 2)
    assert torch.equal(run(aimle.AIMLE(solver, noise=None), x)[0][:, 0], TOPK(x) / 2)


def test_an_error_carries_the_instance(tmp_path):
    x = scores_of(6, 5).abs()
    x[3, 0] = -0.5
    x[5, 0] = -0.7
    solver = aimle.per_instance(fails_below_zero, save_to=tmp_path / "failed")
    with pytest.raises(aimle.SolverError, match=r"row 3 of 6 .*ZeroDivisionError") as raised:
        solver(x)
    error = raised.value
    assert (error.index, error.reason) == (3, "error")
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert "fails_below_zero" in error.trace
    assert np.array_equal(np.load(error.path)["scores"], x[3].numpy())
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.index, again.path) == (str(error), 3, error.path)
    unnamed = aimle.per_instance(fails_below_zero)
    with pytest.raises(aimle.SolverError) as raised:
        unnamed(x[3:])
    assert np.array_equal(np.load(raised.value.path)["scores"], x[3].numpy())


def test_an_instance_that_cannot_be_saved_does_not_hide_the_failure(tmp_path):
    x = scores_of(4, 5).abs()
    x[2:, 0] = -0.5
    (tmp_path / "file").touch()
    place = tmp_path / "file" / "failed"
    with pytest.raises(aimle.SolverError, match=r"row 2 .*could not be saved: .*file") as raised:
        aimle.per_instance(fails_below_zero, save_to=place)(x)
    assert raised.value.path == ""
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    solver = aimle.per_instance(fails_below_zero, save_to=place, on_error="nan")
    with pytest.warns(UserWarning, match="could not be saved"):
        assert solver(x).isnan().any(1).tolist() == [False, False, True, True]


def test_the_last_solution_stands_in():
    x = scores_of(5, 6).abs()
    x[[0, 3, 4], 0] = -0.5
    solver = aimle.per_instance(fails_below_zero, on_error="last")
    with pytest.raises(aimle.SolverError, match="no solution before it"):
        solver(x)
    with pytest.warns(UserWarning, match=r"row 3 of 4 was not solved.*on_error='last'"):
        z = aimle.per_instance(fails_below_zero, on_error="last")(
            torch.cat([x[1:3], x[1:2], x[3:4]])
        )
    assert torch.equal(z[3], TOPK(x[1]))
    solver(x[1:3])
    z = solver(x)
    assert torch.equal(z[[1, 2]], TOPK(x[1:3]))
    assert torch.equal(z[[0, 3, 4]], TOPK(x[2]).expand(3, -1))
    assert solver.stats() == {"solved": 4, "cached": 0, "failed": 4}


def test_a_row_of_nan_stands_in_and_reaches_its_own_gradient():
    theta = scores_of(4, 6).abs()
    theta[2, 0] = -0.5
    solver = aimle.per_instance(fails_below_zero, on_error="nan")
    layer = aimle.IMLE(solver, 0.01, noise=None, output="mean")
    with pytest.warns(UserWarning, match="row 2 of 4"):
        z, gradient = run(layer, theta)
    assert z.isnan().any(1).tolist() == [False, False, True, False]
    assert gradient.isnan().any(1).tolist() == [False, False, True, False]
    x = theta.clone()
    x[1, 3] = torch.nan
    assert aimle.per_instance(best_two)(x).isnan().any(1).tolist() == [False, True, False, False]


def test_backward_solves_the_rows_that_can_differ():
    solver = aimle.per_instance(best_two)
    theta = scores_of(8, 6).requires_grad_()
    z = aimle.AIMLE(solver, nb_samples=3)(theta, key=torch.tensor([1, 2]))
    assert solver.stats()["solved"] == 24
    dy = torch.zeros_like(z)
    dy[5, :2] = torch.linspace(-1, 1, 6)
    z.backward(dy)
    assert solver.stats()["solved"] == 24 + 2 * 2


# ---- Extra arguments -----------------------------------------------------------------------------


def best_of_shifted(scores, shift, *, sign=1, words=None):
    assert words is None or words == f"row {shift[0]:g}"
    return best_two(sign * scores + shift)


@pytest.mark.parametrize("kind", ["tensor", "array"])
def test_extra_arguments_have_an_entry_per_example(kind: str):
    """Repeated for the samples, and left out with the rows that backward leaves out."""
    shift = 3 * scores_of(4, 6, seed=1)
    given = shift if kind == "tensor" else shift.numpy()
    words = [f"row {each:g}" for each in shift[:, 0].tolist()]
    solver = aimle.per_instance(best_of_shifted)
    layer = aimle.AIMLE(solver, nb_samples=3, repeat_arguments=True)
    theta, key = scores_of(4, 6).requires_grad_(), torch.tensor([1, 2])
    z = layer(theta, given, sign=-1, words=words, key=key)
    dy = torch.zeros_like(z)
    dy[2, 1] = torch.linspace(-1, 1, 6)
    z.backward(dy)
    assert solver.stats()["solved"] == 12 + 2

    all_rows = shift.repeat_interleave(3, 0)
    by_hand = aimle.AIMLE(lambda x, shift: TOPK(shift - x), nb_samples=3)
    other = theta.detach().clone().requires_grad_()
    by_hand(other, all_rows, key=key).backward(dy)
    assert torch.equal(theta.grad, other.grad)
    with pytest.raises(ValueError, match=r"number 0 .*every example, \[4, '...'\].*\[3, 6\]"):
        layer(theta, given[:3])
    with pytest.raises(ValueError, match=r"number 0 .* 12 rows but got 4.*repeat_arguments=True"):
        aimle.AIMLE(solver, nb_samples=3)(theta, given)


def test_arguments_are_saved_with_the_instance(tmp_path):
    def fails(scores, capacity, *, name):
        raise ValueError("no")

    solver = aimle.per_instance(fails, save_to=tmp_path)
    with pytest.raises(aimle.SolverError) as raised:
        solver(scores_of(2, 3), torch.tensor([5, 6]), name=["a", "b"])
    saved = np.load(raised.value.path)
    assert sorted(saved.files) == ["argument_0", "scores"]
    assert saved["argument_0"] == 5


# ---- Known solutions -----------------------------------------------------------------------------


@pytest.mark.parametrize("sense", ["max", "min"])
def test_known_solutions_answer_a_share(sense: str):
    sign = 1.0 if sense == "max" else -1.0

    def solve(x: np.ndarray) -> np.ndarray:
        return best_two(sign * x)

    solver = aimle.per_instance(solve, cache=0.75, sense=sense)
    first, second = scores_of(400, 6), scores_of(400, 6, seed=1)
    assert torch.equal(solver(first), TOPK(sign * first))  # nothing is known yet
    z = solver(second)
    stats = solver.stats()
    assert 400 + 60 < stats["solved"] < 400 + 140  # 100 expected, standard deviation 8.7
    assert stats["solved"] + stats["cached"] == 800
    assert torch.equal(z, TOPK(sign * second))  # all 15 solutions were known

    again = aimle.per_instance(solve, cache=0.75, sense=sense)
    again(first)
    assert torch.equal(again(second), z)
    assert again.stats() == stats


def test_only_the_best_known_solution_answers():
    solver = aimle.per_instance(best_two, cache=1.0, cache_size=2, sense="max")
    solver(torch.tensor([[9.0, 8, 0, 0], [0, 9, 8, 0], [0, 0, 9, 8]]))  # the first is forgotten
    z = solver(torch.tensor([[5.0, 4, 3, 0], [0, -9, 1, 1], [5, 3, -torch.inf, 4]]))
    assert z.tolist() == [[0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]]
    assert solver.stats() == {"solved": 4, "cached": 2, "failed": 0}  # -inf: none was feasible


# ---- As an object --------------------------------------------------------------------------------


def test_copies_and_pickles():
    layer = aimle.AIMLE(aimle.per_instance(best_two, workers=2, sense="min", instance_dims=1))
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert twin.solver is not layer.solver
        assert (twin.solver.fn, twin.solver.workers, twin.solver.sense) == (best_two, 2, "min")


def test_only_what_is_known_is_said():
    solver = aimle.per_instance(best_two)
    assert not any(hasattr(solver, name) for name in ("sense", "instance_dims", "fixed_size"))
    assert aimle.AIMLE(aimle.per_instance(best_two, sense="min")).sense == "min"
    assert repr(solver) == "per_instance(best_two, workers=0, pool='processes')"
    assert aimle.per_instance(best_two, workers=None).workers >= 1


def test_compiled_code_calls_it():
    layer = aimle.AIMLE(aimle.per_instance(best_two), target=aimle.AdaptiveTarget(0.7))
    theta, key = scores_of(4, 6), torch.tensor([1, 2])
    compiled = torch.compile(copy.deepcopy(layer), backend="aot_eager")
    expected = run(layer, theta, key=key)
    for got, wanted in zip(run(compiled, theta, key=key), expected, strict=True):
        assert torch.equal(got, wanted)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"fn": 3}, TypeError, "fn to be callable but got int"),
        ({"fn": aimle.TopK(2)}, TypeError, "got TopK, which solves whole batches: pass it to the"),
        ({"fn": aimle.per_instance(best_two)}, TypeError, "got PerInstance, which solves whole"),
        ({"fn": aimle.TopK}, TypeError, "fn to be a solver .* the class TopK itself"),
        ({"fn": aimle.AIMLE(aimle.TopK(2))}, TypeError, "the layer AIMLE: pass its solver"),
        ({"workers": -1}, ValueError, "workers >= 0"),
        ({"timeout": 1.0}, ValueError, r"no timeout with workers=0 .*workers >= 1"),
        ({"timeout": 1.0, "workers": 2, "pool": "threads"}, ValueError, "timeout with threads"),
        ({"timeout": 0.0, "workers": 2}, ValueError, "timeout > 0"),
        ({"pool": "threads"}, ValueError, "workers >= 1 for pool='threads'"),
        ({"pool": "fibres"}, ValueError, "'processes' or 'threads' or 'ray'"),
        ({"on_error": "ignore"}, ValueError, "'raise' or 'last' or 'nan'"),
        ({"cache": 0.5}, ValueError, "sense to be 'max' or 'min' with cache=0.5"),
        ({"cache": 1.5, "sense": "max"}, ValueError, "0 <= cache <= 1"),
        ({"instance": "list"}, ValueError, "'numpy' or 'tensor'"),
        ({"instance_dims": 0}, ValueError, "instance_dims >= 1"),
        ({"time_out": 1.0}, TypeError, "did you mean 'timeout'"),
    ],
)
def test_bad_settings(settings: dict, error: type[Exception], words: str):
    fn = settings.pop("fn", best_two)
    with pytest.raises(error, match=words):
        aimle.per_instance(fn, **settings)


def test_a_cache_takes_no_arguments():
    solver = aimle.per_instance(best_two, cache=0.5, sense="max")
    with pytest.raises(ValueError, match="cache assumes the same feasible solutions"):
        solver(scores_of(2, 6), scores_of(2, 6))


FAILURES = """
import sys
import torch
import aimle
from instance_solvers import fails_below_zero
for solver in (aimle.per_instance(fails_below_zero), aimle.per_instance(fails_below_zero)):
    for value in (-1.0, -2.0):
        try:
            solver(torch.full((1, 3), value))
        except aimle.SolverError as error:
            print(error.path)
"""


def test_a_process_saves_its_failures_in_one_temporary_folder(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FAILURES],
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    (folder,) = tmp_path.glob("aimle_instances_*")
    files = [Path(line) for line in done.stdout.splitlines()]
    assert len(set(files)) == 4
    assert {file.parent for file in files} == {folder}
    assert [np.load(file)["scores"][0] for file in files] == [-1, -2, -1, -2]
