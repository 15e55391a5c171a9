"""`aimle paper`: runs its commands, resumes, and shows the results next to the paper's."""

from __future__ import annotations

import itertools
import json
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from aimle_program import PROGRAM, aimle, fails, need_program

from aimle.program.report import paper, published, runs

TINY = [
    *("paper", "--quick", "--entries", "dvae-k10", "--threads", "1"),
    *("--set", "dvae.examples=60", "--set", "dvae.validation=20", "--set", "dvae.test_examples=20"),
    *("--set", "dvae.nb_samples=2", "--set", "dvae.batch=20", "--set", "dvae.rows=4"),
]


@pytest.fixture(autouse=True)
def program_is_built() -> None:
    need_program()


def state(out: Path) -> dict[str, dict]:
    entries = json.loads((out / "paper.json").read_text())["entries"]
    return {command["folder"]: command for entry in entries for command in entry["commands"]}


def test_end_to_end_and_resume(tmp_path: Path) -> None:
    out = tmp_path / "paper"
    stopped = aimle(*TINY, "--out", out)  # without Python: all is computed, nothing drawn
    assert stopped.returncode == 1
    assert "no report was written" in stopped.stderr
    commands = state(out)
    names = ("aimle", "aimle_forward", "imle", "others")
    assert list(commands) == [f"dvae-k10/{name}" for name in names]
    assert all(command["complete"] for command in commands.values())
    assert "--examples 60" in commands["dvae-k10/aimle"]["command"]
    ran = json.loads((out / "dvae-k10/imle/method=imle/config.json").read_text())
    assert ran["settings"]["examples"] == 60
    assert "aimle train dvae" in ran["command"]

    done = aimle(*TINY, "--out", out, "--resume", figures=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(out / "report.html")
    assert "aimle train" not in done.stderr  # all was complete
    page = (out / "report.html").read_text()
    for shown in ("79.856", "81.119 ± 2.345", "-1877.90 ± 277.53", "0.951", "not run"):
        assert shown in page, shown
    assert "Changed by the user: <code>dvae.examples=60</code>" in page
    assert "Differs: Drawn digits instead of MNIST" in page
    assert "<summary>5 published rows without a run of the same settings</summary>" in page
    folded = page[page.index("<summary>Not run: 13 tables and figures of the paper</summary>") :]
    assert "1. Gradients by number of samples" in folded
    assert "81.119 ± 2.345" in folded
    assert not re.search(r'(src|href)="(?!data:|#)', page)

    other = aimle(*TINY, "--set", "dvae.epochs=1", "--out", out, "--resume")
    assert other.returncode == 1
    assert "--resume: dvae-k10/aimle was made by" in other.stderr


def test_the_paper_in_portions(tmp_path: Path) -> None:
    """Entries of earlier calls keep their commands, settings and sections."""
    out, digits = tmp_path / "paper", tmp_path / "digits"
    made = aimle("data", "make", "--out", digits, "--examples", 60, "--test_examples", 20)
    assert made.returncode == 0, made.stderr
    common = ["paper", "--threads", "1", "--out", out]
    aimle(*TINY, "--set", f"dvae.data={digits}", "--out", out)
    # As if this call had been stopped: its last command is left for later.
    first = json.loads((out / "paper.json").read_text())
    unfinished = next(e for e in first["entries"] if e["name"] == "dvae-k10")["commands"][-1]
    unfinished["complete"] = False
    (out / "paper.json").write_text(json.dumps(first))

    small = [f"--set=synth.{text}" for text in ("seeds=2", "warmup=0", "samples=10", "n=10")]
    done = aimle(*common, *small, "--resume", "--entries", "synth-samples", figures=True)
    assert done.returncode == 0, done.stderr
    assert "[1/1] synth-samples/samples" in done.stderr
    assert "dvae" not in done.stderr
    entries = {e["name"]: e for e in json.loads((out / "paper.json").read_text())["entries"]}
    before = {e["name"]: e for e in first["entries"]}
    assert entries["dvae-k10"] == before["dvae-k10"]
    assert entries["synth-samples"]["form"] == "full"
    assert not entries["dvae-k1"]["commands"]

    page = (out / "report.html").read_text()
    for shown in (
        f"Differs: Data: the files in <code>{digits}</code>.",
        "Changed by the user: <code>dvae.examples=60</code>",
        "Changed by the user: <code>synth.seeds=2</code>",
        '<td class="text">3 of 4 commands</td><td class="text">quick</td>',
        '<td class="text">1 of 1 command</td><td class="text">full</td>',
        "Not complete: <code>dvae-k10/others</code>.",
        "Full and quick form",
    ):
        assert shown in page, shown
    ours = runs.find_runs(out / "dvae-k10/aimle")[0][0].best()["test_loss"]
    assert f"{ours:.4g}" in page


CUT = {
    "dvae": "examples=60 validation=20 test_examples=20 epochs=1 batch=20 rows=4",
    "l2x": "examples=60 heldout=40 annotated=10 epochs=1 seeds=0 batch=20",
    "nri": "examples=40 validation=20 test_examples=20 hidden=8 epochs=1 epoch_steps=2 seeds=0-1",
    "warcraft": "examples=14 validation=7 test_examples=7 batch=7 epochs=1",
}


def run_full_form(out: Path, kind: str, *names: str) -> str:
    """The report of these entries, all their methods and settings, on as little data as can be."""
    cut = [f"--set={kind}.{text}" for text in CUT[kind].split()]
    done = aimle("paper", *cut, "--entries", ",".join(names), "--out", out, figures=True)
    assert done.returncode == 0, done.stderr
    entries = {e["name"]: e for e in json.loads((out / "paper.json").read_text())["entries"]}
    for name in names:
        assert entries[name]["form"] == "full"
        assert all(command["complete"] for command in entries[name]["commands"]), name
    return (out / "report.html").read_text()


@pytest.mark.parametrize(
    ("kind", "names"), [("dvae", ("dvae-k10", "dvae-k1")), ("warcraft", ("warcraft-12",))]
)
def test_every_command_of_the_full_form_runs(
    tmp_path: Path, kind: str, names: tuple[str, ...]
) -> None:
    page = run_full_form(tmp_path / "paper", kind, *names)
    assert "1 seed" in page


def test_the_full_form_of_latent_trees(tmp_path: Path) -> None:
    page = run_full_form(tmp_path / "paper", "nri", "nri-t10", "nri-t20")
    rows = [row for row in page.split("<tr>") if "frames=10, method=aimle_forward" in row]
    assert len(rows) == 1
    assert "-1877.90 ± 277.53" in rows[0]
    assert "2 seeds" in rows[0]  # ours next to theirs
    before, _, table = page[: page.index("-1877.90 ± 277.53")].rpartition("<table>")
    caption = before[before.rindex("<figcaption>") :]
    assert "Published: mean ± standard deviation (s.d.) over runs. " in caption
    assert "Ours: mean ± standard error over 2 seeds (s.e. = " in caption
    assert "<th>test_elbo, published ±\u00a0s.d.</th><th>test_elbo, ours ±\u00a0s.e.</th>" in table
    found = runs.find_runs(tmp_path / "paper/nri-t10/methods/method=aimle_forward")[0]
    one, other = (run.best()["test_elbo"] for run in found)
    assert f"{(one + other) / 2:.5g} ± {abs(one - other) / 2:.2g}</td>" in rows[0]
    says = (
        "data: 40 examples of our own from the same generator instead of the authors&#x27; 50 000"
    )
    assert f"All of our runs differ: {says}; epochs=1 instead of 100; " in table


def test_the_full_form_of_explanations(tmp_path: Path) -> None:
    """Every cell has a run at the paper's temperature, and SST itself one of its own."""
    page = run_full_form(tmp_path / "paper", "l2x", "l2x-taste")
    cells = [row for row in page.split("<tr>") if "aspect=taste, k=" in row]
    assert len(cells) == 3 * 8
    assert not [cell for cell in cells if "not run" in cell]
    named = [cell for cell in cells if "SST&quot; in the paper" in cell]
    assert all("method=gumbel_softmax" in cell for cell in named)
    assert len(named) == 3
    assert len([cell for cell in cells if "method=sst" in cell]) == 3


def planned(tmp_path: Path, *options: str) -> list[dict]:
    """The entries as planned; their first command fails for want of data."""
    out, data = tmp_path / "plan", tmp_path / "no such folder"
    missing = [f"--set={kind}.data={data}" for kind in ("dvae", "l2x", "nri", "warcraft")]
    aimle("paper", *options, *missing, "--entries", "dvae,l2x,nri,warcraft", "--out", out)
    return json.loads((out / "paper.json").read_text())["entries"]


@pytest.mark.parametrize("form", [[], ["--quick"]])
def test_every_command_names_a_preset(tmp_path: Path, form: list[str]) -> None:
    """What it computes must not depend on the defaults of the library."""
    commands = [command for entry in planned(tmp_path, *form) for command in entry["commands"]]
    assert commands
    for command in commands:
        assert re.search(r" --preset (paper|reference)( |$)", command["command"]), command


def test_the_papers_temperatures_are_those_of_its_table(tmp_path: Path) -> None:
    ran = set()
    for entry in planned(tmp_path):
        for command in entry["commands"] if entry["experiment"] == "l2x" else []:
            words = command["arguments"]
            given = dict(itertools.pairwise(words))
            setting = next(
                n for n in ("temperature", "theta_noise_temperature") if f"--{n}" in given
            )
            for k in given["--grid"].removeprefix("k=").split(","):
                cell = (given["--aspect"], int(k), given["--method"], setting)
                ran.add((*cell, given[f"--{setting}"]))
    rows = json.loads(Path(paper.__file__).with_name("published.json").read_text())["rows"]
    published = {
        tuple(row["settings"].values())[:3] + tuple(list(row["settings"].items())[3])
        for row in rows
        if row["experiment"] == "l2x"
    }
    assert ran == published


def test_stops_in_order(tmp_path: Path) -> None:
    out = tmp_path / "paper"
    command = [str(PROGRAM), *TINY, "--set", "dvae.epochs=100000", "--out", str(out)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        metrics = out / "dvae-k10/aimle/metrics.jsonl"
        deadline = time.monotonic() + 60
        while not metrics.is_file() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=600)
    assert process.returncode == 130, errors
    last = errors.strip().splitlines()[-1]
    assert "partial results" in last
    assert str(out / "dvae-k10/aimle") in last
    assert "0 of 4 commands are complete" in last
    assert not state(out)["dvae-k10/aimle"]["complete"]


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--entries", "dvae-k100"], 2, "unknown entry 'dvae-k100'; did you mean 'dvae-k10'?"),
        (
            ["--set", "dvae.examples"],
            *(2, "--set: expected EXPERIMENT.OPTION=VALUE but got 'dvae.examples'"),
        ),
        (["--set", "davae.examples=5"], 2, "no experiment 'davae'; did you mean 'dvae'? (synth, "),
        (["--set", "dvae.exmples=5"], 2, "--set: there is no option 'exmples'; did you mean"),
        (["--set", "dvae.examples=-1"], 2, "--set: option examples: expected a whole number"),
        (["--set", "dvae.seeds=3-1"], 2, "--set: expected numbers and ranges such as 0-9"),
        (["--set", "synth.sead=3"], 2, "--set: aimle synth samples "),
        (["--set", "synth.seeds=none"], 2, "expected a whole number in [1, 100000] but got 'none'"),
        (["--device", "tpu"], 2, "unknown device 'tpu'"),
    ],
)
def test_bad_input(tmp_path: Path, options: list[str], code: int, says: str) -> None:
    out = tmp_path / "paper"
    fails("paper", "--quick", "--out", out, *options, code=code, says=says)
    assert not out.exists()


