"""Wrong input of the program: messages and exit codes, and no crash."""

import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from aimle_program import PROGRAM, aimle, fails, need_program

TINY = {"--n": "4", "--seeds": "1", "--samples": "2", "--warmup": "0", "--estimators": "ste"}


@pytest.fixture(autouse=True)
def _program():
    need_program()


def synth(*options: object, out: Path) -> tuple[object, ...]:
    return ("synth", "samples", "--quiet", "--out", out, *options)


def test_version_and_help():
    assert aimle("--version").stdout.startswith("aimle 0.")
    for command in (["--help"], ["synth", "--help"], ["synth", "samples", "--help"]):
        result = aimle(*command)
        assert result.returncode == 0
        assert "Usage: aimle" in result.stdout or "OPTIONS" in result.stdout.upper()


@pytest.mark.parametrize(
    "command", [[], ["synth"], ["train", "dvae"], ["paper"], ["list"], ["data", "fetch"]]
)
def test_help_has_no_two_empty_lines(command: list[str]):
    text = aimle(*command, "--help").stdout
    assert "\n\n\n" not in text
    assert not text.endswith("\n\n")


def test_help_shows_lists_as_they_are_typed():
    text = aimle("synth", "lambda", "--help").stdout
    assert "--samples INT in [1, 10000000]=1,1000\n" in text
    assert "--estimators TEXT,...  " in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["synht"], "did you mean 'synth'?"),
        (["synth", "sample"], "did you mean 'samples'?"),
        (["synth", "samples", "--sead", "3"], "has no option --sead; did you mean '--seeds'?"),
        (["synth", "samples", "--seeds=3", "--lamdas=1"], "did you mean '--lambdas'?"),
        (["synth", "samples", "extra"], "does not take 'extra'"),
        (["synth"], "needs a command"),
        (["report"], "aimle report needs folders"),
        (["train", "dvae", "--estimator", "imle"], "did you mean '--method'?"),
        (["train", "dvae", "--gpu"], "did you mean '--device'?"),
        (["synth", "samples", "--seeds"], "--seeds"),
        (["synth", "samples", "--seeds", "0"], "expected a whole number in [1, 100000]"),
        (["synth", "samples", "--seeds", "3.5"], "but got '3.5'"),
        (["synth", "samples", "--n", "10,x"], "but got 'x'"),
        (["synth", "samples", "--lambdas", "nan"], "expected a number in"),
        (["synth", "lambda", "--lambdas", "0"], "expected a number in"),
        (["synth", "optimise", "--momentum", "1"], "expected a number in [0, 0.9999]"),
        (["diagnose", "--structure", "topq"], "did you mean 'topk'?"),
        (["diagnose", "--b", "x.csv", "--dy", "y.csv"], "excludes"),
        (["train", "dvae", "--resume", "--force"], "--force excludes --resume"),
    ],
)
def test_wrong_usage(arguments: list[str], says: str):
    fails(*arguments, code=2, says=says)


def test_a_command_without_a_verb_shows_its_own_usage():
    assert "Usage: aimle synth [OPTIONS] SUBCOMMAND" in aimle("synth").stderr


def test_alone_it_shows_the_most_useful_commands():
    shown = aimle()
    assert shown.returncode == 0
    commands = re.findall(r"^  (aimle .*?)  ", shown.stdout, re.MULTILINE)
    assert len(commands) == 6
    for command in commands:
        assert aimle(command.split()[1], "--help").returncode == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--k", "10", "--n", "10"], "expected --k below --n but got k=10, n=10"),
        (["--estimators", "aimel"], "did you mean 'aimle'?"),
        (["--estimators", "imle:lamda=1"], "did you mean 'lambda'?"),
        (["--estimators", "imle:lambda=-1"], "lambda"),
        (["--estimators", "imle:lambda"], "expected name:setting=value"),
        (["--estimators", "ste:nb_samples=5"], "nb_samples is set by the study itself"),
        (["--estimators", "reinmax", "--k", "2"], "does not apply to topk"),
        (["--n", "10000", "--samples", "10000000"], "--n times --samples"),
        (["--estimators", "dpo", "--samples", "1"], "needs more samples"),
    ],
)
def test_settings_that_cannot_be(options: list[str], says: str, tmp_path: Path):
    fails(*synth(*options, out=tmp_path / "out"), code=2, says=says)
    assert not (tmp_path / "out").exists()


def test_a_folder_in_use_is_refused_and_kept(tmp_path: Path):
    tiny = [part for pair in TINY.items() for part in pair]
    (tmp_path / "mine.txt").write_text("mine")
    fails(*synth(*tiny, out=tmp_path), code=1, says="--resume to continue")
    fails("data", "make", "--out", tmp_path, code=1, says="with --out, or --force")
    fails(*synth(*tiny, out=tmp_path / "mine.txt"), code=1, says="it is a file")
    assert {file.name for file in tmp_path.iterdir()} == {"mine.txt"}
    result = aimle(*synth(*tiny, "--force", out=tmp_path))
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert (tmp_path / "summary.csv").exists()


