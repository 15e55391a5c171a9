"""Draws the pictures of the user guide's concepts: `draw_concepts.py [FOLDER]` (docs/pictures).

Each picture is drawn twice, NAME_light.svg and NAME_dark.svg, with a transparent background. All
numbers in them are computed by the library.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import torch
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import aimle

THEMES = {
    "light": {"text": "#24292f", "faint": "#b6bcc4", "panel": "#ffffff"},
    "dark": {"text": "#e6e8eb", "faint": "#4a5058", "panel": "#131416"},
}
BLUE, ORANGE, GREEN, RED = "#4c8dff", "#f0883e", "#3fa45b", "#e5534b"
SIZE, CHOSEN, STEP = 8, 3, 1.5
WANTED = torch.tensor([0.0, 1, 0, 0, 1, 0, 1, 0])


def bars(
    axes: Axes, values: torch.Tensor, colours: list[str] | str, title: str, theme: dict
) -> None:
    axes.bar(range(len(values)), values.tolist(), color=colours, width=0.75)
    axes.axhline(0, color=theme["faint"], linewidth=0.8)
    axes.set_title(title, fontsize=9.5)
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_visible(False)


def cells(axes: Axes, z: torch.Tensor, title: str, theme: dict) -> None:
    for i, value in enumerate(z.tolist()):
        colour = BLUE if value > 0.5 else "none"
        axes.add_patch(plt.Rectangle((i - 0.4, 0), 0.8, 0.8, facecolor=colour, edgecolor=BLUE))
        number = theme["panel"] if value > 0.5 else theme["text"]
        axes.text(i, 0.4, str(int(value)), ha="center", va="center", fontsize=8, color=number)
    axes.set_xlim(-0.8, len(z) - 0.2)
    axes.set_ylim(-0.9, 1.7)
    axes.set_title(title, fontsize=9.5)
    axes.axis("off")


def picked(scores: torch.Tensor, faint: str) -> tuple[torch.Tensor, list[str]]:
    """The solution for these scores, and the colours that show it."""
    z = aimle.solve(aimle.TopK(CHOSEN), scores)
    return z, [BLUE if each > 0.5 else faint for each in z.tolist()]


def arrow(figure: Figure, start: Axes, end: Axes, colour: str) -> None:
    a, b = start.get_position(), end.get_position()
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.6}
    if a.x0 == b.x0:  # along a column, beside it
        x = a.x0 - 0.02 if a.x0 < 0.5 else a.x1 + 0.02
        ends = (x, b.y0 + b.height / 2), (x, a.y0 + a.height / 2)
    else:
        y = a.y0 + a.height / 2
        ends = (b.x0 - 0.01, y), (a.x1 + 0.01, y)
    axes = figure.add_axes((0, 0, 1, 1), zorder=-1)
    axes.axis("off")
    axes.annotate("", *ends, arrowprops=style)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)


def path(theme: dict) -> Figure:
    """From theta to z and, with the loss's gradient, back to a gradient of theta."""
    key = torch.tensor([3, 1])
    theta = torch.tensor([0.9, -0.2, 0.6, -0.5, 0.3, 0.8, 0.1, -0.6])
    noise = aimle.sample_noise(aimle.Gumbel(), (SIZE,), key)
    noisy = theta + 0.6 * noise
    z, chosen = picked(noisy, theme["faint"])
    d = 2 * (z - WANTED)
    up, up_colours = picked(noisy + STEP / 2 * d, theme["faint"])
    down, down_colours = picked(noisy - STEP / 2 * d, theme["faint"])
    gradient = (up - down) / STEP
    figure, rows = plt.subplots(4, 2, figsize=(5.6, 6.2))
    figure.subplots_adjust(left=0.06, right=0.94, top=0.92, bottom=0.03, wspace=0.3, hspace=0.75)
    left, right = rows[:, 0], rows[::-1, 1]
    bars(left[0], theta, theme["text"], "1. scores θ", theme)
    bars(left[1], noisy, chosen, "2. add noise: θ + τε", theme)
    cells(left[2], z, "3. solve: z, the three best", theme)
    cells(left[3], WANTED, "4. your loss compares z\nwith what is wanted", theme)
    bars(right[0], d, ORANGE, "5. its gradient d = ∂loss/∂z", theme)
    bars(right[1], noisy + STEP / 2 * d, up_colours, "6. solve again at θ + λd + τε", theme)
    bars(right[2], noisy - STEP / 2 * d, down_colours, "7. and at θ − λd + τε", theme)
    colours = [RED if g > 0 else GREEN for g in gradient.tolist()]
    bars(right[3], gradient, colours, "8. difference / 2λ:\nthe gradient of θ", theme)
    for i in range(3):
        arrow(figure, left[i], left[i + 1], BLUE)
        arrow(figure, right[i], right[i + 1], ORANGE)
    arrow(figure, left[3], right[0], ORANGE)
    return figure


