"""Draws the results of `aimle synth`: ``python -m aimle.program.report.synth FOLDER``.

Reads results.jsonl, summary.csv and study.json; writes figures as PNG and SVG, and report.html.
"""

from collections.abc import Callable, Iterable
from math import isnan
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from aimle.program.report import Page, descent, figures, run
from aimle.program.report.files import read_json
from aimle.program.report.gradient_study import Cell, Key, Study, deviation
from aimle.program.report.page import count_of, error_over_seeds

_SAMPLES_LABEL = "samples S"
_COSINE_LABEL = "cosine to the true gradient"


def _error(before: str, cells: Iterable[Cell]) -> str:
    return error_over_seeds(before, [cell.seeds for cell in cells])


# ---- samples -----------------------------------------------------------------------------------


def _curves(axes: Axes, study: Study, keys: list[Key], n: int) -> None:
    for key in keys:
        cells = study.curve(key, n)
        x, mean = [cell.samples for cell in cells], [cell.cosine for cell in cells]
        errors = [cell.cosine_error for cell in cells]
        figures.curve(axes, x, mean, errors, figures.line(*key))
    axes.set(xscale="log", title=f"n = {n}", xlabel=_SAMPLES_LABEL, ylim=(-0.1, 1.03))


def _samples_figure(page: Page, study: Study) -> None:
    papers = [key for key in study.keys if key[0] in figures.PAPERS]
    others = [key for key in study.keys if key[0] not in figures.PAPERS]
    groups = [keys for keys in (papers, others) if keys]
    sizes = study.sizes
    size = (min(14.5, 3.0 * len(sizes) + 3.2), 4.3 * len(groups))
    figure, grid = figures.subplots(
        len(groups), len(sizes), sharey=True, squeeze=False, figsize=size
    )
    for row, keys in zip(grid, groups, strict=True):
        for axes, n in zip(row, sizes, strict=True):
            _curves(axes, study, keys, n)
        row[0].set_ylabel(_COSINE_LABEL)
        figures.legend_beside(row[-1])
    page.figure(
        figure,
        study.folder / "samples",
        f"Mean cosine over the seeds{_error('; bands are one ', study.cells)}. "
        + ("Top: the paper's estimators; bottom: the others. " if len(groups) == 2 else "")
        + "Dashed lines of IMLE and DBB are λ ≥ 1.",
    )


def _split_errors(study: Study, n: int) -> list[tuple[str, float, float, float, float, Key]]:
    """Bias and standard deviation of each estimator, from its squared error as a function of S."""
    rows = []
    for key in study.keys:
        cells = study.curve(key, n)
        if len(cells) < 2:
            continue
        least, most = cells[0], cells[-1]
        # E||g - true||^2 = bias^2 + variance / S at both ends of the curve.
        shares = 1 / least.samples - 1 / most.samples
        variance = (least.squared_error - most.squared_error) / shares
        bias = max(0.0, most.squared_error - max(0.0, variance) / most.samples)
        spread = max(0.0, variance) ** 0.5
        rows.append((figures.name(*key), most.cosine, bias**0.5, spread, least.zeros, key))
    return rows


def _bias_figure(page: Page, study: Study, n: int) -> None:
    rows = _split_errors(study, n)
    if not rows:
        return
    figure, axes = figures.subplots(figsize=(10.5, 5.2))
    for _, _, bias, spread, _, key in rows:
        look = figures.line(*key) | {"linestyle": ""}
        hollow = key[1] is not None and key[1] >= 1
        fill = "none" if hollow else "full"
        axes.plot([max(bias, 3e-3)], [max(spread, 3e-2)], **look, markersize=9, fillstyle=fill)
    axes.set(xscale="log", yscale="log", title=f"Bias and noise, n = {n}")
    axes.set_xlabel("bias ‖E g − true‖ / ‖true‖")
    axes.set_ylabel("standard deviation of one sample / ‖true‖")
    figures.legend_beside(axes)
    page.figure(
        figure,
        study.folder / "bias_and_noise",
        "Lower left is better. A biased estimator keeps its error for any number of samples; the "
        "error of a noisy one decreases as 1/√S. An estimator may point in the right direction and "
        "still be far from the true gradient because of its length.",
    )
    page.table(
        ["estimator", "cosine at most samples", "bias", "st. dev., S = 1", "zeros at fewest"],
        [row[:-1] for row in rows],
        f"n = {n}: relative to the norm of the true gradient",
        best={"cosine at most samples": "max", "bias": "min", "st. dev., S = 1": "min"},
    )


