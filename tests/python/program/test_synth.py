"""`aimle synth`: its files, its numbers against NumPy, threads, interrupts, the page."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from aimle_program import PROGRAM, aimle, fails, names, need_program
from html_page import check

import aimle as library

COLUMNS = "estimator,n,k,samples,lambda,cosine_mean,cosine_se,zeros_mean,alpha_mean,seeds"


@pytest.fixture(autouse=True)
def _program():
    need_program()


def small(*more: object) -> tuple[object, ...]:
    return ("--n", "6,12", "--seeds", 3, "--samples", "2,40", "--warmup", 5, *more)


@pytest.mark.parametrize(("n", "k"), [(10, 1), (17, 5)])
def test_problems_are_those_of_numpy(n: int, k: int):
    for seed in (0, 1, 7, 31, 12345):
        problem = json.loads(aimle("synth", "problem", "--n", n, "--k", k, "--seed", seed).stdout)
        random = np.random.RandomState(seed)
        theta, b = random.randn(n).astype(np.float32), random.randn(n).astype(np.float32)
        assert problem["theta"] == theta.astype(float).tolist(), seed
        assert problem["b"] == np.abs(b).astype(float).tolist(), seed
        scores = torch.from_numpy(theta).double()
        solver = library.TopK(k)

        def loss(z: torch.Tensor, b: np.ndarray = b) -> torch.Tensor:
            return (z - torch.from_numpy(np.abs(b)).double()).square().sum(-1)

        exact = library.exact.exact_gradient(solver, scores, loss)
        np.testing.assert_allclose(problem["true_gradient"], exact, atol=1e-10)


def test_the_papers_step_by_name(tmp_path: Path):
    """Alpha starts at 0 and moves by a thousandth, whatever the default; given settings win."""
    estimators = "aimle,aimle_forward,aimle:initial_alpha=0.5"
    given = small("--preset", "paper", "--estimators", estimators, "--out", tmp_path / "out")
    result = aimle("synth", "samples", *given)
    assert result.returncode == 0, result.stderr
    for row in map(json.loads, (tmp_path / "out/results.jsonl").open()):
        start = 0.5 if "initial_alpha" in row["estimator"] else 0.0
        assert abs(row["alpha"] - start) <= 0.006 + 1e-9, row
    assert json.loads((tmp_path / "out/study.json").read_text())["settings"]["preset"] == "paper"
    fails("synth", "samples", "--preset", "papre", code=2, says="did you mean 'paper'?")


def test_it_writes_results_and_summary(tmp_path: Path):
    result = aimle("synth", "samples", *small("--out", tmp_path / "out"))
    assert result.returncode == 0, result.stderr
    assert "no figures" in result.stderr
    rows = [json.loads(line) for line in (tmp_path / "out/results.jsonl").open()]
    with (tmp_path / "out/summary.csv").open(newline="") as file:
        assert file.readline().strip() == COLUMNS
        file.seek(0)
        cells = list(csv.DictReader(file))
    known = {row["estimator"].split(":")[0] for row in rows}
    assert known == set(library.estimators())
    for cell in cells:
        own = [
            row
            for row in rows
            if (row["estimator"], row["n"], row["samples"])
            == (cell["estimator"], int(cell["n"]), int(cell["samples"]))
            and (not row["fixed_lambda"] or row["lambda"] == float(cell["lambda"]))
        ]
        assert [row["seed"] for row in own] == [0, 1, 2]
        cosines = np.array([row["cosine"] for row in own])
        assert float(cell["cosine_mean"]) == pytest.approx(cosines.mean(), abs=1e-6)
        error = cosines.std(ddof=1) / np.sqrt(3)
        assert float(cell["cosine_se"]) == pytest.approx(error, abs=1e-5)
        assert all(-1.0001 <= row["cosine"] <= 1.0001 for row in own)


@pytest.mark.parametrize("study", ["samples", "lambda", "sparsity", "optimise"])
def test_threads_change_nothing(study: str, tmp_path: Path):
    if study == "optimise":
        options = ("--n", 6, "--k", 2, "--seeds", 3, "--steps", 3, "--samples", 4)
    else:
        options = small("--lambdas", "0.1,1")
    if study == "lambda":
        options = (*options, "--reference-samples", 50)
    for threads in (1, 3):
        out = tmp_path / str(threads)
        result = aimle("synth", study, *options, "--threads", threads, "--out", out)
        assert result.returncode == 0, result.stderr
    for name in ("results.jsonl", "summary.csv"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "3" / name).read_bytes()
        assert (tmp_path / "1" / name).stat().st_size > 100


@pytest.mark.parametrize(("kind", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_keeps_what_was_done(kind: signal.Signals, code: int, tmp_path: Path):
    command = [PROGRAM, "synth", "samples", "--n", 30, "--seeds", 400, "--samples", "10,20000"]
    process = subprocess.Popen(
        [str(part) for part in [*command, "--warmup", 0, "--out", tmp_path / "out"]],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"AIMLE_PYTHON": "/no/python"},
    )
    results = tmp_path / "out/results.jsonl"
    deadline = time.monotonic() + 60
    while not results.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(kind)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == code
    last = errors.strip().splitlines()[-1]
    assert last.startswith("aimle: stopped")
    assert str(results) in last
    rows = [json.loads(line) for line in results.open()]
    assert rows
    assert f"; {len(rows)} of " in last
    assert json.loads((tmp_path / "out/study.json").read_text())["complete"] is False
    assert names(tmp_path / "out") == {"results.jsonl", "summary.csv", "study.json"}


STUDIES_TO_KILL = {
    "optimise": ("--n", 8, "--k", 3, "--seeds", 6, "--steps", 40, "--samples", "2,10"),
    "samples": ("--n", "6,12", "--seeds", 30, "--samples", "2,10000", "--warmup", 30),
}


@pytest.mark.parametrize("study", STUDIES_TO_KILL)
def test_a_killed_study_goes_on(study: str, tmp_path: Path):
    """The same files as without the kill, and what was done is not done again."""
    command = ["synth", study, *STUDIES_TO_KILL[study], "--estimators", "aimle,imle,sfe"]
    command += ["--quiet", "--threads", 2, "--out"]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = subprocess.Popen([str(part) for part in [PROGRAM, *command, killed]])
    deadline = time.monotonic() + 60
    while not (killed / "study.json").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL, "it was over before it could be killed"
    assert json.loads((killed / "study.json").read_text())["complete"] is False
    lines = (killed / "results.jsonl").read_text().splitlines()
    forged = tmp_path / "forged"
    shutil.copytree(killed, forged)
    first = json.loads(lines[0]) | {"cosine": 0.125}
    (forged / "results.jsonl").write_text("\n".join([json.dumps(first), *lines[1:]]) + "\n")
    about = json.loads((forged / "study.json").read_text())
    del about["results_xxh64"]  # as of an earlier version
    (forged / "study.json").write_text(json.dumps(about))

    assert aimle(*command, killed, "--resume").returncode == 0
    assert aimle(*command, whole).returncode == 0
    for name in names(whole) - {"study.json"}:
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name
    assert json.loads((killed / "study.json").read_text())["complete"] is True

    assert aimle(*command, forged, "--resume").returncode == 0
    rows = [json.loads(line) for line in (forged / "results.jsonl").open()]
    assert [row for row in rows if row["cosine"] == 0.125] == [first]
    other = [*command, forged, "--resume", "--signed"]
    fails(*other, code=1, says=f"--resume: signed is false in {forged}, not true")


def test_every_study_has_a_page(tmp_path: Path):
    pytest.importorskip("matplotlib")
    from aimle.program.report.synth import draw

    options = {
        "samples": small("--lambdas", "0.1"),
        "lambda": small("--lambdas", "0.1,1", "--reference-samples", 50),
        "sparsity": small("--lambdas", "0.1,1"),
        "optimise": ("--n", 6, "--k", 2, "--seeds", 2, "--steps", 3, "--samples", "2,4"),
    }
    for study, chosen in options.items():
        out = tmp_path / study
        by_program = study == "samples"
        result = aimle("synth", study, *chosen, "--out", out, figures=by_program)
        assert result.returncode == 0, result.stderr
        if by_program:
            assert result.stdout.splitlines()[-1] == str(out / "report.html"), result.stderr
        else:
            draw(out)  # as the program has it done
        html = (out / "report.html").read_text()
        check(html)
        assert "<svg" in html
        assert "AIMLE" in html
        error = f"standard error over {2 if study == 'optimise' else 3} seeds"
        assert (f" one {error}" in html) == (study != "sparsity")  # bands and bars
        assert (f"± is the {error}" in html) == (study != "samples")  # tables
        for picture in out.rglob("*.svg"):
            assert picture.with_suffix(".png").stat().st_size > 5000


@pytest.mark.parametrize("study", ["samples", "lambda", "optimise"])
def test_one_seed_has_no_standard_error(study: str, tmp_path: Path):
    pytest.importorskip("matplotlib")
    from aimle.program.report.synth import draw

    options = ["--n", 10, "--seeds", 1, "--samples", "1,10", "--estimators", "imle,aimle"]
    options += ["--k", 2, "--steps", 3] if study == "optimise" else ["--warmup", 100]
    assert aimle("synth", study, *options, "--out", tmp_path / study).returncode == 0
    html = draw(tmp_path / study).read_text()
    check(html)
    assert "standard error over" not in html
    if study != "optimise":
        assert re.search(r"\d+ numbers, of one seed, without a standard error\.", html)
    tables = "".join(re.findall(r"<table>.*?</table>", html, re.DOTALL))
    assert "<th>±\u00a0s.e.</th>" in tables
    assert "nan" not in tables  # a dash
