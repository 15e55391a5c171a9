"""The style of figures, and one colour for each estimator in all of them."""

import colorsys
import io
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from aimle._files import write_atomically

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 10,
    "axes.edgecolor": "#8a97a5",
    "axes.labelcolor": "#1d2733",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6ebf0",
    "grid.linewidth": 0.8,
    "xtick.color": "#5b6b7b",
    "ytick.color": "#5b6b7b",
    "text.color": "#1d2733",
    "legend.frameon": False,
    "legend.fontsize": 9,
    "legend.handlelength": 3.6,  # space for a dash on either side of the marker
    "legend.markerscale": 0.8,
    "lines.linewidth": 1.8,
    "lines.markersize": 4.5,
    "figure.dpi": 100,
    "svg.fonttype": "path",
    "svg.hashsalt": "aimle",
}


class _Look(NamedTuple):
    name: str
    colour: str
    line: str
    marker: str


# Families share a hue: adaptive blue, fixed orange, thresholds green, exact purple, relaxations
# red and brown, straight-through grey.
_LOOKS = {
    "aimle": _Look("AIMLE", "#0b5fa5", "-", "o"),
    "aimle_forward": _Look("AIMLE, forward", "#5aa9e6", "-", "o"),
    "aimle_noise": _Look("AIMLE, noise-scaled", "#06355f", "--", "D"),
    "aimle_covariance": _Look("AIMLE + covariance", "#00a3a3", "--", "P"),
    "imle": _Look("IMLE, forward", "#f0a04b", "-", "s"),
    "imle_central": _Look("IMLE, central", "#d9641e", "-", "s"),
    "dbb": _Look("DBB", "#8c6d46", ":", "s"),
    "ste": _Look("STE", "#7f8b97", "-", "v"),
    "identity": _Look("Identity", "#aab4bd", "--", "v"),
    "thresholds": _Look("Thresholds", "#188a4b", "-", "^"),
    "thresholds:order=first": _Look("Thresholds, first order", "#7cc48f", "--", "^"),
    "sfe": _Look("SFE", "#7b3fa0", "-", "x"),
    "sfe:baseline=leave_one_out": _Look("SFE, leave-one-out", "#b48ad1", "--", "x"),
    "exact": _Look("Exact marginals", "#4b2e83", "--", "*"),
    "reinmax": _Look("ReinMax", "#b03a6f", "-", "*"),
    "gumbel_softmax": _Look("Gumbel-Softmax", "#c0392b", "-", "h"),
    "gumbel_rao": _Look("Gumbel-Rao", "#e67e22", "-", "h"),
    "sst": _Look("SST", "#e57373", "--", "h"),
    "softsub": _Look("SoftSub", "#a1553f", ":", "h"),
    "l2x": _Look("L2X", "#cc9b8f", ":", "h"),
    "dpo": _Look("DPO, Normal", "#b59b00", "-", "d"),
    "dpo:noise=gumbel": _Look("DPO, Gumbel", "#d8c65a", "--", "d"),
    "gradient": _Look("true gradient", "#111111", "-", ""),
}


#: The estimators of the paper.
PAPERS = ("aimle", "aimle_forward", "imle", "imle_central", "ste", "sfe")


def name(label: str, lambda_: float | None = None) -> str:
    """The name of an estimator in figures and tables."""
    base, *settings = label.split(":")
    if label in _LOOKS:
        shown = _LOOKS[label].name
    else:
        shown = ", ".join([_LOOKS[base].name if base in _LOOKS else base, *settings])
    return shown if lambda_ is None else f"{shown} λ={lambda_:g}"


def _lighter(colour: str, amount: float) -> str:
    red, green, blue = matplotlib.colors.to_rgb(colour)
    hue, light, strength = colorsys.rgb_to_hls(red, green, blue)
    return matplotlib.colors.to_hex(
        colorsys.hls_to_rgb(hue, light + (1 - light) * amount, strength)
    )


def line(label: str, lambda_: float | None = None) -> dict[str, Any]:
    """Colour, line, marker and legend of an estimator, for ``axes.plot``.

    Settings without a colour of their own get a lighter shade of their estimator's. The line style
    shows a fixed step: solid below 0.3, dash-dotted below 1, dashed from there.
    """
    style: str | tuple[float, tuple[float, float]]
    look = _LOOKS.get(label) or _LOOKS.get(label.split(":")[0], _Look(label, "#444", "-", "."))
    _, colour, style, marker = look
    if label not in _LOOKS:
        colour, style = _lighter(colour, 0.35), "-."
    if lambda_ is not None:
        style = "-" if lambda_ < 0.3 else "-." if lambda_ < 1 else (0, (4, 1.5))
    return {"color": colour, "linestyle": style, "marker": marker, "label": name(label, lambda_)}


def style() -> AbstractContextManager[None]:
    """Context manager: the style of all reports."""
    return matplotlib.rc_context(_STYLE)


def subplots(rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """``plt.subplots`` with space for labels."""
    size = (min(13.0, 4.6 * columns + 0.6), 3.6 * rows)
    return plt.subplots(rows, columns, **{"figsize": size, "layout": "constrained", **options})


def save(figure: Figure, path: Path, **options: Any) -> None:
    """Writes the figure atomically, in the format that the name ends in."""
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:], **options)
    write_atomically(path, content.getvalue())


def legend_beside(axes: Axes, **options: Any) -> None:
    """A legend to the right of the axes, where it does not hide anything."""
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), **options)


def curve(axes: Axes, x: Any, mean: Any, error: Any, look: dict[str, Any]) -> None:
    """A line with a band of one standard error; look: see ``line``."""
    axes.plot(x, mean, **look)
    band(axes, x, mean, error, look["color"])


def band(axes: Axes, x: Any, mean: Any, error: Any, colour: str) -> None:
    """A shaded band of one standard error."""
    low = [m - e for m, e in zip(mean, error, strict=True)]
    high = [m + e for m, e in zip(mean, error, strict=True)]
    axes.fill_between(x, low, high, color=colour, alpha=0.13, linewidth=0)