def test_files_replace_the_substitute(tmp_path: Path) -> None:
    missing, out = tmp_path / "no such folder", tmp_path / "paper"
    fails(*TINY, "--set", f"dvae.data={missing}", "--out", out, code=1, says=str(missing))
    entries = json.loads((out / "paper.json").read_text())["entries"]
    shown = {entry["name"]: entry["substitute"] for entry in entries}
    assert shown["dvae-k10"] == f"Data: the files in `{missing}`."
    assert shown["l2x-taste"].startswith("Generated reviews")


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    fails("paper", "--quick", "--out", tmp_path, code=1, says="is not empty")


def test_ours_stand_beside_the_row_they_fit() -> None:
    config = {"experiment": "x", "settings": {"k": 10, "method": "aimle"}, "select": "val_loss"}
    lines = [
        [{"epoch": e, "val_loss": 9 - e, "test_loss": e + seed} for e in (1, 2)] for seed in (0, 2)
    ]
    group = runs.Group("aimle", [runs.Run(Path(), config, metrics) for metrics in lines])
    rows = [
        {"settings": {"k": 10, "method": "aimle"}, "metrics": {"test_loss": [60.2, 1.5]}},
        {"settings": {"k": 10, "method": "aimle"}, "epoch": 1, "metrics": {"test_loss": [70.0]}},
        {"settings": {"k": 10, "method": "aimle"}, "epoch": 9, "metrics": {"test_loss": [50.0]}},
        {"settings": {"k": 5, "method": "aimle"}, "metrics": {"test_loss": [40.0]}},
    ]
    for row in rows:
        row["experiment"] = "x"
    assert [line.cells()[2] for line in published.compare(rows, [group])] == [
        "3 ± 1",
        "2 ± 1",
        "–",
        "–",
    ]
    setup = {
        "data": "theirs (9)",
        "generated": "{examples} of ours",
        "settings": {"epochs": 5, "batch": 7, "schedule": True},
        "seeds": 10,
    }
    config["settings"] |= {"examples": 4, "batch": "7.0", "schedule": False, "data": ""}
    assert published.differences(rows[0], group, setup) == [
        "data: 4 of ours instead of theirs (9)",
        "epochs=2 instead of 5",
        "schedule=false instead of true",
        "2 seeds instead of 10",
    ]
    config["settings"] |= {"schedule": True, "data": "here"}
    assert published.differences(rows[2], group, setup | {"seeds": 2}) == [
        "data: the files in `here`, which may not be theirs (9)",
        "epoch 9 was not reached (last: 2)",
    ]
    assert published.nearest(rows, group) == rows[1]


def test_published_numbers_are_whole() -> None:
    rows = json.loads(Path(paper.__file__).with_name("published.json").read_text())["rows"]
    counts = dict.fromkeys(("l2x", "nri", "dvae", "warcraft"), 0)
    for row in rows:
        counts[row["experiment"]] += 1
    assert counts["l2x"] == 4 * 3 * (7 + 1)  # and SST itself, without numbers
    assert counts["nri"] == 2 * 5
    cells: dict[tuple[str, int], list[tuple[float, str]]] = {}
    for row in rows:
        if row["experiment"] == "l2x" and row["metrics"]["precision"]:
            where = (row["settings"]["aspect"], row["settings"]["k"])
            found = (row["metrics"]["precision"][0], row["settings"]["method"])
            cells.setdefault(where, []).append(found)
    assert {max(found)[1] for found in cells.values()} == {"aimle"}  # the paper's claim
    for kind in counts:
        setup = published.setup_of(kind)
        for name in ("source", "data", "generated", "settings"):
            assert setup[name], (kind, name)
