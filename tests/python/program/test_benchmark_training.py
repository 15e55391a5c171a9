"""`aimle benchmark training`: the file of rows, the table, and every kind of task in tiny form."""

from __future__ import annotations

import fcntl
import math
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aimle_program import aimle, need_program
from extras import need
from repository import ROOT
from torch import Tensor

from aimle.estimate.texts import python_settings
from aimle.program.benchmark import __main__ as command
from aimle.program.benchmark import advice, digits, methods, program_tasks, table, task
from aimle.program.benchmark.results import Results, Row
from aimle.program.benchmark.tasks import TASKS


def row(method: str, value: float, seed: int = 0, setting: str = "", name: str = "digits") -> Row:
    return Row(
        task=name,
        data="some data",
        length="2 steps",
        method=method,
        setting=setting,
        seed=seed,
        metric=TASKS[name].metric,
        value=value,
        steps=2,
        solver_calls=128,
        seconds=0.5,
        commit="abc",
        device="cpu",
    )


def run(*arguments: object, out: Path) -> int:
    return command.main(["training", *map(str, arguments), "--work", str(out)])


@pytest.mark.parametrize("method", ["aimle", "exact", "identity"])
def test_losses_of_a_model_get_the_samples_of_every_method(method: str) -> None:
    recipe: Any = advice.SMALL_TASKS["heads-6-overlap-s4"].train
    model, shapes = recipe.build(), []

    def losses(z: Tensor, rows: Tensor) -> Tensor:
        shapes.append(z.shape)
        return model.losses(z, rows)

    recipe = replace(recipe, build=lambda: replace(model, losses=losses))
    recipe(method, {}, seed=0, quick=True)
    assert shapes[0] == (32, 1 if method == "identity" else 4, 6, 6)


