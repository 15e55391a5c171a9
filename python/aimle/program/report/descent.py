"""The page of `aimle synth optimise`: how far descent with each estimator gets."""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from aimle.program.report import Page, figures
from aimle.program.report.files import number, number_or_nan, read_csv, read_json_lines
from aimle.program.report.page import error_over_seeds

Key = tuple[str, float | None, int]  # estimator, lambda, samples


@dataclass(frozen=True)
class Descent:
    """An estimator at its best learning rate."""

    key: Key
    learning_rate: float
    seeds: int
    gap: float
    gap_error: float
    average_gap: float
    average_gap_error: float
    cosine: float
    alpha: float | None
    curve: list[float]  # mean share of the remaining gap, by step

    @property
    def name(self) -> str:
        return figures.name(self.key[0], self.key[1])


def read(folder: Path) -> list[Descent]:
    """Every estimator at its best learning rate, in the order of the study."""
    curves: dict[tuple[Key, float], list[list[float]]] = defaultdict(list)
    for row in read_json_lines(folder / "results.jsonl"):
        curves[(row["estimator"], row["lambda"], row["samples"]), row["learning_rate"]].append(
            row["gaps"]
        )
    best: dict[Key, dict[str, str]] = {}
    for line in read_csv(folder / "training.csv"):
        key = (line["estimator"], number(line["lambda"]), int(line["samples"]))
        so_far = best.get(key)
        gap = float(line["average_gap_mean"])
        if so_far is None or gap < float(so_far["average_gap_mean"]):
            best[key] = line
    return [
        Descent(
            key=key,
            learning_rate=float(line["learning_rate"]),
            seeds=int(line["seeds"]),
            gap=float(line["gap_mean"]),
            gap_error=number_or_nan(line["gap_se"]),
            average_gap=float(line["average_gap_mean"]),
            average_gap_error=number_or_nan(line["average_gap_se"]),
            cosine=float(line["cosine_mean"]),
            alpha=number(line["alpha_mean"]),
            curve=[
                fmean(step) for step in zip(*curves[key, float(line["learning_rate"])], strict=True)
            ],
        )
        for key, line in best.items()
    ]


def _curves_figure(page: Page, folder: Path, descents: list[Descent]) -> None:
    papers = ("gradient", *figures.PAPERS)
    groups = {
        "The paper's estimators": [d for d in descents if d.key[0] in papers],
        "The others": [d for d in descents if d.key[0] not in papers],
    }
    shown = {title: group for title, group in groups.items() if group}
    figure, grid = figures.subplots(
        len(shown), 1, sharex=True, squeeze=False, figsize=(11, 4.4 * len(shown))
    )
    for axes, (title, group) in zip(grid[:, 0], shown.items(), strict=True):
        for descent in group:
            look = figures.line(descent.key[0], descent.key[1]) | {"marker": ""}
            axes.plot([max(gap, 1e-4) for gap in descent.curve], **look)
        axes.set(yscale="log", ylim=(8e-4, 2), title=title, ylabel="remaining share of the gap")
        figures.legend_beside(axes)
    grid[-1, 0].set_xlabel("step")
    page.figure(
        figure,
        folder / "descent",
        "Mean over the seeds of (E f − f*) / (E f at the start − f*), exact at every step; each "
        "estimator at its best learning rate.",
    )


def _bars_figure(page: Page, folder: Path, descents: list[Descent]) -> None:
    ranked = sorted(descents, key=lambda d: d.average_gap)
    figure, axes = figures.subplots(figsize=(9.5, 0.27 * len(ranked) + 1.2))
    axes.barh(
        [d.name for d in ranked],
        [d.average_gap for d in ranked],
        xerr=[d.average_gap_error for d in ranked],
        color=[figures.line(*d.key[:2])["color"] for d in ranked],
        error_kw={"ecolor": "#5b6b7b", "elinewidth": 1},
    )
    axes.margins(y=0.01)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set(xlabel="average share of the gap over the descent (lower is better)")
    error = error_over_seeds("; bars are one ", [d.seeds for d in descents])
    page.figure(figure, folder / "ranking", f"Speed of each estimator{error}.")


def fill(page: Page, folder: Path) -> None:
    """Adds figures and tables of the folder to the page."""
    descents = read(folder)
    for samples in dict.fromkeys(d.key[2] for d in descents if d.key[0] != "gradient"):
        group = [d for d in descents if d.key[2] == samples or d.key[0] == "gradient"]
        place = folder / f"S{samples}"
        page.heading(f"S = {samples}")
        _curves_figure(page, place, group)
        _bars_figure(page, place, group)
        gaps = ["average gap", "± s.e.", "gap at the end", "± s.e. "]
        error = error_over_seeds("; ± is the ", [d.seeds for d in group])
        rows: list[list[object]] = []
        for d in sorted(group, key=lambda d: d.average_gap):
            measured = [d.average_gap, d.average_gap_error, d.gap, d.gap_error]
            rows.append([d.name, f"{d.learning_rate:g}", *measured, d.cosine, d.alpha])
        page.table(
            ["estimator", "learning rate", *gaps, "cosine", "α"],
            rows,
            "At the best learning rate; cosines are means over the descent, weighted by the "
            f"norm of the true gradient{error}.",
            best={"average gap": "min", "gap at the end": "min"},
        )
