"""The page: paragraphs, figures and tables, gathered and written as one HTML file."""

from __future__ import annotations

import base64
import html
import io
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from aimle.report.files import UnreadableError, naming_damage, write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CSS = """
:root { --ink: #1d2733; --soft: #5b6b7b; --line: #e3e8ee; --accent: #1f6fb2; --best: #e8f5ee; }
* { box-sizing: border-box; }
body { margin: 0; background: #f6f8fa; color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 40px 28px 72px; background: #fff;
  min-height: 100vh; box-shadow: 0 0 24px rgba(20, 40, 60, .06); }
header { border-bottom: 3px solid var(--accent); margin-bottom: 24px; padding-bottom: 12px; }
h1 { font-size: 30px; line-height: 1.2; margin: 0 0 6px; letter-spacing: -.01em; }
header p { margin: 0; color: var(--soft); }
h2 { font-size: 21px; margin: 40px 0 10px; }
p { margin: 10px 0; max-width: 84ch; }
code { font: .9em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  background: #f0f3f7; padding: 1px 5px; border-radius: 4px; }
figure { margin: 22px 0; }
figure svg, figure img { max-width: 100%; height: auto; display: block; }
figcaption, caption { color: var(--soft); font-size: 14px; text-align: left; }
figcaption { margin-top: 8px; max-width: 96ch; }
caption { caption-side: top; padding: 0 0 8px; }
.table { overflow-x: auto; margin: 18px 0; }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 12px; border-bottom: 1px solid var(--line); text-align: right;
  white-space: nowrap; }
th { border-bottom: 2px solid #c4ced8; font-weight: 600; vertical-align: bottom; }
th:first-child, td:first-child, td.text, th.text { text-align: left; }
td.best { background: var(--best); font-weight: 600; }
td.note { color: var(--soft); }
td.text:last-child { white-space: normal; }
.words { font-size: 15px; line-height: 1.8; margin: 18px 0; max-width: 96ch; }
.words .chosen { background: #ffe9a8; border-radius: 4px; padding: 1px 3px; }
.words .annotated { border-bottom: 2px solid #188a4b; }
.words p { color: var(--soft); font-size: 14px; margin: 4px 0 0; }
tbody tr:hover { background: #f7fafc; }
footer { margin-top: 48px; border-top: 1px solid var(--line); padding-top: 12px;
  color: var(--soft); font-size: 13px; }
"""


def _marked(text: str) -> str:
    """Escaped, with `...` as code and **...** as strong."""
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if abs(value) >= 1e5 or abs(value) < 1e-3:
        return f"{value:.2e}"
    return f"{value:.3f}" if abs(value) < 100 else f"{value:.1f}"


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return _number(value)
    return _marked(str(value))


def _best_rows(
    rows: Sequence[Sequence[object]], column: int, wanted: Literal["min", "max"]
) -> set[int]:
    values = {
        i: value
        for i, value in enumerate(row[column] for row in rows)
        if isinstance(value, int | float) and math.isfinite(value)
    }
    if not values:
        return set()
    best = min(values.values()) if wanted == "min" else max(values.values())
    return {i for i, value in values.items() if value == best}