class TestResults:
    def test_rows_come_back_as_they_were(self, tmp_path: Path) -> None:
        results = Results(tmp_path / "new" / "training.csv")
        assert results.read() == []
        rows = [row("default", 0.5), row("imle", math.inf, seed=3, setting="lambda=0.1")]
        for each in rows:
            results.add(each)
        assert results.read() == rows
        assert [file.name for file in results.file.parent.iterdir()] == ["training.csv"]

    def test_a_second_run_of_a_key_replaces_the_first(self, tmp_path: Path) -> None:
        results = Results(tmp_path / "training.csv")
        for value in (0.5, 0.75):
            results.add(row("default", value))
        assert [each.value for each in results.read()] == [0.75]

    def test_a_stop_while_writing_leaves_the_old_rows(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        results = Results(tmp_path / "training.csv")
        results.add(row("default", 0.5))

        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("os.fsync", stop)
        with pytest.raises(KeyboardInterrupt):
            results.add(row("paper", 0.25))
        assert [each.method for each in results.read()] == ["default"]

    def test_another_file_is_refused_by_name(self, tmp_path: Path) -> None:
        file = tmp_path / "training.csv"
        file.write_text("a,b\n1,2\n")
        with pytest.raises(ValueError, match=r"training\.csv: expected the columns task,.*got a,b"):
            Results(file).read()
        assert run("--tasks", "digits", "--output", tmp_path, out=tmp_path) == 3
        assert file.read_text() == "a,b\n1,2\n"


class TestTable:
    def test_means_and_standard_errors(self) -> None:
        mean = table.mean_of([1.0, 2.0, 3.0])
        assert (mean.value, mean.runs) == (2.0, 3)
        assert mean.error == pytest.approx(1 / math.sqrt(3))
        assert str(mean) == "2.000 ± 0.577"
        assert str(table.mean_of([-2028.25])) == "-2028"

    @pytest.mark.parametrize(
        ("default", "other", "higher", "met"),
        [
            (1.01, 1.0, False, True),  # within 2 %
            (1.03, 1.0, False, False),
            (0.99, 1.0, True, True),
            (0.97, 1.0, True, False),
            (0.9, 1.0, False, True),  # better
            (-2000.0, -2028.0, True, True),
            (-2100.0, -2028.0, True, False),
            (math.nan, 1.0, False, False),
            (1.0, math.nan, False, True),
        ],
    )
    def test_when_the_default_meets_another(
        self, default: float, other: float, higher: bool, met: bool
    ) -> None:
        means = (table.mean_of([default]), table.mean_of([other]))
        assert table.compare(*means, higher).met is met

    def test_one_standard_error_of_the_difference_is_enough(self) -> None:
        noisy = table.mean_of([0.9, 1.3, 1.1])  # 1.1 ± .115
        assert table.compare(noisy, table.mean_of([1.0, 1.0, 1.0]), False).met

    def test_page_of_rows(self) -> None:
        rows = [
            *(row("default", value, seed) for seed, value in enumerate((0.80, 0.82))),
            *(row("paper", value, seed) for seed, value in enumerate((0.70, 0.72))),
            row("imle", 0.6, setting="lambda=10"),
            row("imle", 0.9, setting="lambda=100"),
            row("imle_central", 0.5, setting="lambda=10"),
            row("sst", 0.85),
            row("softsub", 0.4),
        ]
        text = table.page(rows, TASKS)
        default = "0.8100 ± 0.0100"
        assert [
            [cell.strip() for cell in line.strip("|").split("|")[1:]]
            for line in text.splitlines()
            if line.startswith("| 8 of 64 pixels")
        ] == [
            [default, "0.9000", "`imle`, λ = 100", "1–2", "-10.0 % (**no**)"],
            [default, "0.7100 ± 0.0100", "2", "+14.1 % (yes)"],
            [default, "–", "–", "0.8500 `sst`"],
        ]
        assert "λ of `imle`: 10: 0.6000 · 100: 0.9000" in text
        assert "Mean of the differences: +14.1 %. *yes* on 1 of 1 tasks." in text
        assert "PyEPO's AIMLE" not in text
        assert "Not run yet: `dvae-k1-s1`" in text

    def test_the_end_of_a_grid_is_named(self) -> None:
        rows = [row("imle", 0.6, setting="lambda=100"), row("imle", 0.9, setting="lambda=10000")]
        assert "| 0.9000 | `imle`, λ = 10000† |" in table.page(rows, TASKS)

    def test_a_lambda_with_fewer_seeds_is_not_the_best(self) -> None:
        rows = [
            row("imle", 0.9, setting="lambda=100"),
            *(row("imle", 0.7, seed, setting="lambda=300") for seed in range(2)),
        ]
        text = table.page(rows, TASKS)
        assert "| `imle`, λ = 300 |" in text
        assert "100: 0.9000 · 300: 0.7000 ± 0.0000" in text

    def test_page_without_rows_names_the_command(self) -> None:
        text = table.page([], TASKS)
        assert "aimle benchmark training --device cuda --data DIR" in text
        assert "No task has been run yet" in text
        assert "## Summary" not in text

    def test_rows_of_another_length_have_their_own_section(self) -> None:
        rows = [row("default", 0.5), replace(row("default", 0.6), length="400 steps")]
        assert [section.length for section in table.sections(rows, TASKS)] == [
            "2 steps",
            "400 steps",
        ]

    def test_the_page_of_the_documentation_is_up_to_date(self) -> None:
        text = (ROOT / "docs" / "results" / "training.md").read_text()
        assert text == table.page(Results(ROOT / "docs/results/training.csv").read(), TASKS)


class TestMethods:
    def test_paper_is_algorithm_1(self) -> None:
        import aimle as package

        settings = python_settings(dict(methods.SINGLE["paper"].settings))
        target = package.AdaptiveTarget(**settings)
        assert (target.start, target.step, target.target_norm) == (0.0, 1e-3, 1.0)
        assert target == package.AdaptiveTarget.paper(0.0)

    def test_a_candidate_counts_by_the_task(self) -> None:
        found = methods.parse_candidate("a2=aimle,alpha_range=1e-6:2,target_norm=K/sqrt(S)")
        settings = python_settings(found.resolved(ones=10, samples=4))
        assert (found.name, found.estimator) == ("a2", "aimle")
        assert settings == {"alpha_range": (1e-6, 2.0), "target_norm": 5.0}

    @pytest.mark.parametrize("text", ["a2", "a2=", "a2=aimle,step", "default=aimle"])
    def test_what_is_no_candidate(self, text: str) -> None:
        with pytest.raises(ValueError, match="expected"):
            methods.parse_candidate(text)

    def test_a_grid_has_seven_lambdas_in_every_task(self) -> None:
        for each in TASKS.values():
            assert len(each.lambdas) == 7, each.name
            assert {"default", "paper", "imle", "imle_central", "noise"} <= set(each.methods)


class TestCommand:
    def test_missing_packages_are_named_and_the_task_is_skipped(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
    ) -> None:
        monkeypatch.setattr(task.importlib.util, "find_spec", lambda _: None)
        assert run("--quick", "--tasks", "digits,knapsack-l1", out=tmp_path) == 0
        said = capsys.readouterr().err
        assert "digits: skipped: needs scikit-learn: pip install scikit-learn" in said
        assert "pip install pyepo ortools scikit-learn" in said
        assert Results(tmp_path / "training.csv").read() == []
        assert "No task has been run yet" in (tmp_path / "training.md").read_text()

    def test_film_reviews_without_files_are_skipped(
        self, tmp_path: Path, capsys: pytest.CaptureFixture
    ) -> None:
        need_program()
        assert run("--quick", "--tasks", "l2x-films", out=tmp_path) == 0
        assert "pass --data DIR with imdb/ and eraser_movies/ in it" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (["--tasks", "digit"], "expected names of dvae-k1-s1"),
            (["--tasks", "digit"], "(see --list) but got 'digit'; did you mean 'digits'?"),
            (["--methods", "best"], "expected names of default"),
            (["--seeds", "a"], "expected numbers and ranges"),
            (["--candidate", "a2"], "expected NAME=ESTIMATOR"),
        ],
    )
    def test_wrong_arguments(
        self, arguments: list[str], says: str, capsys: pytest.CaptureFixture
    ) -> None:
        with pytest.raises(SystemExit) as ended:
            command.main(["training", *arguments])
        assert ended.value.code == 2
        assert says in capsys.readouterr().err

    @pytest.mark.parametrize("study", ["training", "advice"])
    def test_help_fits_a_screen(self, study: str, capsys: pytest.CaptureFixture) -> None:
        with pytest.raises(SystemExit):
            command.main([study, "--help"])
        shown = capsys.readouterr().out
        assert shown.startswith(f"usage: aimle benchmark {study} ")
        assert len(shown.splitlines()) < 60

    @pytest.mark.parametrize(
        ("arguments", "tasks"),
        [
            (["training"], TASKS),
            (["training", "--suite", "small"], advice.SMALL_TASKS),
            (["advice"], advice.ALL_TASKS),
        ],
    )
    def test_list(self, arguments: list[str], tasks: dict, capsys: pytest.CaptureFixture) -> None:
        assert command.main([*arguments, "--list"]) == 0
        lines = capsys.readouterr().out.splitlines()
        shown = [tuple(re.split(r"  +", line, maxsplit=1)) for line in lines]
        assert shown == [(task.name, task.title) for task in tasks.values()]
        assert max(map(len, lines)) <= 80

    def test_seeds(self) -> None:
        assert command.parse_seeds("0-2,5,1") == [0, 1, 2, 5]

    def test_finished_runs_are_skipped(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        trained: list[tuple[str, int]] = []

        def train(estimator: str, settings: dict, seed: int, quick: bool) -> tuple:
            if len(trained) == 3:
                raise KeyboardInterrupt
            trained.append((estimator, seed))
            return 0.5, 2, 128

        fake = task.PythonTask(
            **{**vars(TASKS["digits"]), "train": train, "packages": ()}  # type: ignore[arg-type]
        )
        monkeypatch.setitem(command.TASKS, "digits", fake)
        arguments = ("--quick", "--tasks", "digits", "--methods", "default,noise")
        with pytest.raises(KeyboardInterrupt):
            run(*arguments, out=tmp_path)
        assert len(Results(tmp_path / "training.csv").read()) == 3
        trained.clear()
        assert run(*arguments, out=tmp_path) == 0
        assert trained == [("aimle_noise", 1)]
        assert run(*arguments, out=tmp_path) == 0
        assert len(trained) == 1
        assert run(*arguments, "--seeds", "1", "--redo", out=tmp_path) == 0
        assert trained[1:] == [("aimle", 1), ("aimle_noise", 1)]
        assert len(Results(tmp_path / "training.csv").read()) == 4


class TestPythonTasks:
    def test_digits_end_to_end(self, tmp_path: Path) -> None:
        need("sklearn")
        assert run("--quick", "--tasks", "digits", "--seeds", "0", out=tmp_path) == 0
        rows = {(r.method, r.setting): r for r in Results(tmp_path / "training.csv").read()}
        assert {name for name, _ in rows} == set(TASKS["digits"].methods)
        default = rows["default", ""]
        assert (default.steps, default.solver_calls) == (2, 2 * digits.BATCH * 3)
        assert rows["imle", "lambda=100"].solver_calls == 2 * digits.BATCH * 2
        assert 0 <= default.value <= 1

    def test_settings_that_an_estimator_does_not_take_are_reported(
        self, tmp_path: Path, capsys: pytest.CaptureFixture
    ) -> None:
        need("sklearn")
        arguments = ("--quick", "--tasks", "digits", "--candidate", "x=aimle,step=-1")
        assert run(*arguments, out=tmp_path) == 3
        said = capsys.readouterr().err
        assert "digits: x: [aimle.AdaptiveTarget] expected step" in said
        assert said.endswith("incomplete; run the same command to continue it\n")

    @pytest.mark.parametrize("name", ["shortest-path-l1", "knapsack-regret"])
    def test_pyepo_methods_have_the_same_number_of_calls(self, tmp_path: Path, name: str) -> None:
        for module in TASKS[name].packages:
            need(task._module(module))
        chosen = "default,noise,imle_central,pyepo_aimle,pyepo_aimle_two_sided,pyepo_imle,identity"
        arguments = ("--quick", "--tasks", name, "--seeds", "0", "--methods", chosen)
        assert run(*arguments, out=tmp_path) == 0
        rows = Results(tmp_path / "training.csv").read()
        assert {row.method for row in rows} == set(chosen.split(","))
        for each in rows:
            assert 180 <= each.solver_calls <= 240, each
            assert each.value >= 0


def jobs_of(*pairs: tuple[methods.Method, int]) -> list[task.Job]:
    return [task.Job(*pair) for pair in pairs]


class TestProgramTasks:
    def test_campaigns_hold_every_job_once(self) -> None:
        trained = TASKS["nri-t10"]
        assert isinstance(trained, program_tasks.ProgramTask)
        found = methods.expand(["default", "paper", "imle", "imle_central", "noise"], ("1", "10"))
        jobs = [task.Job(method, seed) for method in found for seed in (0, 1)][:-1]
        planned = []
        for axes, seeds in trained._campaigns(jobs):
            cells: list[dict[str, str]] = [{}]
            for name, values in axes.items():
                cells = [{**cell, name: value} for cell in cells for value in values]
            planned += [(tuple(sorted(cell.items())), seed) for cell in cells for seed in seeds]
        wanted = [(tuple(sorted(trained._options(job).items())), job.seed) for job in jobs]
        assert sorted(planned) == sorted(wanted)

    def test_discrete_vae_end_to_end_and_stopped_in_between(self, tmp_path: Path) -> None:
        need_program()
        arguments = ("--quick", "--tasks", "dvae-k10-s1", "--seeds", "0", "--threads", 1)
        assert run(*arguments, "--methods", "default,imle", out=tmp_path) == 0
        results = Results(tmp_path / "training.csv")
        first = results.read()
        assert {(row.method, row.setting) for row in first} == {
            ("default", ""),
            ("imle", "lambda=3"),
            ("imle", "lambda=10"),
        }
        assert {(row.data, row.length) for row in first} == {
            ("drawn digits", "1 epoch of 40 images")
        }
        default = next(row for row in first if row.method == "default")
        assert (default.steps, default.solver_calls) == (2, 40 * 4 * 3)
        assert default.value > 0
        assert not (tmp_path / "dvae-k10-s1").exists()  # finished runs leave their row only
        assert run(*arguments, out=tmp_path) == 0
        rows = results.read()
        assert rows[: len(first)] == first
        assert {row.method for row in rows} == set(TASKS["dvae-k10-s1"].methods)
        text = (tmp_path / "training.md").read_text()
        assert "`dvae-k10-s1`: drawn digits, 1 epoch of 40 images" in text

    def test_a_stopped_campaign_keeps_its_finished_runs(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        need_program()
        arguments = ("--quick", "--tasks", "dvae-k1-s1", "--seeds", "0", "--methods")
        popen = subprocess.Popen
        started: list[str] = []

        def stop_at_the_second(*args: Any, **kwargs: Any) -> subprocess.Popen:
            if "train" in args[0]:
                started.append("train")
                if len(started) == 2:
                    raise KeyboardInterrupt
            return popen(*args, **kwargs)

        monkeypatch.setattr(program_tasks.subprocess, "Popen", stop_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            run(*arguments, "default,paper", out=tmp_path)
        results = Results(tmp_path / "training.csv")
        assert [row.method for row in results.read()] == ["default"]
        assert run(*arguments, "default,paper", out=tmp_path) == 0
        assert [row.method for row in results.read()] == ["default", "paper"]

    def test_a_task_of_a_running_process_is_refused(
        self, tmp_path: Path, capsys: pytest.CaptureFixture
    ) -> None:
        need_program()
        kept = tmp_path / "dvae-k1-s1" / "kept"
        kept.parent.mkdir()
        kept.touch()
        with (tmp_path / "dvae-k1-s1.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert run("--quick", "--tasks", "dvae-k1-s1", "--seeds", "0", out=tmp_path) == 3
        assert "dvae-k1-s1 is in use by another process" in capsys.readouterr().err
        assert kept.exists()

    def test_a_run_that_diverges_has_a_row(self, tmp_path: Path) -> None:
        need_program()
        trained = TASKS["dvae-k1-s1"]
        assert isinstance(trained, program_tasks.ProgramTask)
        kept: list[Row] = []
        context = task.Context(
            quick=True,
            device="cpu",
            device_name="cpu",
            data=None,
            work=tmp_path,
            threads=1,
            commit="abc",
            record=kept.append,
            say=lambda _: None,
        )
        # Adam with an infinite step: the first run fails, the second is finished nevertheless.
        bad = methods.Method("bad", "ste", (("lr", "1e38"),))
        good = methods.SINGLE["default"]
        trained.run(jobs_of((bad, 0), (good, 0)), context)
        assert {row.method: math.isfinite(row.value) for row in kept} == {
            "bad": False,
            "default": True,
        }

    def test_a_campaign_that_cannot_start_is_reported(
        self, tmp_path: Path, capsys: pytest.CaptureFixture
    ) -> None:
        need_program()
        arguments = ("--quick", "--tasks", "dvae-k1-s1", "--candidate", "x=aimle,step=fast")
        assert run(*arguments, out=tmp_path) == 3
        assert "dvae-k1-s1: aimle:" in capsys.readouterr().err

    def test_messages_need_not_be_text(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
    ) -> None:
        program = tmp_path / "program"
        program.write_text("#!/bin/sh\nprintf 'aimle: no folder caf\\351' >&2; exit 1\n")
        program.chmod(0o755)
        monkeypatch.setattr(program_tasks.launch, "find", lambda: program)
        arguments = ("--quick", "--tasks", "dvae-k1-s1", "--seeds", "0", "--methods", "default")
        assert run(*arguments, out=tmp_path) == 3
        assert "dvae-k1-s1: aimle: no folder caf" in capsys.readouterr().err

    def test_files_that_are_given(self, tmp_path: Path) -> None:
        (tmp_path / "mnist").mkdir()
        (tmp_path / "mnist" / "train-images-idx3-ubyte.gz").touch()
        context = task.Context(
            quick=False,
            device="cpu",
            device_name="cpu",
            data=tmp_path,
            work=tmp_path,
            threads=1,
            commit="abc",
            record=lambda _: None,
            say=lambda _: None,
        )
        found = TASKS["dvae-k1-s10"]
        assert isinstance(found, program_tasks.ProgramTask)
        assert found.data_name(context) == "MNIST"
        arguments = found._arguments(context)
        assert arguments[arguments.index("--data") + 1] == str(tmp_path / "mnist")
        assert "--data" not in TASKS["warcraft-12"]._arguments(context)  # type: ignore[attr-defined]


def test_the_program_passes_its_arguments_on(tmp_path: Path) -> None:
    need_program()
    assert "--candidate" in aimle("benchmark", "training", "--help", figures=True).stdout
    wrong = aimle("benchmark", "training", "--tasks", "digit", figures=True)
    assert wrong.returncode == 2
    assert "expected names of dvae-k1-s1" in wrong.stderr
    assert "continue" not in wrong.stderr
    out = ("--work", tmp_path, "--threads", 1)
    chosen = ("--tasks", "dvae-k1-s1", "--methods", "default", "--seeds", "0")
    done = aimle("benchmark", "training", "--quick", *chosen, *out, figures=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(tmp_path / "training.md")
    assert [row.method for row in Results(tmp_path / "training.csv").read()] == ["default"]
