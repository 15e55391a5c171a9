"""The program on a terminal: widths, signals, standard output, `--quiet`, unusual names."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from aimle_program import PROGRAM, aimle, fails, metrics, need_program, without_figures
from terminal import terminal

TINY = ["--n", "4", "--seeds", "1", "--samples", "2", "--warmup", "0", "--estimators", "ste"]
SMALL = ["--examples", "400", "--test_examples", "40", "--validation", "40", "--batch", "20",
         "--nb_samples", "2", "--threads", "1"]  # fmt: skip

# A signal is obeyed within two seconds; a machine under load gets more.
PROMPTLY = 15.0


@pytest.fixture(autouse=True)
def _program():
    need_program()


def bars(shown: str) -> list[str]:
    return re.findall(r"\r([^\r\n]* %[^\r\n]*)\x1b\[K", shown)


def test_a_progress_bar_fits_the_terminal_and_follows_it(tmp_path: Path):
    arguments = ["train", "dvae", "--out", tmp_path / "run", "--epochs", "100000", *SMALL]
    with terminal(*arguments, columns=60) as opened:
        opened.wait_for(lambda: len(bars(opened.shown)) >= 3)
        wide = bars(opened.shown)
        assert all(len(bar) == 59 for bar in wide), wide
        assert all("█" in bar or "░" in bar for bar in wide)
        opened.resize(34)
        before = len(wide) + 2  # some may have been drawn meanwhile
        opened.wait_for(lambda: len(bars(opened.shown)) > before)
        assert len(bars(opened.shown)[-1]) <= 33
        opened.interrupt()
        assert opened.process.returncode == 130


def test_without_a_terminal_there_are_plain_lines(tmp_path: Path):
    result = aimle("train", "dvae", "--out", tmp_path / "run", "--epochs", "1", *SMALL)
    assert result.returncode == 0
    assert "\r" not in result.stderr
    assert "\x1b" not in result.stderr
    assert "train dvae: 18/18, 0 s left, epoch 1, loss" in result.stderr


@pytest.mark.parametrize("columns", [50, 80, 132])
@pytest.mark.parametrize("command", [[], ["synth", "samples"], ["train", "nri"], ["diagnose"]])
def test_help_wraps_at_the_width(command: list[str], columns: int):
    given = subprocess.run(
        [PROGRAM, *command, "--help"],
        env={**os.environ, "COLUMNS": str(columns)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    long = [line for line in given.splitlines() if len(line) > columns]
    assert all(" " not in line.strip() for line in long), long  # what cannot be broken
    assert "train" not in command or max(map(len, given.splitlines())) > columns - 10
    with terminal(*command, "--help", columns=columns) as opened:
        while opened.read():
            pass
    assert opened.shown.replace("\r\n", "\n") == given


def test_help_is_80_columns_wide_without_a_terminal():
    environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    command = [PROGRAM, "train", "dvae", "--help"]
    text = subprocess.run(command, env=environment, capture_output=True, text=True).stdout
    assert 70 < max(map(len, text.splitlines())) <= 80


def test_help_says_the_defaults_of_estimators_and_what_automatic_values_mean():
    text = " ".join(aimle("train", "nri", "--help").stdout.split())
    assert "--lr FLOAT=0.0 Learning rate of Adam; 0: the authors' for the method" in text
    assert "how alpha changes; additive or multiplicative; unset: multiplicative" in text
    assert "of the multiplicative rule; a number > 1; unset: 1.02" in text
    assert "larger weights are capped at it; a number > 0; unset: 20" in text


@pytest.mark.parametrize(
    ("phase", "options", "says"),
    [
        ("loading the data", ["--examples", "2000000"], "nothing was written"),
        ("evaluating the untrained", ["--test_examples", "200000"], "--resume --out"),
    ],
)
def test_ctrl_c_before_training(phase: str, options: list[str], says: str, tmp_path: Path):
    base = {"--examples": "500", "--validation": "500", "--test_examples": "500"}
    base |= dict(zip(options[::2], options[1::2], strict=True))
    if "evaluating" in phase:
        base |= {"--validation": "20000"}
    arguments = [part for pair in base.items() for part in pair]
    with terminal("train", "nri", "--out", tmp_path / "run", *arguments, columns=100) as opened:
        opened.wait_for(lambda: phase in opened.shown)
        assert opened.interrupt() < PROMPTLY
    assert opened.process.returncode == 130
    assert opened.last_line().startswith("aimle: stopped")
    assert says in opened.last_line()
    assert (tmp_path / "run").exists() == ("evaluating" in phase)


def stop(command: list[str], ready: Callable[[], bool], **options) -> subprocess.CompletedProcess:
    """Interrupts the program itself, and nothing it has started, when it is ready."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )
    while not ready():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=600)
    assert time.monotonic() - start < PROMPTLY
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def test_ctrl_c_in_a_step_that_takes_long(tmp_path: Path):
    """It cannot be waited for; the run continues from the last checkpoint, here the beginning."""
    out = tmp_path / "run"
    slow = ["--batch", "12000", "--nb_samples", "1000", "--epochs", "9", "--validation", "0"]
    command = [str(PROGRAM), "train", "dvae", "--out", str(out), *slow]
    done = stop(command, (out / "config.json").exists)
    assert done.returncode == 130, done.stderr
    assert "--resume --out" in done.stderr.splitlines()[-1]
    live = {"progress.json"}  # written about once a second, for readers of running training
    assert {file.name for file in out.iterdir()} - live == {"config.json"}