class Page:
    """A report; see the package for an example."""

    def __init__(self, title: str, subtitle: str = "", save_figures: bool = True) -> None:
        """`save_figures=False`: figures are in the page alone."""
        self.title = title
        self.subtitle = subtitle
        self._parts: list[str] = []
        self._left_out: list[UnreadableError] = []
        self._figures = 0
        self._save_figures = save_figures

    def leave_out(self, what: UnreadableError) -> None:
        """Names what is missing from the page, at its top and on standard error."""
        print(f"left out: {what}", file=sys.stderr)
        self._left_out.append(what)

    @contextmanager
    def part_of(self, place: Path) -> Iterator[None]:
        """Adds what follows as a whole, or leaves it out and names the place if that is damaged."""
        before = len(self._parts)
        try:
            with naming_damage(place):
                yield
        except UnreadableError as error:
            del self._parts[before:]
            self.leave_out(error)

    def heading(self, text: str) -> None:
        self._parts.append(f"<h2>{_marked(text)}</h2>")

    def paragraph(self, text: str) -> None:
        self._parts.append(f"<p>{_marked(text)}</p>")

    def figure(self, figure: Figure, path: Path | None, caption: str = "") -> None:
        """Shows a matplotlib figure, saves it as path.png and path.svg, and closes it."""
        import matplotlib.pyplot as plt

        self._figures += 1
        stream = io.StringIO()
        figure.savefig(stream, format="svg")
        if path is not None and self._save_figures:
            path.parent.mkdir(exist_ok=True)
            for suffix in (".png", ".svg"):
                content = io.BytesIO()
                figure.savefig(
                    content, format=suffix[1:], dpi=160 if suffix == ".png" else "figure"
                )
                write_atomically(path.with_suffix(suffix), content.getvalue())
        plt.close(figure)
        svg = stream.getvalue()
        svg = svg[svg.index("<svg") :]
        # matplotlib numbers the parts of each picture alike; in one page they must differ.
        prefix = f"f{self._figures}-"
        svg = re.sub(r'\bid="', f'id="{prefix}', svg)
        svg = re.sub(r"url\(#", f"url(#{prefix}", svg)
        svg = re.sub(r'href="#', f'href="#{prefix}', svg)
        label = html.escape(caption, quote=True)
        svg = svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
        self._parts.append(f"<figure>{svg}{self._caption(caption)}</figure>")

    def image(self, image: Path | bytes, caption: str = "") -> None:
        """Shows a PNG, from a file or from memory."""
        data = image if isinstance(image, bytes) else Path(image).read_bytes()
        source = base64.b64encode(data).decode()
        label = html.escape(caption, quote=True)
        self._parts.append(
            f'<figure><img alt="{label}" src="data:image/png;base64,{source}">'
            f"{self._caption(caption)}</figure>"
        )

    def table(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[object]],
        caption: str = "",
        best: Mapping[str, Literal["min", "max"]] | None = None,
    ) -> None:
        """Numbers to three digits, None as a dash; the best of the columns in `best` stand out."""
        marks = {
            columns.index(name): _best_rows(rows, columns.index(name), wanted)
            for name, wanted in (best or {}).items()
        }
        is_text = [
            bool(rows) and all(isinstance(row[j], str) for row in rows) for j in range(len(columns))
        ]
        head = "".join(
            f'<th class="text">{_marked(name)}</th>' if text else f"<th>{_marked(name)}</th>"
            for name, text in zip(columns, is_text, strict=True)
        )
        body = []
        for i, row in enumerate(rows):
            cells = []
            for j, value in enumerate(row):
                classes = [
                    *(["text"] if is_text[j] else []),
                    *(["best"] if i in marks.get(j, ()) else []),
                ]
                attribute = f' class="{" ".join(classes)}"' if classes else ""
                cells.append(f"<td{attribute}>{_cell(value)}</td>")
            body.append(f"<tr>{''.join(cells)}</tr>")
        shown = f"<caption>{_marked(caption)}</caption>" if caption else ""
        self._parts.append(
            f'<div class="table"><table>{shown}<thead><tr>{head}</tr></thead>'
            f"<tbody>{''.join(body)}</tbody></table></div>"
        )

    def words(self, words: Sequence[tuple[str, bool, bool]], caption: str = "") -> None:
        """A text as (word, chosen, annotated): chosen on a ground, annotated underlined."""
        parts = []
        for word, chosen, annotated in words:
            classes = ["chosen"] * chosen + ["annotated"] * annotated
            shown = html.escape(word)
            parts.append(f'<span class="{" ".join(classes)}">{shown}</span>' if classes else shown)
        text = f"<p>{_marked(caption)}</p>" if caption else ""
        self._parts.append(f'<div class="words">{" ".join(parts)}{text}</div>')

    def html(self, footer: str = "") -> str:
        subtitle = f"<p>{_marked(self.subtitle)}</p>" if self.subtitle else ""
        foot = f"<footer>{_marked(footer)}</footer>" if footer else ""
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{html.escape(self.title)}</title><style>{_CSS}</style></head>\n<body><main>"
            f"<header><h1>{_marked(self.title)}</h1>{subtitle}</header>\n"
            + self._missing()
            + "\n".join(self._parts)
            + f"\n{foot}</main></body></html>\n"
        )

    def write(self, path: Path, footer: str = "") -> None:
        """Writes the page; an older one is replaced only by a complete one."""
        write_atomically(path, self.html(footer).encode())

    def _missing(self) -> str:
        """A box under the title that names what was left out."""
        if not self._left_out:
            return ""
        lines = "".join(
            f"<li><code>{html.escape(str(e.place))}</code>: {html.escape(e.wrong)}; "
            f"{html.escape(e.remedy)}</li>"
            for e in self._left_out
        )
        return (
            '<aside class="missing"><strong>Left out, because it could not be read:</strong>'
            f"<ul>{lines}</ul></aside>\n"
        )

    @staticmethod
    def _caption(text: str) -> str:
        return f"<figcaption>{_marked(text)}</figcaption>" if text else ""
