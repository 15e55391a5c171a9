"""`aimle benchmark advice`: compares what `aimle.diagnose` recommends with what trains best.

Each task's model is trained for a short time with the default and diagnosed. The recommendation is
compared with the results of training.csv and small.csv: its rank is one more than the number of
methods that are better by more than one standard error of the difference. OUTPUT/advice.csv has a
row for each diagnosis; one that has a row is not repeated. OUTPUT/advice.md is generated from the
rows.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import torch

import aimle
from aimle.diagnosis.contestants import YOURS
from aimle.diagnosis.measure import SaturatedError
from aimle.program.benchmark import held_out_tasks, small_tasks
from aimle.program.benchmark.methods import SINGLE
from aimle.program.benchmark.results import Row, RowFile
from aimle.program.benchmark.table import Mean, Section, compare, markdown_table, sections
from aimle.program.benchmark.task import Task
from aimle.program.benchmark.tasks import TASKS

#: The tasks whose results were used to write the rule (aimle.diagnosis.recommendation).
USED = (*TASKS, *small_tasks.TASKS, *held_out_tasks.FIRST)
SMALL_TASKS: dict[str, Task] = {**small_tasks.TASKS, **held_out_tasks.TASKS}
ALL_TASKS: dict[str, Task] = {**TASKS, **SMALL_TASKS}
LONG_STEP = "imle, long step"  # recommended for linear losses
BEST = 2  # a recommendation is right if it is among this many

# Black-box solvers are slow: a shorter run finds the true gradient.
_TRUTH_SAMPLES, _WARMUP = 4000, 100
_ESTIMATOR_OF = {name: method.estimator for name, method in SINGLE.items()}
_OTHERS = ("default", "paper")  # the first is the given layer, the second is not diagnosed
_WITHOUT_LIMIT = ("identity",)


@dataclass(frozen=True)
class Advice:
    """The outcome of one diagnosis: names of methods.

    highest_cosine: what would be recommended by the cosine alone, except `identity`; empty if the
        true gradient is zero.
    """

    task: str
    seed: int
    recommended: str
    highest_cosine: str
    commit: str

    @property
    def key(self) -> tuple[str, int]:
        """What identifies the diagnosis."""
        return self.task, self.seed


def methods_of(task: Task, rows: Iterable[Row]) -> list[str]:
    """The methods with results of this task that `diagnose` knows, besides the default."""
    trained = {row.method for row in rows if row.task == task.name}
    return [
        name
        for name in task.methods
        if name in trained and name not in _OTHERS and not name.startswith("pyepo")
    ]


def diagnose(task: Task, methods: Iterable[str], seed: int, commit: str) -> Advice:
    """Diagnoses the task's model with these methods and the default."""
    probe = task.probe(seed)
    estimators = [_ESTIMATOR_OF.get(name, name) for name in methods]
    torch.manual_seed(seed)
    try:
        found = aimle.diagnose(
            probe.layer,
            probe.theta,
            probe.loss,
            nb_samples=task.samples,
            estimators=estimators,
            truth_samples=_TRUTH_SAMPLES,
            warmup=_WARMUP,
        )
    except SaturatedError:  # the message recommends a long step, and there are no cosines
        return Advice(task.name, seed, LONG_STEP, "", commit)
    (advice,) = found.recommendations
    name = _method(advice["estimator"])
    name = LONG_STEP if advice["fixed_lambda"] else name
    rows = [row for row in found.rows if row["estimator"] not in _WITHOUT_LIMIT]
    highest = max(rows, key=lambda row: row["cosine"])["estimator"]
    return Advice(task.name, seed, name, _method(highest), commit)


def _method(estimator: str) -> str:
    if estimator == YOURS:
        return "default"
    return next((name for name, known in _ESTIMATOR_OF.items() if known == estimator), estimator)


class AdviceFile(RowFile[Advice]):
    """advice.csv."""

    kind = Advice


class Ranking:
    """The methods of a task by their results, each at its best setting."""

    def __init__(self, section: Section) -> None:
        self.task = section.task
        self.means: dict[str, Mean] = {}
        for name in dict.fromkeys(key[0] for key in section.means):
            key = section.best(name)
            if key is not None and not name.startswith("pyepo"):
                self.means[name] = section.means[key]
        key = ("imle", f"lambda={self.task.lambdas[-1]}")
        self.long_step = section.means.get(key)
        sign = -1 if self.task.higher_is_better else 1
        self.order = sorted(self.means, key=lambda name: sign * self.means[name].value)

    def result(self, name: str) -> Mean:
        """A long step is the longest of the grid, not the best."""
        if name == LONG_STEP and self.long_step is not None:
            return self.long_step
        return self.means[name]

    def rank(self, name: str) -> int:
        """One more than the number of methods that are better by more than a standard error."""
        result, up = self.result(name), self.task.higher_is_better
        gaps = [compare(result, self.means[other], up) for other in self._others(name)]
        return 1 + sum(each.gap > each.error for each in gaps)

    def rank_of_mean(self, name: str) -> int:
        """One more than the number of methods whose mean is better."""
        sign = -1 if self.task.higher_is_better else 1
        value = sign * self.result(name).value
        return 1 + sum(sign * self.means[other].value < value for other in self._others(name))

    def _others(self, name: str) -> set[str]:
        return self.means.keys() - {"imle" if name == LONG_STEP else name}


