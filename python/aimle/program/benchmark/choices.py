"""The table of the page "What the choice of an estimator gains" (docs/results/choices.md).

    python -m aimle.program.benchmark.choices    # rewrites the table of the page from training.csv

A test compares the page with the rows. Gains are relative to the other method's value, with the
standard error of the difference.
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from aimle._files import write_atomically
from aimle.program.benchmark.results import Results, Row
from aimle.program.benchmark.table import Section, compare, markdown_table, sections
from aimle.program.benchmark.tasks import TASKS
from aimle.program.launch import exit_with

PAGE, ROWS = Path("docs/results/choices.md"), Path("docs/results/training.csv")
_BEGIN, _END = "<!-- choices: generated -->\n", "<!-- choices: end -->\n"

_NAMES = {"default": "aimle", "noise": "aimle_noise"}


class Choice(NamedTuple):
    """A structure and a number of samples, and the method to take on the task that has them."""

    structure: str
    take: str  # a method of the benchmark
    task: str
    setting: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.take, self.setting

    def __str__(self) -> str:
        name = f"`{_NAMES.get(self.take, self.take)}`"
        return f"{name}, {self.setting.replace('lambda=10000', 'λ=10⁴')}" if self.setting else name


CHOICES = (
    Choice("one of n", "gumbel_rao", "dvae-k1-s1"),
    Choice("one of n", "gumbel_softmax", "dvae-k1-s1"),
    Choice("one of n", "thresholds", "dvae-k1-s10"),
    Choice("k of n", "default", "dvae-k10-s1"),
    Choice("k of n", "noise", "dvae-k10-s10"),
    Choice("k of n", "noise", "digits"),
    Choice("k of n", "default", "l2x-films"),
    Choice("trees", "default", "nri-t10"),
    Choice("paths over cells", "default", "warcraft-12"),
    Choice("paths over cells", "default", "warcraft-30"),
    Choice("paths, any solver", "default", "shortest-path-l1"),
    Choice("paths, linear", "imle", "shortest-path-regret", "lambda=10000"),
    Choice("packing, any solver", "default", "knapsack-l1"),
    Choice("packing, linear", "imle", "knapsack-regret", "lambda=10000"),
)


def _gain(section: Section, take: tuple[str, str], other: tuple[str, str] | None) -> str:
    """By how much `take` is better than the other, in per cent of the other's value."""
    if other is None or other not in section.means or other == take:
        return "–"
    value = section.means[other]
    found = compare(section.means[take], value, section.task.higher_is_better)
    if not math.isfinite(found.share):
        return "–"
    return f"{-100 * found.share:+.1f} ± {100 * found.error / abs(value.value):.1f}"


def table(rows: Iterable[Row]) -> str:
    """The table; choices whose task or method has no rows are left out."""
    lines = []
    of_task = {section.task.name: section for section in sections(rows, TASKS)}
    for choice in CHOICES:
        section = of_task.get(choice.task)
        if section is None or choice.key not in section.means:
            continue
        arrow = "↑" if section.task.higher_is_better else "↓"
        best = section.best("imle", "imle_central")
        others = (("default", ""), ("paper", ""), best)
        gains = [_gain(section, choice.key, other) for other in others]
        result = f"{section.means[choice.key]} {arrow}"
        samples = str(section.task.samples)
        lines.append([choice.structure, samples, str(choice), f"`{choice.task}`", result, *gains])
    heads = "choice|S|take|task|result|% over the default|% over the paper's rule|% over the best λ"
    return "\n".join(markdown_table(heads, lines)) + "\n"


def split(page: str) -> tuple[str, str, str]:
    """The page before, in and after its generated part; raises ValueError without such a part."""
    before, begin, rest = page.partition(_BEGIN)
    inside, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"expected the lines {_BEGIN.strip()} and {_END.strip()} in the page")
    return before + begin, inside, end + after


def main() -> int:
    before, _, after = split(PAGE.read_text(encoding="utf-8"))
    write_atomically(PAGE, f"{before}\n{table(Results(ROWS).read())}\n{after}".encode())
    print(PAGE)
    return 0


if __name__ == "__main__":
    exit_with(main)