def _cosine_table(page: Page, study: Study, n: int) -> None:
    counts = sorted({cell.samples for cell in study.cells})
    rows: list[list[object]] = []
    for key in study.keys:
        by_count = {cell.samples: cell for cell in study.curve(key, n)}
        found = [by_count[count].cosine if count in by_count else None for count in counts]
        alpha = next((cell.alpha for cell in by_count.values()), None)
        rows.append([figures.name(*key), *found, alpha])
    columns = ["estimator", *(f"S = {count:,}".replace(",", " ") for count in counts), "α"]
    page.table(columns, rows, f"Mean cosine, n = {n}", best=dict.fromkeys(columns[1:-1], "max"))


def _expected_table(page: Page, study: Study, cells: list[Cell]) -> None:
    rows: list[list[object]] = []
    far = 0
    for cell in cells:
        expected = study.expected_cosine(cell)
        if expected is not None:
            difference = round(deviation(cell, expected), 1)
            far += abs(difference) > 3
            ours = (cell.name, cell.n, cell.samples, cell.cosine, cell.cosine_error)
            rows.append([*ours, expected, None if isnan(difference) else f"{difference:+.1f}"])
    page.heading("Comparison with the expected numbers")
    if not rows:
        page.paragraph(
            "None of the expected numbers was measured with these settings (k = 1, |b|, n of 10, "
            "20, 30, 50; a warm-up of 100 steps or converged)."
        )
        return
    found = (
        f"{far} of them more than three standard errors away. The expected number is assumed to "
        "have the same error as ours."
        if _error("", cells)
        else "of one seed, without a standard error."
    )
    page.paragraph(f"{count_of(len(rows), 'number')}, {found} {study.expected['source']}")
    with page.folded(count_of(len(rows), "expected number")):
        page.table(
            ["estimator", "n", "S", "cosine", "± s.e.", "expected", "difference / s.e."],
            rows,
            note=f"Other random numbers: ours from {count_of(study.settings['seeds'], 'seed')}, "
            "the expected ones from the simulation named above.",
        )


def fill_samples(page: Page, folder: Path) -> None:
    """Adds the figures and tables of `aimle synth samples` to a page."""
    study = Study(folder)
    page.heading("Accuracy by number of samples")
    _samples_figure(page, study)
    for n in study.sizes:
        _cosine_table(page, study, n)
    page.heading("Bias and noise")
    _bias_figure(page, study, max(study.sizes))
    _expected_table(page, study, study.cells)


# ---- lambda and sparsity -----------------------------------------------------------------------


def _sweep(study: Study, estimator: str, n: int, samples: int) -> list[Cell]:
    found = [
        cell
        for cell in study.cells
        if (cell.estimator, cell.n, cell.samples) == (estimator, n, samples)
        and cell.fixed_lambda is not None
    ]
    return sorted(found, key=lambda cell: cell.fixed_lambda or 0.0)


def _swept(study: Study) -> list[str]:
    return list(dict.fromkeys(c.estimator for c in study.cells if c.fixed_lambda is not None))


def _single(study: Study, n: int, samples: int | None = None) -> list[Cell]:
    """Cells of estimators without a fixed step."""
    return [
        cell
        for cell in study.cells
        if cell.n == n and cell.fixed_lambda is None and samples in (None, cell.samples)
    ]


