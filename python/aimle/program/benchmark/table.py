"""Generates the Markdown page from the CSV file of runs."""

import math
import statistics
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from aimle.program.benchmark.methods import RELAXATIONS
from aimle.program.benchmark.results import Row
from aimle.program.benchmark.task import Task
from aimle.program.standard_error import standard_error

#: The default may be worse than another method by this share of its value ...
TOLERANCE = 0.02


class Mean(NamedTuple):
    """Mean and standard error of one method's runs; the error is NaN for a single run."""

    value: float
    error: float
    runs: int

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "diverged"
        digits = max(0, 3 - math.floor(math.log10(abs(self.value) or 1.0)))
        error = "" if math.isnan(self.error) else f" ± {self.error:.{digits}f}"
        return f"{self.value:.{digits}f}{error}"


class Comparison(NamedTuple):
    """The default compared with another method. gap > 0: the default is worse."""

    gap: float
    share: float
    error: float

    @property
    def met(self) -> bool:
        """... or by no more than one standard error of the difference."""
        return self.share <= TOLERANCE or self.gap <= self.error

    def __str__(self) -> str:
        verdict = "yes" if self.met else "**no**"
        return f"{-100 * self.share:+.1f} % ({verdict})"


def _wrapped(text: str) -> str:
    """A paragraph of at most 100 columns."""
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def mean_of(values: list[float]) -> Mean:
    return Mean(statistics.fmean(values), standard_error(values), len(values))


def compare(default: Mean, other: Mean, higher_is_better: bool) -> Comparison:
    """By how much the default is worse than the other, and the error of the difference."""
    gap = (other.value - default.value) * (1 if higher_is_better else -1)
    errors = [0.0 if math.isnan(each.error) else each.error for each in (default, other)]
    if math.isnan(other.value) or math.isnan(default.value):
        gap = math.inf if math.isnan(default.value) else -math.inf
        return Comparison(gap, gap, 0.0)
    return Comparison(gap, gap / max(abs(other.value), 1e-12), math.hypot(*errors))


class Section:
    """The runs of one task on one data set with one length."""

    def __init__(self, task: Task, rows: list[Row]) -> None:
        self.task = task
        self.rows = rows
        self.data, self.length, self.metric = rows[0].data, rows[0].length, rows[0].metric
        values: dict[tuple[str, str], list[float]] = defaultdict(list)
        for row in rows:
            values[row.method, row.setting].append(row.value)
        self.means = {key: mean_of(list_of) for key, list_of in values.items()}

    def best(self, *methods: str) -> tuple[str, str] | None:
        """The method and setting with the best mean of these methods; None if none was run.

        If some lambda of a method's grid were repeated with more seeds, only these are considered.
        """
        most = {name: self._most_runs(name) for name in methods}
        keys = [key for key in self.means if self.means[key].runs == most.get(key[0])]
        sign = -1 if self.task.higher_is_better else 1

        def rank(key: tuple[str, str]) -> float:
            value = self.means[key].value
            return math.inf if math.isnan(value) else sign * value

        return min(keys, key=rank, default=None)

    def _most_runs(self, method: str) -> int:
        return max((mean.runs for key, mean in self.means.items() if key[0] == method), default=0)

    def against(self, key: tuple[str, str] | None) -> Comparison | None:
        """The default against this method; None if either is missing."""
        default = self.means.get(("default", ""))
        if default is None or key is None or key not in self.means:
            return None
        return compare(default, self.means[key], self.task.higher_is_better)

    def runs(self, *keys: tuple[str, str] | None) -> str:
        """How many runs these methods have: one number, or the least and the greatest."""
        counts = {self.means[key].runs for key in keys if key and key in self.means}
        return "–".join(map(str, sorted({min(counts), max(counts)}))) if counts else "–"

    def value(self, key: tuple[str, str] | None) -> str:
        """Mean and standard error, or a dash."""
        return str(self.means[key]) if key in self.means else "–"

    def setting(self, key: tuple[str, str]) -> str:
        """The lambda of a method, with a dagger at the ends of the grid; empty without one."""
        ends = {f"lambda={value}" for value in (self.task.lambdas[0], self.task.lambdas[-1])}
        return key[1].replace("lambda=", "λ = ") + ("†" if key[1] in ends else "")

    def grid(self, method: str) -> str:
        """All lambdas of a method in one line."""
        own = {key[1].split("=")[1]: mean for key, mean in self.means.items() if key[0] == method}
        return " · ".join(f"{value}: {own[value]}" for value in sorted(own, key=float))

    def markdown(self) -> str:
        arrow = "higher is better" if self.task.higher_is_better else "lower is better"
        seeds = sorted({row.seed for row in self.rows})
        devices = ", ".join(sorted({row.device for row in self.rows}))
        commits = ", ".join(sorted({row.commit for row in self.rows}))
        lines = [
            f"### {self.task.title}",
            "",
            _wrapped(
                f"`{self.task.name}`: {self.data}, {self.length}, `{self.metric}` ({arrow}), "
                f"seeds {', '.join(map(str, seeds))}. Run on {devices}; commit {commits}."
            ),
            "",
        ]
        rows = []
        for method in dict.fromkeys(key[0] for key in self.means):
            key = self.best(method)
            if key is None:
                continue
            calls = max(row.solver_calls for row in self.rows if (row.method, row.setting) == key)
            shown = f"{calls:,}" if calls else "–"
            setting = f" ({self.setting(key)})" if key[1] else ""
            rows.append([method, f"{self.value(key)}{setting}", str(self.means[key].runs), shown])
        lines += markdown_table("method|mean ± standard error|runs|solver calls", rows)
        for method in ("imle", "imle_central", "pyepo_imle"):
            if text := self.grid(method):
                lines += ["", _wrapped(f"λ of `{method}`: {text}")]
        return "\n".join(lines)


