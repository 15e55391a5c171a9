"""Single examples of a run (exhibits.json): trees behind trajectories, words that explain."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from aimle.program.report.files import read_json
from aimle.program.report.page import Page

_RIGHT, _WRONG, _MISSED = "#188a4b", "#d9641e", "#7f8b97"


def _tree(axes: Any, graph: dict[str, Any]) -> None:
    last = [path[-1] for path in graph["path"]]
    true = {tuple(pair) for pair in graph["true_tree"]}
    told = {tuple(pair) for pair in graph["tree"]}
    for i, j in sorted(true | told):
        right = (i, j) in true
        style = "-" if (i, j) in told else ":"
        colour = _RIGHT if right and (i, j) in told else _WRONG if not right else _MISSED
        axes.plot(*zip(last[i], last[j], strict=True), color=colour, linestyle=style, linewidth=2)
    axes.scatter(*zip(*last, strict=True), color="#1d2733", s=22, zorder=3)
    axes.set_title(f"{len(true & told)} of {len(true)} links", fontsize=10)


def _paths(axes: Any, graph: dict[str, Any]) -> None:
    for number, (path, predicted) in enumerate(zip(graph["path"], graph["predicted"], strict=True)):
        colour = f"C{number % 10}"
        axes.plot(*zip(*path, strict=True), color=colour, linewidth=1.4)
        axes.plot(
            *zip(path[0], *predicted, strict=True), color=colour, linestyle=":", linewidth=1.8
        )
        axes.scatter(*path[-1], color=colour, s=16, zorder=3)


def draw_graphs(page: Page, graphs: list[dict[str, Any]], label: str) -> None:
    """True and predicted trees above true and predicted paths."""
    from aimle.program.report import figures

    with figures.style():
        size = (2.2 * len(graphs), 4.6)
        figure, grid = figures.subplots(2, len(graphs), squeeze=False, figsize=size)
        for column, graph in enumerate(graphs):
            _tree(grid[0][column], graph)
            _paths(grid[1][column], graph)
        for axes in grid.flat:
            axes.set(xticks=[], yticks=[], aspect="equal", xlim=(-1.15, 1.15), ylim=(-1.15, 1.15))
        page.figure(
            figure,
            None,
            f"Test graphs, {label}. Top: links found correctly (green), wrongly (orange) and "
            "missed (dotted). Bottom: true paths, and those predicted from the first frame "
            "(dotted).",
        )


def show_reviews(page: Page, reviews: list[dict[str, Any]], label: str) -> None:
    """Reviews with the chosen words highlighted and the annotated ones underlined."""
    with page.folded(f"Annotated reviews, {label}"):
        for review in reviews:
            chosen, annotated = set(review["chosen"]), set(review["annotated"])
            page.words(
                [(w, i in chosen, i in annotated) for i, w in enumerate(review["words"])],
                f"Rating {review['rating']:.2f}, predicted {review['predicted']:.2f}; "
                f"{len(chosen & annotated)} of {len(chosen)} chosen words are annotated.",
            )


_DRAW: dict[str, Callable[[Page, list[dict[str, Any]], str], None]] = {
    "nri": draw_graphs,
    "l2x": show_reviews,
}


def draw_exhibits(page: Page, experiment: str, folder: Path, label: str) -> None:
    """Adds the examples of the run in this folder, if there are any."""
    file = folder / "exhibits.json"
    if experiment in _DRAW and file.is_file():
        _DRAW[experiment](page, read_json(file), label)
