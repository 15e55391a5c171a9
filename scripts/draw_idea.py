"""Draws the README's animation: `draw_idea.py [FOLDER]` (docs/pictures).

It trains the README's example and shows its scores and its first sample at every second step, as an
animated SVG. idea.svg follows the reader's colour scheme; idea_light.svg and idea_dark.svg are for
pages with a scheme of their own.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

import aimle

WANTED = torch.tensor([0.0, 1, 0, 0, 1, 0, 1, 0])
SECONDS = 9
STYLE = """
  text { font: 15px system-ui, sans-serif; fill: #24292f; }
  .small { font-size: 13px; }
  .bar { fill: #4c8dff; }
  .cell { stroke: #4c8dff; stroke-width: 1.5; }
  .wanted { fill: none; stroke: #3fa45b; stroke-width: 2.5; }
  .line { stroke: #b6bcc4; }
  .forward { stroke: #4c8dff; fill: #4c8dff; }
  .backward { stroke: #f0883e; fill: #f0883e; }
"""
DARK = "text { fill: #e6e8eb; } .line { stroke: #4a5058; }"
STYLES = {
    "idea.svg": f"{STYLE} @media (prefers-color-scheme: dark) {{ {DARK} }}",
    "idea_light.svg": STYLE,
    "idea_dark.svg": STYLE + DARK,
}


def train() -> list[tuple[list[float], list[float], float]]:
    """Scores, first sample and loss of the README's example, at every second step."""
    torch.manual_seed(0)
    theta = torch.zeros(1, 8, requires_grad=True)
    layer = aimle.AIMLE(aimle.TopK(3), nb_samples=10)
    optimiser = torch.optim.Adam([theta], lr=0.1)
    frames = []
    for step in range(61):
        z = layer(theta)
        loss = (z - WANTED).square().sum(-1).mean()
        if step % 2 == 0:
            frames.append((theta[0].tolist(), z[0, 0].tolist(), loss.item()))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return frames


def animate(attribute: str, values: list[str], mode: str = "linear") -> str:
    held = values + [values[-1]] * 8  # rest at the end
    return (
        f'<animate attributeName="{attribute}" values="{";".join(held)}" dur="{SECONDS}s" '
        f'calcMode="{mode}" repeatCount="indefinite"/>'
    )


def bar(x: float, base: float, heights: list[float]) -> str:
    tops = [f"{base - max(height, 0):.1f}" for height in heights]
    sizes = [f"{max(abs(height), 0.5):.1f}" for height in heights]
    return (
        f'<rect class="bar" x="{x}" width="20" y="{tops[-1]}" height="{sizes[-1]}">'
        f"{animate('y', tops)}{animate('height', sizes)}</rect>"
    )


def cell(x: float, y: float, chosen: list[float], wanted: bool) -> str:
    shares = [f"{value:.0f}" for value in chosen]
    inside = f'<rect class="cell" x="{x}" y="{y}" width="26" height="26" rx="4" fill="#4c8dff" '
    shown = (
        f'{inside}fill-opacity="{shares[-1]}">{animate("fill-opacity", shares, "discrete")}</rect>'
    )
    mark = f'<rect class="wanted" x="{x - 4}" y="{y - 4}" width="34" height="34" rx="7"/>'
    return shown + (mark if wanted else "")


def counter(x: float, y: float, losses: list[float]) -> str:
    """The loss at every frame: a text for each, of which one is shown."""
    texts = []
    for index, loss in enumerate(losses):
        last = index == len(losses) - 1
        shares = ["1" if i == index else "0" for i in range(len(losses))]
        texts.append(
            f'<text x="{x}" y="{y}" opacity="{int(last)}">{loss:.1f} of 8 entries wrong'
            f"{animate('opacity', shares, 'discrete')}</text>"
        )
    return "".join(texts)


def arrow(x0: float, x1: float, y: float, kind: str) -> str:
    head = 8 if x1 > x0 else -8
    return (
        f'<g class="{kind}"><line x1="{x0}" y1="{y}" x2="{x1 - head}" y2="{y}" stroke-width="2.5"/>'
        f'<path d="M{x1} {y} l{-head * 1.4} -5 v10 z" stroke="none"/></g>'
    )


def draw(frames: list, style: str) -> str:
    thetas, samples, losses = zip(*frames, strict=True)
    scale = 60 / max(abs(value) for theta in thetas for value in theta)
    base = 110
    parts = [
        '<text x="20" y="24">scores θ, from your network</text>',
        f'<line class="line" x1="14" x2="244" y1="{base}" y2="{base}"/>',
        *(bar(18 + 28 * i, base, [scale * t[i] for t in thetas]) for i in range(8)),
        '<text class="small" x="256" y="94">noise, solver</text>',
        arrow(254, 348, base, "forward"),
        '<text x="366" y="74">z: exactly three of eight</text>',
        *(cell(368 + 34 * i, 97, [z[i] for z in samples], bool(WANTED[i])) for i in range(8)),
        '<text class="small" x="366" y="152">green: what the loss hopes for</text>',
        '<text x="366" y="206">your loss:</text>',
        counter(444, 206, list(losses)),
        arrow(354, 70, 201, "backward"),
        '<text class="small" x="30" y="232">'
        "backward: solve again at θ + λd and θ − λd; their difference is the gradient of θ</text>",
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 650 244" role="img" '
        f'aria-label="Training scores through a solver"><style>{style}</style>'
        f"{''.join(parts)}</svg>\n"
    )


if __name__ == "__main__":
    root = Path(__file__).resolve().parents[1]
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else root / "docs" / "pictures"
    recorded = train()
    for name, chosen_style in STYLES.items():
        (folder / name).write_text(draw(recorded, chosen_style))