def test_ctrl_c_in_an_evaluation_changes_nothing(tmp_path: Path):
    """Stopped in the evaluation at the end of an epoch, a run goes on as if it had not been."""
    base = ["--examples", "400", "--validation", "1500", "--test_examples", "40", "--hidden", "8",
            "--batch", "20", "--epoch_steps", "3", "--epochs", "2", "--threads", "1",
            "--preset", "reference"]  # fmt: skip
    command = [str(PROGRAM), "train", "nri", *base, "--out"]
    subprocess.run([*command, tmp_path / "whole"], check=True, capture_output=True)
    out = tmp_path / "stopped"
    stopped = stop([*command, str(out)], (out / "metrics.jsonl").exists)
    assert stopped.returncode == 130
    assert (out / "checkpoint.pt").exists()
    subprocess.run([*command, out, "--resume"], check=True, capture_output=True)
    assert metrics(out) == metrics(tmp_path / "whole")


def test_ctrl_c_in_runs_side_by_side(tmp_path: Path):
    out = tmp_path / "my runs"
    command = [PROGRAM, "train", "dvae", "--seeds", "0-2", "--epochs", "100000", "--out", out]
    first = out / "seed-0" / "metrics.jsonl"
    done = stop([*map(str, command), *SMALL[:-2], "--threads", "2"], first.exists)
    assert done.returncode == 130
    assert done.stderr.splitlines()[-1].endswith(f"--resume --out '{out}'")


def test_ctrl_c_while_a_python_draws_that_does_not_listen(tmp_path: Path):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\ntrap '' INT TERM\ntouch {tmp_path}/ready\nwhile :; do :; done\n")
    python.chmod(0o755)
    command = [str(PROGRAM), "synth", "samples", "--out", str(tmp_path / "out"), *TINY]
    done = stop(
        command, (tmp_path / "ready").exists, env={**os.environ, "AIMLE_PYTHON": str(python)}
    )
    assert done.returncode == 130
    assert done.stderr.splitlines()[-1].startswith("aimle: stopped in aimle.program.report.synth")


WRITES = [
    ["--help"],
    ["--version"],
    ["train", "dvae", "--help"],
    ["completion", "bash"],
    ["synth", "problem"],
    ["list", "{runs}"],
    ["diagnose", "--out", "{out}", "--n", "4", "--repeats", "2", "--estimators", "ste"],
    ["synth", "samples", "--out", "{out}", *TINY],
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    result = aimle("train", "dvae", "--out", folder / "run", "--epochs", "1", *SMALL)
    assert result.returncode == 0
    return folder


@pytest.mark.parametrize("arguments", WRITES, ids=lambda arguments: " ".join(arguments[:2]))
def test_output_that_cannot_be_written_is_an_error(arguments: list[str], runs: Path, tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    given = [part.format(runs=runs, out=tmp_path / "out") for part in arguments]
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [PROGRAM, *given],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=without_figures(given[0]),
        )
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert last.startswith("aimle: cannot write to standard output")


def test_output_of_the_python_package_that_cannot_be_written_is_an_error():
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [PROGRAM, "data", "list"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (result.returncode, result.stderr) == (1, "aimle: cannot write to standard output\n")


@pytest.mark.parametrize("arguments", [["completion"], ["data", "list"], ["--help"]])
def test_a_closed_pipe_is_quiet(arguments: list[str]):
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run([PROGRAM, *arguments], stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert result.returncode in (-signal.SIGPIPE, 128 + signal.SIGPIPE)
    assert result.stderr == ""


def test_names_of_folders_may_be_any_bytes(tmp_path: Path):
    data, out = (os.fsencode(tmp_path) + name for name in (b"/daten\xe9", b"/caf\xe9 \xff"))
    made = subprocess.run(
        [PROGRAM, "data", "make", "--examples", "60", "--test_examples", "20", "--out", data],
        capture_output=True,
    )
    assert made.returncode == 0, made.stderr
    train = [PROGRAM, "train", "dvae", "--validation", "10", "--batch", "20", "--out", out]
    train += ["--nb_samples", "2", "--bound_codes", "1", "--threads", "1"]
    result = subprocess.run([*train, "--epochs", "1", "--data", data], capture_output=True)
    assert result.returncode == 0, result.stderr
    with open(out + b"/config.json", encoding="utf-8") as file:
        config = json.load(file)
    assert config["settings"]["data"] == f"{tmp_path}/daten\\xe9"
    assert config["command"].endswith("daten\\xe9")
    # The folder of the data is read back from the file.
    result = subprocess.run([*train, "--epochs", "2", "--resume"], capture_output=True)
    assert result.returncode == 0, result.stderr
    listed = subprocess.run([PROGRAM, "list", out], capture_output=True)
    assert out in listed.stdout
    page = tmp_path / "report.html"
    report = subprocess.run([PROGRAM, "report", out, "--out", page], capture_output=True)
    assert report.returncode == 0, report.stderr
    assert "caf" in page.read_text(encoding="utf-8")


def test_quiet_still_says_what_did_not_happen(tmp_path: Path):
    result = aimle("synth", "samples", "--quiet", "--out", tmp_path / "out", *TINY)
    assert result.returncode == 0
    assert "cannot run /no/python" in result.stderr
    assert "no figures were drawn" in result.stderr
    result = aimle("train", "dvae", "--quiet", "--out", tmp_path / "run", "--epochs", "1", *SMALL)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["train", "dvae", "--seed", "1", "--epochs", "2", "--seed", "1"], "--seed is given twice"),
        (["train", "dvae", "--quiet", "--quiet"], "--quiet is given twice"),
        (["train", "dvae", "--test-examples=3", "--test_examples=3"], "--test_examples is given"),
        (["synth", "samples", "--n", "4", "--n", "5"], "give it once, with values a,b,..."),
        (["report", "a", "--out", "x", "--out", "y"], "--out is given twice"),
    ],
)
def test_an_option_given_twice_is_refused(arguments: list[str], says: str):
    fails(*arguments, code=2, says=says)