def test_an_interrupt_while_python_draws_is_quiet(tmp_path: Path):
    """Ctrl-C reaches both processes; an endless torch stands for the drawing."""
    ready = tmp_path / "ready"
    (tmp_path / "torch.py").write_text(f"import time\nopen({str(ready)!r}, 'w')\ntime.sleep(60)\n")
    tiny = [part for pair in TINY.items() for part in pair]
    process = subprocess.Popen(
        [PROGRAM, "synth", "samples", "--out", tmp_path / "out", *tiny],
        env={**os.environ, "AIMLE_PYTHON": sys.executable, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not ready.exists() and process.poll() is None:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    written, said = process.communicate(timeout=600)
    assert process.returncode == 130, said
    assert written.endswith("summary.csv\n")
    assert "Traceback" not in said
    assert said.splitlines()[-1].startswith("aimle: stopped")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(tmp_path: Path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    fails(*synth(out=tmp_path / "out"), code=1, says="Permission denied")
    fails(*synth(out=tmp_path), code=1, says="ermission denied")


def test_a_full_disk():
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    fails(*synth(out=Path("/dev/full")), code=1, says="it is a file")
    fails(*synth(out=Path("/proc/aimle")), code=1, says="cannot create the folder")


WRONG = [
    "", " ", "-1", "0", "1e400", "nan", "inf", "-inf", "abc", "1,,2", ",", "9" * 40, "0x10", "1;2",
    "3.7", "--n", "-", "--", "=", "ste:", "ste:a=b", ":", "imle:lambda=", "é", "%s%n", "1 2", "+5",
    "aimle:alpha_range=1", "aimle:scope=sample:rule=x", "../..", "ste,ste", "1,1,1",
]  # fmt: skip


@pytest.mark.parametrize("command", [["synth", "samples"], ["synth", "optimise"], ["diagnose"]])
def test_no_value_of_an_option_makes_it_crash(command: list[str], tmp_path: Path):
    seed = 20230207
    generator = random.Random(seed)
    options = {
        "samples": ["--n", "--k", "--seeds", "--samples", "--lambdas", "--estimators", "--warmup",
                    "--warmup-samples", "--threads"],
        "optimise": ["--n", "--samples", "--steps", "--momentum", "--learning-rates", "--lambdas"],
        "diagnose": ["--n", "--k", "--structure", "--theta", "--b", "--dy", "--samples",
                     "--repeats", "--long-run", "--seed"],
    }[command[-1]]  # fmt: skip
    base = {
        "samples": TINY,
        "optimise": {"--n": "4", "--k": "2", "--seeds": "1", "--steps": "2", "--samples": "2",
                     "--estimators": "ste", "--learning-rates": "1"},
        "diagnose": {"--n": "4", "--repeats": "2", "--samples": "2", "--estimators": "ste"},
    }[command[-1]]  # fmt: skip
    for trial in range(14):
        option, value = generator.choice(options), generator.choice(WRONG)
        chosen = base | {option: value}
        out = tmp_path / str(trial)
        arguments = [*command, "--quiet", "--out", out]
        arguments += [part for pair in chosen.items() for part in pair]
        result = aimle(*arguments)
        shown = f"seed {seed}, trial {trial}: {option} {value!r}: {result.stderr}"
        assert result.returncode in (0, 1, 2), shown
        if result.returncode == 0:
            assert any(out.iterdir()), shown
            continue
        assert result.stderr.splitlines()[-1].startswith("aimle: "), shown
        assert "terminate" not in result.stderr, shown
        assert not out.exists() or not any(out.iterdir()), shown


COMPLETED = [
    (["aimle", ""], {"synth", "train", "report", "--help", "--version"}),
    (["aimle", "sy"], {"synth"}),
    (["aimle", "synth", "sam"], {"samples"}),
    (["aimle", "train", "dvae", "--kl"], {"--kl_weight"}),
    (["aimle", "train", "--out", "x", "dvae", "--kl"], {"--kl_weight"}),
    (["aimle", "report", "--ou"], {"--out"}),
    (["aimle", "report", "x"], set()),
]

# zsh's own part, which needs a terminal: keeps what fits the word, and fails where nothing does.
ZSH = """
compdef() { }
_files() { }
compadd() {
  shift
  local fitting=(${(M)@:#${words[CURRENT]}*})
  print -r -- $fitting
  (( $#fitting ))
}
"""


def offers(shell: str, *script: str) -> set[str]:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell}")
    options = ["-f"] if shell == "zsh" else []
    command = [program, *options, "-c", "\n".join(script)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stderr == ""
    return set(result.stdout.split())


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize(("typed", "offered"), COMPLETED)
def test_shells_complete(shell: str, typed: list[str], offered: set[str]):
    words = " ".join(f"'{word}'" for word in typed)
    table = aimle("completion", shell).stdout
    if shell == "bash":
        ask = f"COMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; _aimle; echo ${{COMPREPLY[@]}}"
        got = offers(shell, table, ask)
    else:
        got = offers(shell, ZSH, table, f"words=({words}); CURRENT={len(typed)}; _aimle")
    assert (offered <= got) if typed[-1] == "" else (offered == got)


def test_completion_is_bash_unless_asked_and_alike_in_both():
    bash, zsh = aimle("completion", "bash").stdout, aimle("completion", "zsh").stdout
    assert aimle("completion").stdout == bash
    table = re.findall(r"^_aimle_words\['(.*)'\]='(.*)'$", bash, re.MULTILINE)
    assert "aimle train dvae" in dict(table)
    assert re.findall(r"^  '(.*)' '(.*)'$", zsh, re.MULTILINE) == table
    fails("completion", "zhs", code=2, says="unknown shell 'zhs'; did you mean 'zsh'?")
