"""`aimle benchmark advice`: recommendations held against results, and the table of the guide."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from extras import need

from aimle.program.benchmark import __main__ as command
from aimle.program.benchmark import advice, choices, held_out_tasks
from aimle.program.benchmark.results import Results, Row
from aimle.program.benchmark.table import sections
from aimle.program.benchmark.tasks import TASKS

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "docs/results"


def row(method: str, value: float, seed: int, setting: str = "", task: str = "digits") -> Row:
    return Row(
        task=task,
        data="some data",
        length="2 steps",
        method=method,
        setting=setting,
        seed=seed,
        metric=advice.ALL_TASKS[task].metric,
        value=value,
        steps=2,
        solver_calls=0,
        seconds=0.5,
        commit="abc",
        device="cpu",
    )


def rows_of(method: str, *values: float, setting: str = "", task: str = "digits") -> list[Row]:
    return [row(method, value, seed, setting, task) for seed, value in enumerate(values)]


class TestRanking:
    def test_a_rank_counts_methods_that_are_better_by_a_standard_error(self) -> None:
        rows = [
            *rows_of("default", 0.80, 0.82),
            *rows_of("noise", 0.90, 0.90),
            *rows_of("thresholds", 0.89, 0.93),  # 0.91 ± 0.02: equal to noise
            *rows_of("imle", 0.10, 0.10, setting="lambda=10"),
            *rows_of("imle", 0.95, 0.95, setting="lambda=100"),
            *rows_of("pyepo_aimle", 0.99, 0.99),  # not a method of diagnose
        ]
        ranking = advice.Ranking(sections(rows, TASKS)[0])
        assert ranking.order == ["imle", "thresholds", "noise", "default"]
        assert [ranking.rank(name) for name in ranking.order] == [1, 2, 2, 4]

    def test_lower_may_be_better(self) -> None:
        task = "bits-24-s1"
        rows = [*rows_of("default", 3.0, 3.0, task=task), *rows_of("noise", 2.0, 2.0, task=task)]
        ranking = advice.Ranking(sections(rows, advice.ALL_TASKS)[0])
        assert ranking.rank("default") == 2
        assert ranking.rank("noise") == 1


class TestPage:
    def test_the_most_frequent_recommendation_counts(self) -> None:
        rows = [
            *rows_of("default", 0.80, 0.80),
            *rows_of("noise", 0.90, 0.90),
            *rows_of("sst", 0.85, 0.85),
        ]
        given = [
            advice.Advice("digits", seed, name, "sst", "abc")
            for seed, name in enumerate(("noise", "default", "noise"))
        ]
        text = advice.page(rows, given)
        assert "| used | 1 of 1 | 1 of 1 |" in text
        assert "| 8 of 64 pixels | used | noise 0.9000 ± 0.0000 | 1 |" in text
        text = advice.page(rows, [advice.Advice("digits", 0, "default", "noise", "abc")])
        assert "| used | 0 of 1 | 1 of 1 |" in text
        assert "| default 0.8000 ± 0.0000 | **3** |" in text

    def test_rows_come_back_as_they_were(self, tmp_path: Path) -> None:
        file = advice.AdviceFile(tmp_path / "new" / "advice.csv")
        assert file.read() == []
        for seed, name in ((0, "default"), (1, "noise"), (0, "sst")):
            file.add(advice.Advice("digits", seed, name, "sst", "abc"))
        assert [(each.seed, each.recommended) for each in file.read()] == [
            (1, "noise"),
            (0, "sst"),
        ]

    def test_the_published_page_is_that_of_the_rows(self) -> None:
        rows = [each for name in command.SUITES for each in Results(RESULTS / f"{name}.csv").read()]
        given = advice.AdviceFile(RESULTS / "advice.csv").read()
        assert (RESULTS / "advice.md").read_text() == advice.page(rows, given)

    def test_held_out_tasks_are_not_those_of_the_rule(self) -> None:
        held_out = {*held_out_tasks.SECOND, *held_out_tasks.THIRD}
        assert set(advice.ALL_TASKS) - set(advice.USED) == held_out
        assert len(held_out) >= len(advice.USED)

    def test_a_task_without_a_true_gradient_has_no_highest_cosine(self) -> None:
        rows = [*rows_of("default", 0.80, 0.80), *rows_of("noise", 0.90, 0.90)]
        text = advice.page(rows, [advice.Advice("digits", 0, "noise", "", "abc")])
        assert "| used | 1 of 1 | 0 of 1 |" in text
        assert "| noise 0.9000 ± 0.0000 | 1 | – |" in text


class TestDiagnoses:
    @pytest.mark.parametrize("name", ["tree-5-wrong-s1", "path-5-regret-s1", "warcraft-12"])
    def test_a_task_is_diagnosed_with_the_methods_that_have_rows(
        self, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(advice, "_TRUTH_SAMPLES", 200)
        monkeypatch.setattr(advice, "_WARMUP", 2)
        suite = "training" if name in TASKS else "small"
        for each in (*rows_of("noise", 1.0, task=name), *rows_of("default", 2.0, task=name)):
            Results(tmp_path / f"{suite}.csv").add(each)
        arguments = ["advice", "--tasks", name, "--seeds", "0", "--output", str(tmp_path)]
        assert command.main(arguments) == 0
        (found,) = advice.AdviceFile(tmp_path / "advice.csv").read()
        assert found.task == name
        assert found.recommended == "default"  # imle has no rows here
        assert found.highest_cosine in ("default", "noise")
        assert command.main([*arguments, "--table"]) == 0

    def test_small_tasks_train(self, tmp_path: Path) -> None:
        names = "tree-5-regret-s1,packing-8-wrong-s1,heads-6-overlap-s4,order-5-s1"
        arguments = ["training", "--suite", "small", "--quick", "--tasks", names, "--seeds", "0"]
        assert command.main([*arguments, "--work", str(tmp_path)]) == 0
        rows = Results(tmp_path / "small.csv").read()
        assert {each.task for each in rows} == set(names.split(","))
        for name in names.split(","):
            methods = {each.method for each in rows if each.task == name}
            assert methods == set(advice.SMALL_TASKS[name].methods)

    def test_a_task_of_another_suite_is_refused(self, capsys: pytest.CaptureFixture) -> None:
        with pytest.raises(SystemExit):
            command.main(["training", "--tasks", "tree-5-regret-s1"])
        assert "the suite training has no task 'tree-5-regret-s1'" in capsys.readouterr().err

    @pytest.mark.parametrize(
        "name",
        [
            "nri-t10",
            "l2x-films",
            "tags-5-wrong-s1",
            "matching-4-wrong-s1",
            "graph-4-regret-s1",
            "dag-5-totals-s1",
            "order-7-s4",
        ],
    )
    def test_probes_have_a_loss_for_every_sample(self, name: str) -> None:
        task = advice.ALL_TASKS[name]
        probe = task.probe(0)
        z = probe.layer(probe.theta.clone().requires_grad_())
        losses = probe.loss(z)
        assert losses.shape == z.shape[:2] == (len(probe.theta), task.samples)
        assert losses.requires_grad
        assert probe.theta.isfinite().all()
        assert torch.equal(task.probe(0).theta, probe.theta)

    @pytest.mark.parametrize(
        "name",
        [
            "digits",
            "dvae-k10-s10",
            "experts-4-s10",
            "code-heads-5-s4",
            "route-8-s4",
            "features-6-s10",
        ],
    )
    def test_probes_of_digits(self, name: str) -> None:
        need("sklearn")
        task = advice.ALL_TASKS[name]
        probe = task.probe(0)
        assert probe.loss(probe.layer(probe.theta)).shape == (len(probe.theta), task.samples)


class TestChoices:
    def test_the_numbers_of_the_guide_are_those_of_the_rows(self) -> None:
        _, table, _ = choices.split((ROOT / choices.PAGE).read_text())
        assert table.strip() == choices.table(Results(ROOT / choices.ROWS).read()).strip()

    def test_the_guide_says_how_often_the_advice_is_right(self) -> None:
        lines = (RESULTS / "advice.md").read_text().splitlines()
        cells = {}
        for line in lines[: lines.index("## Tasks")]:
            if line.startswith("| "):
                name, count, _ = line.strip("| ").split(" | ")
                cells[name] = count
        everything = cells["all"].split(" (")[0]
        said = f"on {everything} tasks, and on {cells['held out']} that were held out"
        assert said in " ".join((ROOT / choices.PAGE).read_text().split())

    def test_a_gain_is_relative_to_the_other(self) -> None:
        rows = [*rows_of("noise", 0.9, 0.9), *rows_of("default", 0.72, 0.78)]
        cells = choices.table(rows).splitlines()[-1].strip("| ").split(" | ")
        assert cells[:4] == ["k of n", "1", "`aimle_noise`", "`digits`"]
        assert cells[4:] == ["0.9000 ± 0.0000 ↑", "+20.0 ± 4.0", "–", "–"]

    def test_a_page_without_the_marks_is_refused(self) -> None:
        with pytest.raises(ValueError, match="choices: generated"):
            choices.split("# A page\n")
