"""`aimle benchmark training`, which trains tasks, and `advice`, which diagnoses them."""

import argparse
import difflib
import functools
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import torch

import aimle
from aimle._files import write_atomically
from aimle.program.benchmark import advice
from aimle.program.benchmark.methods import NAMES, Method, expand, parse_candidate
from aimle.program.benchmark.results import Results, Row
from aimle.program.benchmark.table import page
from aimle.program.benchmark.task import Context, Job, Task, TaskError
from aimle.program.benchmark.tasks import TASKS
from aimle.program.launch import EXPLAINED, exit_with

SUITES = {"training": TASKS, "small": advice.SMALL_TASKS}
_TRAINING = (
    "Trains every task of a suite with every method. Finished runs are rows of OUTPUT/training.csv "
    "(small.csv). A run that has a row is not repeated, so the command can be interrupted and "
    "continued, or run in parts. The page OUTPUT/training.md is generated from the rows."
)
_ADVICE = (
    "Diagnoses every task of both suites and compares the recommendations with the results of "
    "`aimle benchmark training` in OUTPUT. Tasks and seeds with a row in OUTPUT/advice.csv are not "
    "repeated. The page OUTPUT/advice.md is generated from the rows."
)
_QUICK_LAMBDAS = slice(2, 4)


class _Parser(argparse.ArgumentParser):
    """Prints errors in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def parse_seeds(text: str) -> list[int]:
    """``0-2`` or ``0,3,5-7``."""
    seeds: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if found is None:
            raise ValueError(f"expected numbers and ranges such as 0-2 or 1,4,6-8 but got {text!r}")
        first = int(found[1])
        seeds += range(first, int(found[2] or first) + 1)
    return list(dict.fromkeys(seeds))


def _names(known: Iterable[str], listed: Iterable[str] | None = None):
    """Parses names of `known`; an error lists those in `listed`, by default all."""
    known = tuple(known)
    shown = ", ".join(known if listed is None else [*listed, "… (see --list)"])

    def parse(text: str) -> list[str]:
        wanted = text.split(",")
        for name in wanted:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                raise argparse.ArgumentTypeError(
                    f"expected names of {shown} but got {name!r}"
                    + (f"; did you mean {near[0]!r}?" if near else "")
                )
        return wanted

    return parse


def _explained(parse):
    def wrapped(text: str):
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return wrapped


def _adder(parser: argparse.ArgumentParser):
    """Adds an option with a value to the parser: its name, what its value is called, and a help."""

    def add(name: str, value: str, about: str, **settings: Any) -> None:
        parser.add_argument(name, metavar=value, help=about, **settings)

    return add


def _add_common(parser: argparse.ArgumentParser, repeated: str, page_name: str) -> None:
    add, flag = _adder(parser), functools.partial(parser.add_argument, action="store_true")
    flag("--list", help="print the tasks with their titles, one a line")
    known = _names(advice.ALL_TASKS, listed=TASKS)
    add("--tasks", "NAME,...", "only these tasks; --list prints their names", type=known)
    add("--seeds", "SEEDS", "0-2 or 0,3,5-7 (default: 0-2)", type=_explained(parse_seeds))
    add("--output", "DIR", "folder of results and page (default: docs/results)", type=Path)
    flag("--redo", help=f"repeat {repeated} that have a row")
    flag("--table", help=f"only write {page_name} from the rows")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="aimle benchmark")
    studies = parser.add_subparsers(dest="study", required=True)
    advising = studies.add_parser("advice", description=_ADVICE)
    _add_common(advising, "tasks and seeds", "advice.md")
    advising.set_defaults(quick=False, device="cpu", data=None, work=None, threads=0)

    training = studies.add_parser("training", description=_TRAINING)
    training.add_argument(
        "--suite",
        choices=list(SUITES),
        default="training",
        help=f"which tasks: the {len(TASKS)} of the page (training, the default), or "
        f"{len(advice.SMALL_TASKS)} small ones without a page",
    )
    _add_common(training, "the chosen runs", "training.md")
    add = _adder(training)
    add("--methods", "NAME,...", f"only these methods, of {', '.join(NAMES)}", type=_names(NAMES))
    add(
        "--candidate",
        "NAME=ESTIMATOR,SETTING=VALUE,...",
        "another method for every task; the value K/sqrt(S) is computed for each task; may be "
        "given more than once",
        type=_explained(parse_candidate),
        action="append",
        default=[],
    )
    add(
        "--lambdas",
        "VALUE,...",
        "only these values of each task's grid, for example the best, with more seeds",
        type=lambda text: text.split(","),
    )
    add("--data", "DIR", "folder that contains mnist/, imdb/ and eraser_movies/", type=Path)
    training.add_argument(
        "--device",
        choices=["cpu", "cuda"],
        default="cpu",
        help="device of the tasks that `aimle train` runs (default: cpu)",
    )
    threads = "parallel runs of these tasks; 0, the default: as many as `aimle train` chooses"
    add("--threads", "N", threads, type=int, default=0)
    add("--work", "DIR", "folder for unfinished runs (default: out/benchmark)", type=Path)
    quick = "tiny runs that only test the code; ignore the values"
    training.add_argument("--quick", action="store_true", help=quick)
    return parser


def _list(tasks: Mapping[str, Task]) -> None:
    width = max(map(len, tasks))
    print("\n".join(f"{name:{width}}  {task.title}" for name, task in tasks.items()))


def _commit() -> str:
    """The commit of this package's working tree, or its version."""
    folder = Path(aimle.__file__).parent
    command = ["git", "-C", str(folder), "rev-parse", "--short=12", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() if found.returncode == 0 else aimle.__version__


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _context(options: argparse.Namespace, results: Results) -> Context:
    name = options.device
    if name == "cuda" and torch.cuda.is_available():
        name = torch.cuda.get_device_name()

    def record(row: Row) -> None:
        results.add(row)
        _say(f"{row.task} {row.method} {row.setting} seed {row.seed}: {row.value:.4g}")

    return Context(
        quick=options.quick,
        device=options.device,
        device_name=name,
        data=options.data.resolve() if options.data else None,
        work=options.work.resolve(),
        threads=options.threads,
        commit=_commit(),
        record=record,
        say=_say,
    )


def _methods(task: Task, options: argparse.Namespace) -> list[Method]:
    chosen = options.methods
    if chosen is None:
        chosen = [] if options.candidate else task.methods
    lambdas = task.lambdas[_QUICK_LAMBDAS] if options.quick else task.lambdas
    if options.lambdas is not None:
        lambdas = tuple(value for value in lambdas if value in options.lambdas)
    return expand([name for name in task.methods if name in chosen], lambdas) + options.candidate


def _run(task: Task, options: argparse.Namespace, results: Results, context: Context) -> None:
    jobs = [Job(method, seed) for method in _methods(task, options) for seed in options.seeds]
    data, length = task.data_name(context), task.length_of(context)

    def key(job: Job) -> tuple:
        return (task.name, data, length, job.method.name, job.method.setting, job.seed)

    if options.redo:
        wanted = {key(job) for job in jobs}
        results.remove(lambda row: row.key in wanted)
    finished = {row.key for row in results.read()}
    left = [job for job in jobs if key(job) not in finished]
    _say(f"{task.name}: {len(left)} of {len(jobs)} runs to do")
    if left:
        task.run(left, context)


def _advise(options: argparse.Namespace) -> Path:
    """Diagnoses the tasks that have no row yet; returns the page."""
    file = advice.AdviceFile(options.output / "advice.csv")
    results = [Results(options.output / f"{suite}.csv") for suite in SUITES]
    rows = [row for each in results for row in each.read()]
    names = [] if options.table else options.tasks or list(advice.ALL_TASKS)
    finished = set() if options.redo else {(row.task, row.seed) for row in file.read()}
    for name in names:
        task = advice.ALL_TASKS[name]
        if absent := Task.missing(task, _context(options, results[0])):
            _say(f"{name}: skipped: {absent}")
            continue
        for seed in options.seeds:
            if (name, seed) not in finished:
                row = advice.diagnose(task, advice.methods_of(task, rows), seed, _commit())
                file.add(row)
                _say(f"{name} seed {seed}: {row.recommended}; by cosine {row.highest_cosine}")
    page_file = options.output / "advice.md"
    write_atomically(page_file, advice.page(rows, file.read()).encode())
    return page_file


def main(arguments: list[str] | None = None) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends campaigns too
    options = _parser().parse_args(arguments)
    options.seeds = options.seeds or ([0, 1] if options.quick else [0, 1, 2])
    options.work = options.work or Path("out/benchmark_quick" if options.quick else "out/benchmark")
    options.output = options.output or (options.work if options.quick else Path("docs/results"))
    if options.list:
        _list(SUITES[options.suite] if options.study == "training" else advice.ALL_TASKS)
        return 0
    try:
        if options.study == "advice":
            print(_advise(options))
            return 0
        return _train(options)
    except (OSError, ValueError) as error:
        _say(f"aimle benchmark: {error}")
        return EXPLAINED


def _train(options: argparse.Namespace) -> int:
    """Trains the tasks and writes the page; returns the exit code."""
    results = Results(options.output / f"{options.suite}.csv")
    context = _context(options, results)
    tasks = SUITES[options.suite]
    if strangers := [name for name in options.tasks or [] if name not in tasks]:
        _parser().error(f"the suite {options.suite} has no task {strangers[0]!r}")
    failed = False
    results.create()
    for name in [] if options.table else options.tasks or list(tasks):
        task = tasks[name]
        if reason := task.missing(context):
            _say(f"{name}: skipped: {reason}")
            continue
        try:
            _run(task, options, results, context)
        except TaskError as error:
            _say(f"{name}: {error}")
            failed = True
    file = results.file
    if tasks is TASKS:
        file = options.output / "training.md"
        write_atomically(file, page(results.read(), TASKS).encode())
    print(file)
    if failed:
        _say("aimle benchmark: incomplete; run the same command to continue it")
    return EXPLAINED if failed else 0


if __name__ == "__main__":
    exit_with(main)