def test_an_option_without_its_value_is_named():
    fails("train", "dvae", "--seeds", code=2, says="--seeds needs a value")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["synth", "samples", "--estimators", "aimel"], "--estimators: expected one of aimle, "),
        (["synth", "samples", "--estimators", "imle:lambda=-5"], "a finite lambda >= 0 but got -5"),
        (["diagnose", "--estimators", "imle:lambda=-5"], "a finite lambda >= 0 but got -5"),
        (["train", "dvae", "--lambda", "-5"], "--lambda: expected a finite lambda >= 0 but got -5"),
        (["train", "dvae", "--grid", "lambda=1,-5"], "a finite lambda >= 0 but got -5"),
        (["train", "dvae", "--method", "ste", "--lambda", "3"], "ste does not take lambda"),
        (
            ["train", "dvae", "--config", "/"],
            "--config: /: expected a regular file but it is a folder",
        ),
        (["train", "dvae", "--config", __file__], "expected JSON"),
    ],
)
def test_wrong_usage_in_the_programs_own_words(arguments: list[str], says: str, tmp_path: Path):
    result = aimle(*arguments, "--out", tmp_path / "out")
    assert result.returncode == 2, result.stderr
    assert result.stderr.startswith("aimle: ")
    assert len(result.stderr.splitlines()) == 1
    assert says in result.stderr
    for foreign in ("::", "[aimle", "json.exception", "basic_", "std"):
        assert foreign not in result.stderr
    assert not (tmp_path / "out").exists()


LONG = "9" * 5000


@pytest.mark.parametrize(
    "arguments",
    [
        [LONG],
        ["list", LONG],
        ["synth", "samples", "--" + LONG, "1"],
        ["synth", "samples", "--seeds", LONG],
        ["synth", "samples", "--lambdas", LONG + "x"],
        ["synth", "samples", "--estimators", LONG],
        ["synth", "samples", "--estimators", "imle:lambda=" + LONG + "x"],
        ["synth", "samples", "--estimators", f"imle:{LONG}=1"],
        ["diagnose", "--structure", LONG],
        ["diagnose", "--theta", LONG],
        ["train", LONG],
        ["train", "dvae", "--epochs", LONG],
        ["train", "dvae", "--method", LONG],
        ["train", "dvae", "--noise", LONG],
        ["train", "dvae", "--preset", LONG],
        ["train", "dvae", "--seeds", LONG],
        ["train", "dvae", "--grid", LONG],
        ["train", "dvae", "--grid", LONG + "=1"],
        ["train", "dvae", "--config", LONG],
        ["train", "dvae", "--data", LONG],
        ["train", "dvae", "--out", LONG],
        ["paper", "--set", LONG],
        ["report", LONG],
        ["data", "check", LONG],
    ],
    ids=lambda arguments: " ".join(arguments).replace(LONG, "L"),
)
def test_long_values_are_cut(arguments: list[str], tmp_path: Path):
    result = aimle(*arguments, cwd=tmp_path)
    assert result.returncode in (1, 2)
    last = result.stderr.splitlines()[-1]
    assert last.startswith("aimle: ")
    assert len(last) < 900, last
    assert "5" in last
    assert "filesystem" not in last