def _mark(axes: Axes, cell: Cell, value: float) -> None:
    """An estimator without a fixed step: a star at the step it chose, or a horizontal line."""
    look = figures.line(*cell.key)
    label = f"{cell.name}, S = {cell.samples}"
    if cell.step is not None and cell.step > 0:
        axes.plot(
            [cell.step], [value], "*", color=look["color"], markersize=15, label=label,
            markeredgecolor="white", zorder=5,
        )  # fmt: skip
        axes.axvline(cell.step, color=look["color"], linewidth=0.8, alpha=0.35)
    else:
        axes.axhline(value, color=look["color"], linestyle=":", linewidth=1.6, label=label)


def _lambda_figure(page: Page, study: Study, n: int) -> None:
    most = max(c.samples for c in study.cells if c.fixed_lambda is not None)
    least = min(c.samples for c in study.cells if c.fixed_lambda is not None)
    figure, (left, right) = figures.subplots(1, 2, figsize=(14, 4.8))
    for estimator in _swept(study):
        cells = _sweep(study, estimator, n, most)
        look = figures.line(estimator)
        x, mean = [cell.fixed_lambda for cell in cells], [cell.cosine for cell in cells]
        errors = [cell.cosine_error for cell in cells]
        figures.curve(left, x, mean, errors, look | {"label": f"{look['label']}, S = {most}"})
        expected = [(c.fixed_lambda, study.expected_cosine(c)) for c in cells]
        known = [(step, cosine) for step, cosine in expected if cosine is not None]
        if known:
            left.plot(
                *zip(*known, strict=True), "o", fillstyle="none", markersize=9,
                color=look["color"], alpha=0.7, linestyle="",
            )  # fmt: skip
        for samples, style in {most: "-", least: (0, (4, 1.5))}.items():
            cells = _sweep(study, estimator, n, samples)
            right.plot(
                [cell.fixed_lambda for cell in cells],
                [cell.zeros for cell in cells],
                **look | {"linestyle": style, "label": f"{look['label']}, S = {samples}"},
            )
    for cell in _single(study, n):
        if cell.samples >= most:
            _mark(left, cell, cell.cosine)
        if cell.step is not None and cell.samples in (least, most):
            _mark(right, cell, cell.zeros)
    left.set(xscale="log", xlabel="λ", ylabel=_COSINE_LABEL, ylim=(0, 1.03), title=f"n = {n}")
    right.set(xscale="log", xlabel="λ", ylabel="share of zeros in the gradient", ylim=(-0.03, 1.03))
    right.set_title("Sparsity")
    left.legend(loc="lower left", fontsize=8)
    figures.legend_beside(right, fontsize=8)
    page.figure(
        figure,
        study.folder / f"lambda_n{n}",
        "Stars: the λ at which AIMLE settles, and its result. Hollow circles: expected "
        "numbers. Dotted: estimators without λ, at their own number of samples"
        f"{_error('; bands: one ', study.cells)}.",
    )


def _sweep_table(page: Page, study: Study, n: int) -> None:
    cells = [cell for cell in study.cells if cell.n == n]
    rows = [[c.name, c.samples, c.step, c.cosine, c.cosine_error, c.zeros, c.alpha] for c in cells]
    columns = ["estimator", "S", "λ", "cosine", "± s.e.", "zeros", "α"]
    caption = f"n = {n}; λ and α of adaptive estimators are means{_error('; ± is the ', cells)}"
    page.table(columns, rows, caption, {"cosine": "max"})


def _lambda_page(page: Page, folder: Path) -> None:
    study = Study(folder)
    page.heading("Accuracy and sparsity by λ")
    for n in study.sizes:
        if _swept(study):
            _lambda_figure(page, study, n)
        _sweep_table(page, study, n)
    _expected_table(page, study, study.cells)


