"""The style of figures, and one colour for each estimator in all of them."""

from __future__ import annotations

import colorsys
from contextlib import AbstractContextManager
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

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

# Families share a hue: adaptive blue, fixed orange, thresholds green, exact purple, relaxations
# red and brown, straight-through grey.
_LOOKS: dict[str, tuple[str, str, str]] = {
    "aimle": ("#0b5fa5", "-", "o"),
    "aimle_forward": ("#5aa9e6", "-", "o"),
    "aimle_noise": ("#06355f", "--", "D"),
    "aimle_covariance": ("#00a3a3", "--", "P"),
    "imle": ("#f0a04b", "-", "s"),
    "imle_central": ("#d9641e", "-", "s"),
    "dbb": ("#8c6d46", ":", "s"),
    "ste": ("#7f8b97", "-", "v"),
    "identity": ("#aab4bd", "--", "v"),
    "thresholds": ("#188a4b", "-", "^"),
    "thresholds:order=first": ("#7cc48f", "--", "^"),
    "sfe": ("#7b3fa0", "-", "x"),
    "sfe:baseline=leave_one_out": ("#b48ad1", "--", "x"),
    "exact": ("#4b2e83", "--", "*"),
    "reinmax": ("#b03a6f", "-", "*"),
    "gumbel_softmax": ("#c0392b", "-", "h"),
    "gumbel_rao": ("#e67e22", "-", "h"),
    "sst": ("#e57373", "--", "h"),
    "softsub": ("#a1553f", ":", "h"),
    "l2x": ("#cc9b8f", ":", "h"),
    "dpo": ("#b59b00", "-", "d"),
    "dpo:noise=gumbel": ("#d8c65a", "--", "d"),
    "gradient": ("#111111", "-", ""),
}

_NAMES = {
    "aimle": "AIMLE",
    "aimle_forward": "AIMLE, forward",
    "aimle_noise": "AIMLE, noise-scaled",
    "aimle_covariance": "AIMLE + covariance",
    "imle": "IMLE, forward",
    "imle_central": "IMLE, central",
    "dbb": "DBB",
    "ste": "STE",
    "identity": "Identity",
    "thresholds": "Thresholds",
    "thresholds:order=first": "Thresholds, first order",
    "sfe": "SFE",
    "sfe:baseline=leave_one_out": "SFE, leave-one-out",
    "exact": "Exact marginals",
    "reinmax": "ReinMax",
    "gumbel_softmax": "Gumbel-Softmax",
    "gumbel_rao": "Gumbel-Rao",
    "sst": "SST",
    "softsub": "SoftSub",
    "l2x": "L2X",
    "dpo": "DPO, Normal",
    "dpo:noise=gumbel": "DPO, Gumbel",
    "gradient": "true gradient",
}


def name(label: str, lambda_: float | None = None) -> str:
    """The name of an estimator in figures and tables."""
    shown = _NAMES.get(label)
    if shown is None:
        base, *settings = label.split(":")
        shown = ", ".join([_NAMES.get(base, base), *settings])
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
    known = label in _LOOKS
    style: str | tuple[float, tuple[float, float]]
    colour, style, marker = _LOOKS.get(label) or _LOOKS.get(label.split(":")[0], ("#444", "-", "."))
    if not known:
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


def legend_beside(axes: Axes, **options: Any) -> None:
    """A legend to the right of the axes, where it does not hide anything."""
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), **options)


def band(axes: Axes, x: Any, mean: Any, error: Any, colour: str) -> None:
    """A shaded band of one standard error."""
    low = [m - e for m, e in zip(mean, error, strict=True)]
    high = [m + e for m, e in zip(mean, error, strict=True)]
    axes.fill_between(x, low, high, color=colour, alpha=0.13, linewidth=0)
