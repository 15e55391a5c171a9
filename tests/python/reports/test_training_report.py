"""`aimle report` and `aimle list` on runs written by hand."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from aimle_program import without_figures
from html_page import check
from written_runs import write_run

from aimle.program.report.runs import find_runs, group_runs, spell
from aimle.program.standard_error import standard_error


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    write_run(tmp_path / "aimle" / "seed-0", "aimle", 0, [9.0, 5.0, 6.0])
    write_run(tmp_path / "aimle" / "seed-1", "aimle", 1, [9.0, 7.0, 8.0])
    write_run(tmp_path / "ste", "ste", 0, [20.0, 19.0])
    return tmp_path


def test_seeds_make_one_curve(runs: Path) -> None:
    groups = group_runs(find_runs(runs)[0])
    assert [len(group.runs) for group in groups] == [2, 1]
    epochs, mean, error = groups[0].curve("val_loss")
    assert epochs == [1, 2, 3]
    assert mean == [9.0, 6.0, 7.0]
    assert error == pytest.approx([0.0, 1.0, 1.0])  # 5 and 7: a deviation of √2, over √2
    assert all(math.isnan(error) for error in groups[1].curve("val_loss")[2])
    assert groups[0].runs[0].best()["epoch"] == 2


def test_program_writes_one_page(program: Path, runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    done = subprocess.run(
        [program, "report", runs / "aimle", runs / "ste", "--out", out],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    page = out.read_text()
    assert "<td>7 ± 1</td>" in page  # test_loss of aimle at its best epochs, 6 and 8
    assert "run(s)" not in page
    assert "seed(s)" not in page
    assert "aimle train dvae --method ste" in page
    assert not re.search(r'(src|href)="(?!data:|#)', page)  # nothing is loaded from elsewhere


def test_the_standard_error_of_a_mean() -> None:
    assert standard_error([1.0, 2.0, 6.0]) == pytest.approx(7**0.5 / 3**0.5)
    assert math.isnan(standard_error([1.0]))
    assert math.isnan(standard_error([]))


def test_numbers_of_several_seeds_have_their_error() -> None:
    assert spell([], 4, seeds=2) == "–"
    assert spell([1.0], 4, seeds=1) == "1"
    assert spell([1.0, 2.0, 6.0], 4, seeds=3) == "3 ± 1.5"
    assert spell([1.0, 2.0, 6.0], 4, seeds=5) == "3 ± 1.5 (3 of 5 seeds)"


def test_captions_say_what_an_error_is(runs: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from aimle.program.report import collection

    out = tmp_path / "page.html"
    collection.draw([runs], out)
    page = out.read_text()
    for caption in (
        "Losses; bands are one standard error over 2 seeds.",
        "The step size of the estimator; bands are one standard error over 2 seeds.",
        "At the epoch selected by the metric: mean ± standard error over 2 seeds.",
        "Ours: mean ± standard error over 2 seeds (s.e. = standard deviation / √seeds).",
    ):
        assert f"{caption}</figcaption>" in page
    assert "<th>test_loss, published</th>" in page  # one seed
    assert "<th>test_loss, ours ±\u00a0s.e.</th>" in page

    write_run(runs / "ste-1", "ste", 1, [20.0, 19.0])
    write_run(runs / "ste-2", "ste", 2, [20.0, 18.0])
    collection.draw([runs], out)
    assert "mean ± standard error over 2 to 3 seeds." in out.read_text()

    collection.draw([runs / "aimle" / "seed-0"], out)
    page = out.read_text()
    assert "At the epoch selected by the metric.</figcaption>" in page
    assert "±" not in page
    assert "standard error" not in page


def test_a_file_that_is_no_page_is_kept(program: Path, runs: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    command = [program, "report", runs / "aimle", "--out", notes]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        f"aimle: --out: {notes} exists and is not a page: choose another name, or remove it\n"
    )
    assert notes.read_text() == "mine"
    notes.write_text("")
    for _ in range(2):  # a page is replaced
        subprocess.run(command, capture_output=True, timeout=120, check=True)
        assert notes.read_text().startswith("<!DOCTYPE html>")


def test_published_numbers_stand_with_what_differs(runs: Path, tmp_path: Path) -> None:
    """In the table itself: what all runs differ in across it, the rest in their rows."""
    pytest.importorskip("matplotlib")
    from aimle.program.report import collection

    out = tmp_path / "page.html"
    collection.draw([runs], out)
    table = next(t for t in out.read_text().split("<table>") if "published settings" in t)
    table = table[: table.index("</table>")]
    assert (
        "All of our runs differ: data: 1500 drawn digits instead of MNIST (60 000 images); "
        "batch=50 instead of 100.</div>" in table
    )
    aimle, ste = [row for row in table.split("<tr>") if "nb_samples=10, epoch" in row]
    assert "epoch 3</td><td>70.799</td>" in aimle  # the last epoch of the log that both have
    assert "2 seeds instead of 1" in aimle
    assert "epoch 2</td><td>72.885</td>" in ste
    assert "method=ste instead of aimle" in ste


def test_settings_are_a_table(runs: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from aimle.program.report import collection

    for folder, versions in (("ste", "0.1"), ("aimle/seed-0", "0.2")):
        file = runs / folder / "config.json"
        config = json.loads(file.read_text()) | {"versions": {"aimle": versions}}
        file.write_text(json.dumps(config | {"commit": "0123456789abcdef"}))
    out = tmp_path / "page.html"
    collection.draw([runs], out)
    page = out.read_text()
    assert "<details><summary>Settings of all these runs</summary>" in page
    assert '<td class="text">batch</td><td>50</td>' in page
    assert '<td class="text">data</td>' not in page  # empty
    assert "<footer>aimle 0.2, commit 0123456789ab; aimle 0.1, commit 0123456789ab</footer>" in page
    assert "{&quot;" not in page


def test_labels_name_what_tells_runs_apart(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "aimle", 0, [1.0])
    write_run(tmp_path / "b", "ste", 0, [1.0])
    write_run(tmp_path / "c", "ste", 0, [1.0, 2.0])
    labels = [group.label for group in group_runs(find_runs(tmp_path)[0])]
    assert labels == ["aimle", "ste, epochs=1", "ste, epochs=2"]


def test_program_lists_runs(program: Path, runs: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [program, "list", runs], capture_output=True, text=True, timeout=60, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 4
    assert " ".join(lines[1].split()[1:]) == "dvae aimle 0 3/3 val_loss 5 6 0.5 1 min 30 s"
    empty = tmp_path / "empty"
    empty.mkdir()
    for command in (["list", empty], ["report", empty]):
        done = subprocess.run([program, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "there are no runs" in done.stderr


def damage(folder: Path, config: str, metrics: str = "") -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(config)
    (folder / "metrics.jsonl").write_text(metrics)
    return folder


@pytest.fixture
def damaged(runs: Path) -> tuple[Path, list[Path]]:
    """Runs, beside those that cannot be read and what is no run."""
    damage(runs / "other", '{"model_type": "bert"}')
    damage(runs / "list", "[1, 2]")
    whole = (runs / "ste" / "config.json").read_text()
    return runs, [
        damage(runs / "bad_metrics", whole, '{"epoch": 1'),
        damage(runs / "cut", whole[:40]),
        damage(runs / "no_settings", '{"experiment": "dvae"}'),
        damage(runs / "numbers", whole, "5\n"),
        damage(runs / "selects_a_number", json.dumps(json.loads(whole) | {"select": 3})),
    ]


def test_list_names_what_it_could_not_read(program: Path, damaged, tmp_path: Path) -> None:
    runs, broken = damaged
    done = subprocess.run([program, "list", runs], capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 4
    named = ", ".join(map(str, broken))
    expected = "5 folders have a config.json or metrics.jsonl that could not be read: "
    assert done.stderr == f"{expected}{named}\n"
    done = subprocess.run([program, "list", broken[1]], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        f"aimle: there are no runs in {broken[1]}; "
        f"1 folder has a config.json or metrics.jsonl that could not be read: {broken[1]}\n"
    )
    assert done.stdout == ""


WRONG = [
    ("bad_metrics/metrics.jsonl", "it is cut off or damaged: line 1 is not valid JSON"),
    ("cut/config.json", "it is cut off or damaged: line 1 is not valid JSON"),
    ("no_epoch/metrics.jsonl", "it is damaged: line 1 names no epoch"),
    ("no_settings/config.json", "it is damaged: there are no settings"),
    ("not_begun/metrics.jsonl", "no epoch is complete yet"),
    ("numbers/metrics.jsonl", "it is damaged: line 1 is not a JSON object"),
    ("selects_a_number/config.json", "it is damaged: select is not text"),
]


def test_a_page_names_what_it_left_out(program: Path, damaged, tmp_path: Path) -> None:
    """One line for each on standard error and on the page; the other runs are there."""
    pytest.importorskip("matplotlib")
    runs, _ = damaged
    whole = (runs / "ste" / "config.json").read_text()
    damage(runs / "no_epoch", whole, '{"val_loss": 3}\n')
    damage(runs / "not_begun", whole)
    out = tmp_path / "page.html"
    done = report(program, runs, "--out", out)
    assert done.returncode == 0, done.stderr
    *lines, last = done.stderr.splitlines()
    assert last == f"wrote {out}"
    assert len(lines) == len(WRONG)
    page = out.read_text()
    for line, (file, wrong) in zip(lines, WRONG, strict=True):
        assert line.startswith(f"left out: {runs / file}: {wrong}; ")
        assert f"<li><code>{runs / file}</code>: {wrong}; " in page
    assert "<p>3 runs</p>" in page
    assert "aimle train dvae --method ste" in page


def test_a_damaged_run_among_the_folders_given(program: Path, damaged, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    runs, broken = damaged
    out = tmp_path / "page.html"
    done = report(program, runs / "ste", broken[1], "--out", out)
    assert done.returncode == 0, done.stderr
    assert f"left out: {broken[1]}/config.json: " in done.stderr
    out.unlink()
    done = report(program, broken[1], "--out", out)  # nothing else to draw
    assert done.returncode == 1
    remedy = "restore it from a copy or compute it again"
    assert done.stderr.splitlines() == [
        f"left out: {broken[1]}/config.json: it is cut off or damaged: line 1 is not valid JSON; "
        + remedy,
        "aimle: no report was written",
    ]
    assert not out.exists()


def test_a_damaged_study_or_picture_leaves_the_rest(
    program: Path, runs: Path, studies: Path, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    torn = tmp_path / "torn"
    shutil.copytree(studies / "samples", torn)
    with (torn / "results.jsonl").open("a") as file:
        file.write('{"estimator": "st')
    lines = len((torn / "results.jsonl").read_text().splitlines())
    pictures = runs / "ste" / "pictures"
    pictures.mkdir()
    (pictures / "samples.png").write_bytes(b"\x89PNG and no more")
    (runs / "aimle" / "seed-0" / "exhibits.json").write_text("{")
    config = json.loads((runs / "aimle" / "seed-0" / "config.json").read_text())
    for run in ("seed-0", "seed-1"):
        file = runs / "aimle" / run / "config.json"
        file.write_text(json.dumps(config | {"experiment": "nri"}))
    out = tmp_path / "page.html"
    done = report(program, runs, studies / "diagnose", torn, "--out", out)
    assert done.returncode == 0, done.stderr
    for place in (pictures / "samples.png", runs / "aimle/seed-0/exhibits.json"):
        assert f"left out: {place}: it is cut off or damaged: " in done.stderr
    wrong = f"it is cut off or damaged: line {lines} is not valid JSON"
    assert f"left out: {torn}/results.jsonl: {wrong}; " in done.stderr
    page = out.read_text()
    assert f"<code>{torn}/results.jsonl</code>: {wrong}" in page
    assert "3 runs, 1 study" in page
    assert f"Which estimator? <code>{studies}/diagnose</code>" in page
    assert "How close are the gradients?" not in page


@pytest.mark.parametrize(
    ("losses", "shown"),
    [([None, 4.0, 3.5, None], "val_loss 3.5 4.5"), ([None, None], "val_loss - 9")],
)
def test_epochs_without_the_metric_are_passed_over(
    program: Path, tmp_path: Path, losses: list[float | None], shown: str
) -> None:
    write_run(tmp_path / "run", "aimle", 0, [x or 8.0 for x in losses])
    file = tmp_path / "run" / "metrics.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    changed = [line | {"val_loss": x} for line, x in zip(lines, losses, strict=True)]
    file.write_text("".join(json.dumps(line) + "\n" for line in changed))
    done = subprocess.run([program, "list", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert shown in " ".join(done.stdout.split())


def report(program: Path, *arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [program, "report", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=os.environ | {"AIMLE_PYTHON": sys.executable},
    )


def test_a_page_goes_into_a_new_folder_and_not_over_one(program: Path, runs: Path, tmp_path: Path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "new" / "page.html"
    done = report(program, runs / "ste", "--out", out)
    assert done.returncode == 0, done.stderr
    assert out.is_file()
    done = report(program, runs / "ste", "--out", tmp_path)
    assert done.returncode == 1
    expected = f"aimle: --out: expected the name of a page, such as {tmp_path}/report.html, but"
    assert done.stderr.startswith(expected)


@pytest.fixture(scope="module")
def studies(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a gradient study, a descent and a diagnosis."""
    folder = tmp_path_factory.mktemp("studies")
    common = ["--quiet", "--n", "4", "--samples", "2", "--estimators", "ste,aimle"]
    for name, command in {
        "optimise": [
            "synth",
            "optimise",
            "--k",
            "2",
            "--seeds",
            "2",
            "--steps",
            "3",
            "--learning-rates",
            "1",
        ],
        "samples": ["synth", "samples", "--seeds", "2", "--warmup", "0"],
        "diagnose": ["diagnose", "--repeats", "2"],
    }.items():
        subprocess.run(
            [program, *command, *common, "--out", folder / name],
            check=True,
            capture_output=True,
            env=without_figures(command[0]),
        )
    return folder


def test_runs_and_studies_share_a_page(program: Path, runs: Path, studies: Path, tmp_path: Path):
    pytest.importorskip("matplotlib")
    before = sorted(studies.rglob("*"))
    (runs / "foreign").mkdir()
    (runs / "foreign" / "study.json").write_text("{}")
    out = tmp_path / "page.html"
    done = report(program, runs, runs / "ste", studies, "--out", out)
    assert done.returncode == 0, done.stderr
    assert f"left out: {runs}/foreign: it is damaged: there is no 'study'" in done.stderr
    page = out.read_text()
    check(page)
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    order = [
        "dvae",
        f"Do better gradients train better? <code>{studies}/optimise</code>",
        f"How close are the gradients? <code>{studies}/samples</code>",
        f"Which estimator? <code>{studies}/diagnose</code>",
    ]
    assert [heading for heading in headings if heading in order] == order
    assert "Training runs: dvae; gradient studies" in page
    assert "3 runs, 3 studies" in page  # ste was given twice
    assert "<td>7 ± 1</td>" in page
    assert sorted(studies.rglob("*")) == before

    done = report(program, studies, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "<h1>Gradient studies</h1>" in out.read_text()