def sections(rows: Iterable[Row], tasks: dict[str, Task]) -> list[Section]:
    """In the order of the tasks; rows of unknown tasks are left out."""
    groups: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.task, row.data, row.length].append(row)
    order = list(tasks)
    known = [group for key, group in groups.items() if key[0] in tasks]
    known.sort(key=lambda group: order.index(group[0].task))
    return [Section(tasks[group[0].task], group) for group in known]


_HEAD = """# Estimators compared on training tasks

This page is generated by `aimle benchmark training` from [training.csv](training.csv); do not edit
it. The command is resumable and can be run in parts:

    aimle benchmark training --device cuda --data DIR     # everything, on a GPU
    aimle benchmark training --tasks digits,knapsack-l1   # some tasks

`DIR` contains `mnist/`, `imdb/` and `eraser_movies/`. The digits and PyEPO tasks run on the CPU and
need `pip install pyepo ortools scikit-learn`.

All methods of a task have the same metric, length of training and data. *default* is `aimle`
without any setting, *paper* is the rule of Algorithm 1 (α from 0 in steps of 10⁻³, c = 1), *noise*
is `aimle_noise`, a constant step as long as the noise, and *best λ* is the best mean of IMLE's
forward and central difference over seven λ. *best λ* is chosen by the metric itself, which favours
it. If only the best λ of a grid were repeated with all seeds, the choice is among these.
Values are means ± standard errors over seeds.
"""


_SUMMARY_HEAD = """Values are those of the task's metric, named below with its data.

- *difference*: how much better the default is, relative to the other's value; negative if it is
  worse.
- *yes*: the default is better, or worse by no more than 2 % or one standard error of the
  difference.
- *runs*: seeds of each of the two methods; two numbers if they differ.
- *†*: the best λ is at the end of the grid.
"""


def markdown_table(heads: str, rows: Iterable[Iterable[str]]) -> list[str]:
    """The lines of a Markdown table; heads are separated by bars, and may be empty."""
    names = heads.split("|")
    lines = [names, ["---"] * len(names), *rows]
    return [f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines]


def _against(found: list[Section], titles: list[str], title: str, *methods: str) -> list[str]:
    """The section that compares the default with the best of some methods; empty without any."""
    default, several = ("default", ""), len(methods) > 1
    rows: list[list[str]] = []
    shares: list[float] = []
    met = 0
    for section, name in zip(found, titles, strict=True):
        best = section.best(*methods)
        if best is None:
            continue
        compared = section.against(best)
        if compared is not None:
            met += compared.met
            shares += [-compared.share] if math.isfinite(compared.share) else []
        setting = [f"`{best[0]}`, {section.setting(best)}"] if several else []
        values = [section.value(default), section.value(best)]
        rows.append([name, *values, *setting, section.runs(default, best), str(compared or "–")])
    if not rows:
        return []
    heads = f"task|default|other|{'setting|' if several else ''}runs|difference"
    lines = [f"### {title}\n", *markdown_table(heads, rows), ""]
    if shares:
        mean = 100 * statistics.fmean(shares)
        lines.append(
            f"Mean of the differences: {mean:+.1f} %. *yes* on {met} of {len(rows)} tasks.\n"
        )
    return lines


def _others(found: list[Section], titles: list[str]) -> list[str]:
    """The section of the methods that the default is not compared with."""
    rows = []
    for section, name in zip(found, titles, strict=True):
        relaxation = section.best(*RELAXATIONS)
        rows.append(
            [
                name,
                *(section.value((method, "")) for method in ("default", "noise", "thresholds")),
                section.value(relaxation) + (f" `{relaxation[0]}`" if relaxation else ""),
            ]
        )
    heads = "task|default|noise|thresholds|best relaxation"
    return ["### Other methods\n", *markdown_table(heads, rows), ""]


def _summary(found: list[Section]) -> list[str]:
    """Every task in one line of each table."""
    count = Counter(section.task.title for section in found)
    titles = [
        section.task.title
        if count[section.task.title] == 1
        else f"{section.task.title} ({section.data}, {section.length})"
        for section in found
    ]
    return [
        *_against(found, titles, "Against IMLE with the best λ", "imle", "imle_central"),
        *_against(found, titles, "Against the paper's rule", "paper"),
        *_against(found, titles, "Against PyEPO's AIMLE", "pyepo_aimle"),
        *_others(found, titles),
    ]


def page(rows: Iterable[Row], tasks: dict[str, Task]) -> str:
    """The whole page."""
    found = sections(rows, tasks)
    ran = {section.task.name for section in found}
    absent = [name for name in tasks if name not in ran]
    parts = [_HEAD]
    if found:
        parts += ["## Summary\n", _SUMMARY_HEAD, *_summary(found)]
    if not found:
        parts.append("No task has been run yet.\n")
    elif absent:
        parts.append(
            f"Not run yet: {', '.join(f'`{name}`' for name in absent)}. "
            "The command without --tasks adds them.\n"
        )
    if found:
        parts += ["## Tasks\n", "\n\n".join(section.markdown() for section in found)]
    return "\n".join(parts).rstrip() + "\n"
