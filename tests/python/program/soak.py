"""Kills commands at seeded moments, continues them, and compares with runs that were never stopped.

    make soak COUNT=200 SECONDS=3600 SEED=7

A trial starts a command of the matrix and interrupts it one to four times: by SIGKILL at one of
the moments of its writing that matter (half a file written, renamed, ...), or by SIGKILL, SIGTERM
or SIGINT after some time; in between, a bit of a checkpoint may be flipped. Then it is continued to
its end. Every file must be the same as without interruptions, except for times.

Trial i of a seed is always the same, as far as the time of signals allows: `--seed 7 --first 12
--count 1` repeats the 12th.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from aimle_program import PROGRAM, TIMES

_TRAIN = "--threads 1 --checkpoint_steps 1 --epochs 2"
_DIGITS = "--examples 60 --validation 20 --test_examples 20 --batch 20 --nb_samples 2 --rows 4"


@dataclass(frozen=True)
class Case:
    """A command of about a second, and the number of moments at which its writing can be killed."""

    command: str
    moments: int


CASES = {
    "dvae": Case(f"train dvae {_TRAIN} {_DIGITS}", 48),
    "l2x": Case(
        f"train l2x {_TRAIN} --examples 60 --heldout 40 --annotated 10 --planted 4 --k 4 "
        "--dimensions 10 --batch 20",
        44,
    ),
    "nri": Case(
        f"train nri {_TRAIN} --examples 40 --validation 20 --test_examples 20 --hidden 8 "
        "--batch 16 --epoch_steps 2",
        44,
    ),
    "warcraft": Case(
        f"train warcraft {_TRAIN} --cells 3 --examples 24 --validation 8 --test_examples 8 "
        "--batch 12 --nb_samples 2",
        36,
    ),
    "grid": Case(
        f"train dvae {_TRAIN.replace('threads 1', 'threads 2')} {_DIGITS} "
        "--grid method=aimle,ste --seeds 0-1",
        196,
    ),
    "samples": Case(
        "synth samples --threads 1 --n 5,6 --seeds 2 --samples 1,10 --warmup 10 "
        "--estimators aimle,imle,ste,sfe",
        28,
    ),
    "optimise": Case(
        "synth optimise --threads 1 --n 6 --k 2 --seeds 2 --samples 2 --steps 10 "
        "--learning_rates 0.3",
        36,
    ),
    "paper": Case(
        "paper --threads 1 --quick --entries dvae-k10 --set dvae.epochs=1 "
        "--set dvae.examples=60 --set dvae.validation=20 --set dvae.test_examples=20 "
        "--set dvae.batch=20 --set dvae.nb_samples=2 --set dvae.rows=4",
        144,
    ),
}

# What may differ between two runs that compute the same.
_FREE = TIMES | {"engine_seconds", "created", "command", "contents_xxh64"}
_FREE_FILES = {"checkpoint.previous.pt", "progress.json"}


class TrialError(Exception):
    """A trial that did not end as it should."""


def start(case: Case, out: Path, kill_at: int = 0) -> subprocess.Popen:
    environment = {**os.environ, "AIMLE_PYTHON": shutil.which("true") or "true"}
    if kill_at:
        environment["AIMLE_TEST_KILL_AT_WRITE"] = str(kill_at)
    return subprocess.Popen(
        [str(PROGRAM), *case.command.split(), "--quiet", "--resume", "--out", str(out)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(case: Case, out: Path) -> None:
    process = start(case, out)
    _, said = process.communicate()
    if process.returncode != 0:
        raise TrialError(f"code {process.returncode}: {said.strip()}")


def kill_at_write(case: Case, out: Path, moment: int) -> bool:
    """Whether it was killed, not done before."""
    process = start(case, out, kill_at=moment)
    return _ended(process, {-signal.SIGKILL})


def interrupt_after(case: Case, out: Path, seconds: float, number: signal.Signals) -> bool:
    """Whether it was stopped, not done before."""
    process = start(case, out)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(number)
    return _ended(process, {-number, 128 + number})


def _ended(process: subprocess.Popen, codes: set[int]) -> bool:
    _, said = process.communicate()
    if process.returncode not in codes | {0}:
        raise TrialError(f"code {process.returncode}, expected {sorted(codes)}: {said.strip()}")
    return process.returncode != 0


def flip_a_bit(out: Path, chance: random.Random) -> bool:
    """Damages one checkpoint that has a previous one."""
    files = sorted(file.with_name("checkpoint.pt") for file in out.rglob("checkpoint.previous.pt"))
    files = [file for file in files if file.exists()]
    if not files:
        return False
    file = chance.choice(files)
    content = bytearray(file.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    file.write_bytes(content)
    return True


def contents(folder: Path) -> dict[str, Any]:
    """Every file of a folder, without what may differ."""
    return {
        str(file.relative_to(folder)): _content(file)
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name not in _FREE_FILES
    }


def _content(file: Path) -> Any:
    if file.suffix == ".pt":
        checkpoint = torch.load(file, weights_only=True)
        return _strip({**checkpoint, "metrics": _lines(checkpoint.get("metrics", ""))})
    if file.suffix == ".json":
        return _strip(json.loads(file.read_text()))
    if file.suffix == ".jsonl":
        return _strip(_lines(file.read_text()))
    return file.read_bytes()


def _lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def _strip(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _strip(item) for name, item in value.items() if name not in _FREE}
    if isinstance(value, list):
        return [_strip(item) for item in value]
    if isinstance(value, torch.Tensor):
        return value.dtype, tuple(value.shape), value.contiguous().numpy().tobytes()
    return value


def check_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    if extra := sorted(found.keys() ^ expected.keys()):
        raise TrialError(f"files that are in one of the folders only: {', '.join(extra)}")
    if changed := [name for name in expected if found[name] != expected[name]]:
        raise TrialError(f"other contents: {', '.join(changed)}")


class Soak:
    """Trials with the folders of a seed."""

    def __init__(self, folder: Path, seed: int, names: list[str]) -> None:
        self.folder = folder
        self.seed = seed
        self.names = names
        self._expected: dict[str, tuple[float, dict[str, Any]]] = {}

    def expected(self, name: str) -> tuple[float, dict[str, Any]]:
        """Seconds and results of a command that is not interrupted."""
        if name not in self._expected:
            out = self.folder / f"{name}-whole"
            begun = time.monotonic()
            finish(CASES[name], out)
            self._expected[name] = (time.monotonic() - begun, contents(out))
        return self._expected[name]

    def trial(self, number: int) -> str:
        """What was done, or TrialError."""
        chance = random.Random(f"{self.seed}/{number}")
        name = chance.choice(self.names)
        seconds, expected = self.expected(name)
        out = self.folder / f"{number}-{name}"
        done: list[str] = []
        try:
            for event in self._events(CASES[name], out, seconds, chance):
                done.append(event)
            finish(CASES[name], out)
            check_same(contents(out), expected)
        except TrialError as error:
            raise TrialError(f"{name}, {', '.join(done)}: {error}; see {out}") from None
        shutil.rmtree(out)
        return f"{name}: {', '.join(done) or 'no interruption'}"

    def _events(
        self, case: Case, out: Path, seconds: float, chance: random.Random
    ) -> Iterator[str]:
        for _ in range(chance.randint(1, 4)):
            number = chance.choice([None, None, signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
            if number is None:
                moment = chance.randint(1, case.moments)
                yield f"killed at write {moment}"
                stopped = kill_at_write(case, out, moment)
            else:
                delay = chance.uniform(0, 1.1 * seconds)
                yield f"{number.name} after {delay:.2f} s"
                stopped = interrupt_after(case, out, delay, number)
            if not stopped:
                return
            if chance.random() < 0.25 and flip_a_bit(out, chance):
                yield "a bit flipped"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100, help="trials")
    parser.add_argument("--seconds", type=float, default=600, help="no trial begins after these")
    parser.add_argument("--seed", type=int, default=None, help="default: a new one, printed")
    parser.add_argument("--first", type=int, default=1, help="number of the first trial")
    parser.add_argument("--cases", default=",".join(CASES), help="which commands")
    options = parser.parse_args(arguments)
    names = options.cases.split(",")
    if unknown := [name for name in names if name not in CASES]:
        parser.error(f"--cases: expected some of {', '.join(CASES)} but got {', '.join(unknown)}")
    seed = random.randrange(1 << 30) if options.seed is None else options.seed
    folder = Path(tempfile.mkdtemp(prefix="aimle_soak_"))
    print(f"seed {seed}, folders in {folder}", flush=True)
    soak = Soak(folder, seed, names)
    begun = time.monotonic()
    trials = failures = 0
    for number in range(options.first, options.first + options.count):
        if time.monotonic() - begun > options.seconds:
            break
        trials += 1
        try:
            print(f"{number}. {soak.trial(number)}: the same", flush=True)
        except TrialError as error:
            failures += 1
            print(f"{number}. {error}", flush=True)
    print(f"{trials} trials, {failures} failed, seed {seed}")
    if failures == 0:
        shutil.rmtree(folder)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