def plain(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def steps(theme: dict) -> Figure:
    """The loss of a hard choice as a function of one score, and its mean under noise."""
    solver = aimle.TopK(CHOSEN)
    grid = torch.linspace(-3, 3, 121)
    theta = torch.tensor([0.9, -0.2, 0.6, -0.5, 0.3, 0.8, 0.1, -0.6]).repeat(len(grid), 1)
    theta[:, 1] = grid
    noise = aimle.sample_noise(aimle.Gumbel(), (20_000, SIZE), torch.tensor([0, 0]))
    hard = aimle.solve(solver, theta)
    smooth = torch.stack([(aimle.solve(solver, row + noise)).mean(0) for row in theta])
    figure, axes = plt.subplots(figsize=(5.6, 2.9))
    for z, colour, label in (
        (hard, ORANGE, "loss of the best choice"),
        (smooth, BLUE, "mean loss of choices under noise"),
    ):
        loss = WANTED.sum() + (1 - 2 * WANTED) @ z.T  # |z - wanted|^2 of zeros and ones
        axes.plot(grid, loss, color=colour, linewidth=2, label=label)
    axes.set_xlabel("the score θ₂ of one entry")
    axes.set_ylabel("loss")
    axes.legend(frameon=False, fontsize=9)
    plain(axes)
    figure.tight_layout()
    return figure


class Study:
    """IMLE's central difference on 256 problems, one of 8 with f(z) = |z - b|^2, 10 samples."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        self.theta = torch.randn(256, SIZE, generator=generator)
        self.b = torch.randn(256, SIZE, generator=generator).abs()
        exact = self.theta.double().requires_grad_()
        aimle.exact.expected_square(aimle.Argmax(), exact, self.b.double()).sum().backward()
        self.truth = exact.grad

    def gradient(self, layer: torch.nn.Module) -> torch.Tensor:
        leaf = self.theta.clone().requires_grad_()
        z = layer(leaf, key=torch.tensor([1, 2]))
        (z - self.b[:, None]).square().sum().backward()
        return leaf.grad.double()

    def measure(self, lambda_: float) -> tuple[float, float]:
        """The mean cosine to the true gradient, and the share of zeros."""
        layer = aimle.IMLE(aimle.Argmax(), lambda_, symmetric_perturbation=True, nb_samples=10)
        gradient = self.gradient(layer)
        cosine = torch.cosine_similarity(gradient, self.truth).mean().item()
        return cosine, (gradient == 0).double().mean().item()


def step_size(theme: dict) -> Figure:
    """What the step size decides: small steps change nothing, large ones point elsewhere."""
    study = Study()
    lambdas = [10 ** (e / 4) for e in range(-10, 9)]
    cosines, zeros = zip(*map(study.measure, lambdas), strict=True)
    figure, axes = plt.subplots(figsize=(5.6, 2.9))
    axes.plot(lambdas, cosines, color=BLUE, linewidth=2, label="cosine to the true gradient")
    axes.plot(lambdas, zeros, color=ORANGE, linewidth=2, label="share of zeros")
    axes.set_xscale("log")
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("step size λ")
    axes.legend(frameon=False, fontsize=9, loc="center left")
    plain(axes)
    figure.tight_layout()
    return figure


PICTURES: dict[str, Callable[[dict], Figure]] = {
    "path": path,
    "steps": steps,
    "step_size": step_size,
}


def main(folder: Path) -> None:
    mpl.use("agg")
    for mode, theme in THEMES.items():
        colour = theme["text"]
        settings = {
            **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), colour),
            **dict.fromkeys(("xtick.color", "ytick.color"), colour),
            "svg.hashsalt": "aimle",
        }
        with plt.rc_context(settings):
            for name, draw in PICTURES.items():
                figure = draw(theme)
                file = folder / f"{name}_{mode}.svg"
                figure.savefig(file, transparent=True, metadata={"Date": None, "Creator": None})
                plt.close(figure)


if __name__ == "__main__":
    root = Path(__file__).resolve().parents[1]
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else root / "docs" / "pictures")
