"""Draws the results of a diagnosis: ``python -m aimle.program.report.diagnose FOLDER``.

Reads diagnosis.json; writes figures as PNG and SVG, and report.html.
"""

from pathlib import Path

from aimle.diagnosis.recommendation import Row, best_steps
from aimle.program.report import Page, figures, run
from aimle.program.report.files import read_json
from aimle.program.report.page import count_of


def _label(row: Row) -> tuple[str, float | None]:
    return row["estimator"], row["lambda"] if row["fixed_lambda"] else None


def _curves(page: Page, path: Path, rows: list[Row], key: str, label: str, caption: str) -> None:
    """The cosine over ``key``, with bands of its error where that is the samples."""
    figure, axes = figures.subplots(figsize=(10.5, 5.2))
    for name in dict.fromkeys(row["estimator"] for row in rows):
        own = sorted((r for r in rows if r["estimator"] == name), key=lambda r: r["samples"])
        look = figures.line(name)
        x, cosines = [row[key] for row in own], [row["cosine"] for row in own]
        axes.plot(x, cosines, **look)
        if key == "samples":
            figures.band(axes, x, cosines, [row["cosine_se"] for row in own], look["color"])
    axes.set(xscale="log", xlabel=label, ylabel="cosine to the true gradient")
    figures.legend_beside(axes)
    page.figure(figure, path, caption)


def _lambda_figure(page: Page, folder: Path, rows: list[Row]) -> None:
    swept = [row for row in rows if row["fixed_lambda"]]
    names = list(dict.fromkeys(row["estimator"] for row in swept))
    counts = sorted({row["samples"] for row in swept})
    if len({row["lambda"] for row in swept}) < 2:
        return
    figure, grid = figures.subplots(
        1, len(counts), sharey=True, squeeze=False, figsize=(min(14, 4 * len(counts) + 2.4), 4.2)
    )
    for axes, count in zip(grid[0], counts, strict=True):
        for name in names:
            own = [r for r in swept if (r["estimator"], r["samples"]) == (name, count)]
            own.sort(key=lambda row: row["lambda"])
            axes.plot([r["lambda"] for r in own], [r["cosine"] for r in own], **figures.line(name))
        for row in rows:
            if row["samples"] == count and not row["fixed_lambda"] and row["lambda"]:
                look = figures.line(row["estimator"])
                axes.plot(
                    [row["lambda"]], [row["cosine"]], "*", markersize=14, color=look["color"],
                    markeredgecolor="white", label=look["label"], zorder=5,
                )  # fmt: skip
        axes.set(xscale="log", xlabel="λ", title=f"S = {count}")
    grid[0][0].set_ylabel("cosine to the true gradient")
    figures.legend_beside(grid[0][-1])
    page.figure(figure, folder / "lambda", "Stars: the λ at which adaptive estimators settle.")


def _fill(page: Page, folder: Path, found: Row) -> None:
    rows = found["results"]
    page.heading("Recommended")
    recommended = [
        [row["samples"], figures.name(row["estimator"], row["lambda"]), row["reason"]]
        for row in found.get("recommendations", [])
    ]
    page.table(["S", "estimator", "why"], recommended)
    best = best_steps(rows)
    page.heading("How close")
    error = f"standard error over {count_of(found['repeats'], 'estimate')}"
    bands = f"Each at its best λ; bands are one {error}."
    _curves(page, folder / "samples", best, "samples", "samples S", bands)
    _lambda_figure(page, folder, rows)
    page.heading("Cost")
    cost = "Cost of a call, forward and backward. Up and left is better."
    _curves(page, folder / "cost", best, "microseconds", "microseconds per call", cost)
    page.heading("Everything")
    for count in sorted({row["samples"] for row in rows}):
        columns = ["estimator", "cosine", "± s.e.", "norm ratio", "bias", "variance", "zeros"]
        columns.append("µs per call")
        keys = ["cosine", "cosine_se", "norm_ratio", "bias", "variance", "zeros", "microseconds"]
        if any(row.get("clipped") is not None for row in rows):
            columns.append("clipped")
            keys.append("clipped")
        page.table(
            columns,
            [
                [figures.name(*_label(row)), *(row.get(key) for key in keys)]
                for row in sorted(rows, key=lambda row: -row["cosine"])
                if row["samples"] == count
            ],
            f"S = {count}; ± is the {error}; bias and variance relative to the true gradient's "
            "norm and its square",
            best={"cosine": "max", "bias": "min", "variance": "min"},
        )


def _read(folder: Path) -> Row:
    return read_json(folder / "diagnosis.json")


def headline(folder: Path) -> tuple[str, str]:
    """The title of a folder's diagnosis, and a description of its problem."""
    found = _read(folder)
    shape = " × ".join(str(size) for size in found["shape"])
    truth = found["truth"]
    if found["truth_relative_se"]:
        truth += f", known to {100 * found['truth_relative_se']:.1f} % (standard error)"
    about = f"{found['structure']}, θ of {shape} entries; loss {found['loss']}; truth: {truth}."
    return "Which estimator?", about


def fill(page: Page, folder: Path) -> None:
    """Adds the results to a page."""
    with figures.style():
        _fill(page, folder, _read(folder))


def draw(folder: Path) -> Path:
    """Figures and report.html of a folder."""
    found = _read(folder)
    page = Page(*headline(folder))
    fill(page, folder)
    estimates = count_of(found["repeats"], "estimate")
    footer = f"aimle {found['version']}, {estimates} of each kind"
    return page.write(folder / "report.html", footer)


if __name__ == "__main__":
    run("aimle.program.report.diagnose", __doc__ or "", draw)