_HEAD = """# Recommendations compared with training

This page is generated from [advice.csv](advice.csv), [training.csv](training.csv) and
[small.csv](small.csv); do not edit it. The commands, both resumable:

    aimle benchmark training --suite small --seeds 0-9      # trains the small tasks
    aimle benchmark advice                                  # diagnoses every task

Each task's model is trained for a short time with the default. `aimle.diagnose` then recommends one
of the methods that the task's table has. *rank*: one more than the number of methods that are
better by more than one standard error of the difference; IMLE counts with its best λ. The
recommendation is right if its rank is at most {best}, for most of the seeds of the diagnosis.
*By cosine* is the rank of the method with the highest cosine, as most of the seeds find it.

The rule is that of `python/aimle/diagnosis/recommendation.py`: for losses that are linear in z IMLE
with a step a thousand times as long as θ; for one of n the highest cosine of `gumbel_rao`,
`reinmax` and `thresholds`; for saturated layers, whose noise changes less than a tenth of the
chosen entries, IMLE with a long step again; for at most three samples `exact`, if the structure has
an exact distribution; otherwise AIMLE. A long step counts with the result of the longest λ of the
task's grid, not with the best. The groups of tasks:

* *used*: the rule was written with their results.
* *held out*: they were defined before any of them was trained, and trained and diagnosed after the
  rule was last changed.

If the noise of a saturated layer changes no solution, the true gradient is zero and `diagnose`
raises an error that recommends a long step. This counts as a recommendation, and no method has the
highest cosine.

The small tasks are in `python/aimle/program/benchmark/small_tasks.py` and `held_out_tasks.py`, and
have three to ten seeds; those that are held out have ten. The experiments of `aimle train` are
diagnosed as small restatements in Python (`python/aimle/program/benchmark/restated.py`); one of
reviews stands for both tasks of learning to explain. That of the discrete VAE is trained for 600
steps first: after 100, the first choice, its scores were close to zero, and one recommendation
contradicted the results of the real model.

Three earlier rules were given up. The highest cosine of AIMLE, `aimle_noise`, `thresholds` and
`reinmax`, except for costs, was right on 12 of 21 tasks that it had not seen. AIMLE for everything
but one of n missed the best two on many problems with linear losses, on which IMLE is best for
every step that is long enough. The rule without saturated layers was right on 22 of 30 tasks that
it had not seen, those of the first set of `held_out_tasks.py`. Six of the eight others were codes
of images, on two of which the diagnosis failed; on five, IMLE with a long step is by far the best.
The first set is now *used*; the second and the third are held out.
"""


def _ranked(ranking: Ranking, votes: Iterable[str]) -> tuple[str, int]:
    """The most frequent vote, the first of equals, and its rank."""
    name = Counter(votes).most_common(1)[0][0]
    return name, ranking.rank(name)


def page(rows: Iterable[Row], advice: Iterable[Advice]) -> str:
    """The whole page."""
    given = list(advice)
    lines, leaders = [], []
    right: Counter[str] = Counter()
    by_cosine: Counter[str] = Counter()
    by_mean: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for section in sections(rows, ALL_TASKS):
        own = [each for each in given if each.task == section.task.name]
        if not own:
            continue
        ranking = Ranking(section)
        name, rank = _ranked(ranking, [each.recommended for each in own])
        cosines = [each.highest_cosine for each in own if each.highest_cosine]
        other, other_rank = _ranked(ranking, cosines) if cosines else ("", BEST + 1)
        group = "used" if section.task.name in USED else "held out"
        total[group] += 1
        right[group] += rank <= BEST
        by_mean[group] += ranking.rank_of_mean(name) <= BEST
        by_cosine[group] += other_rank <= BEST
        chosen = f"{name} {ranking.result(name)}"
        shown = str(rank) if rank <= BEST else f"**{rank}**"
        by = f"{other}: {other_rank}" if cosines else "–"
        lines.append([section.task.title, group, chosen, shown, by])
        best = [f"{each} {ranking.means[each]}" for each in ranking.order[:2]]
        leaders.append([section.task.title, *best])
    counts = [
        [group, f"{right[group]} of {total[group]}", f"{by_cosine[group]} of {total[group]}"]
        for group in ("used", "held out")
    ]
    all_right, all_cosine, everything = (sum(c.values()) for c in (right, by_cosine, total))
    share = f" ({100 * all_right / everything:.0f} %)" if everything else ""
    counts.append(["all", f"{all_right} of {everything}{share}", f"{all_cosine} of {everything}"])
    text = [
        _HEAD.format(best=BEST),
        "## Summary\n",
        f"Within the best {BEST} methods:\n",
        *markdown_table("tasks|the recommendation|the highest cosine", counts),
        "",
        "Without the tolerance of one standard error, so that the mean alone decides, it is "
        f"within\nthe best {BEST} on {by_mean['used']} of {total['used']} used tasks, and on "
        f"{by_mean['held out']} of {total['held out']} that were held out.\n",
        "## Tasks\n",
        *markdown_table("task||recommended|rank|by cosine", lines),
        "",
        "## Best methods\n",
        *markdown_table("task|best|second", leaders),
    ]
    return "\n".join(text) + "\n"