def _sparsity_figure(page: Page, study: Study, n: int) -> None:
    swept = _swept(study)
    counts = sorted({cell.samples for cell in study.cells})
    figure, grid = figures.subplots(
        1, len(swept) + 1, sharey=True, squeeze=False, figsize=(4.4 * (len(swept) + 1) + 1.8, 4.4)
    )
    for axes, estimator in zip(grid[0], swept, strict=False):
        for shade, samples in enumerate(counts):
            cells = _sweep(study, estimator, n, samples)
            axes.plot(
                [cell.fixed_lambda for cell in cells],
                [cell.zeros for cell in cells],
                color=figures.line(estimator)["color"],
                alpha=0.3 + 0.7 * (shade + 1) / len(counts),
                marker="os^Dv<>"[shade % 7],
                label=f"S = {samples}",
            )
        axes.set(xscale="log", xlabel="λ", title=f"{figures.name(estimator)}, n = {n}")
        axes.legend()
    last = grid[0][-1]
    for key in dict.fromkeys(cell.key for cell in _single(study, n)):
        cells = study.curve(key, n)
        last.plot([c.samples for c in cells], [c.zeros for c in cells], **figures.line(*key))
    last.set(xscale="log", xlabel=_SAMPLES_LABEL, title="Without a fixed λ")
    grid[0][0].set(ylabel="share of zeros in the gradient", ylim=(-0.03, 1.03))
    figures.legend_beside(last)
    page.figure(
        figure,
        study.folder / f"sparsity_n{n}",
        "A component below 1e-8 counts as zero, as in the authors' code. One sample of a "
        "difference can change no more than two entries of one-of-n: the other "
        f"1 − 2/{n} = {1 - 2 / n:.2f} are zero.",
    )


def _sparsity_page(page: Page, folder: Path) -> None:
    study = Study(folder)
    page.heading("Zeros in the gradient")
    for n in study.sizes:
        _sparsity_figure(page, study, n)
        _sweep_table(page, study, n)


def _optimise_page(page: Page, folder: Path) -> None:
    page.paragraph(
        "Gradient descent with momentum on θ itself, along each estimator's gradient. Adaptive "
        "estimators start without a warm-up, as they would in training."
    )
    descent.fill(page, folder)


# ---- the page ----------------------------------------------------------------------------------

_STUDIES: dict[str, tuple[str, Callable[[Page, Path], None]]] = {
    "samples": ("How close are the gradients?", fill_samples),
    "lambda": ("Which step size?", _lambda_page),
    "sparsity": ("How sparse are the gradients?", _sparsity_page),
    "optimise": ("Do better gradients train better?", _optimise_page),
}


def _subtitle(about: dict[str, Any]) -> str:
    settings = about["settings"]
    target = "b ~ N(0, I)" if settings["signed"] else "b = |N(0, I)|, as in the authors' code"
    sizes = ", ".join(str(n) for n in settings["n"])
    text = f"θ ~ N(0, I), {target}; f(z) = ‖z − b‖², {settings['k']} of n = {sizes}"
    text += f"; {count_of(settings['seeds'], 'seed')}"
    if about["study"] == "optimise":
        return text + f"; {count_of(settings['steps'], 'step')}, momentum {settings['momentum']:g}."
    return text + f"; adaptive estimators warmed up for {count_of(settings['warmup'], 'step')}."


def headline(folder: Path) -> tuple[str, str]:
    """The title of a folder's study, and a description of its settings."""
    about = read_json(folder / "study.json")
    return _STUDIES[about["study"]][0], _subtitle(about)


def fill(page: Page, folder: Path) -> None:
    """Adds the figures and tables of a folder to a page."""
    about = read_json(folder / "study.json")
    page.paragraph(
        "Each estimator gives the gradient of E f(z) with respect to θ; the true one is known in "
        "closed form. Their cosine is 1 if the estimate has the right direction. Every "
        "sample has its own gradient 2(z − b), as with a loss summed over samples, to which a "
        "fixed λ refers."
    )
    if not about["complete"]:
        page.paragraph("**The study was stopped before it finished: some seeds are missing.**")
    with figures.style():
        _STUDIES[about["study"]][1](page, folder)
    page.settings(about["settings"], "Settings of the study")


def draw(folder: Path) -> Path:
    """Figures and report.html of a folder."""
    about = read_json(folder / "study.json")
    page = Page(*headline(folder))
    fill(page, folder)
    footer = f"aimle {about['version']}, computed in {about['seconds']:.0f} s."
    return page.write(folder / "report.html", footer)


if __name__ == "__main__":
    run("aimle.program.report.synth", __doc__ or "", draw)
