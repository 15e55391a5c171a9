"""The page: collects paragraphs, figures and tables and writes them as one HTML file."""

from __future__ import annotations

import base64
import html
import io
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from aimle._files import write_atomically
from aimle.program.report.files import UnreadableError, naming_damage
from aimle.program.report.stylesheet import CSS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LONG = 32  # a cell with more characters may be wrapped
_PLAIN = re.compile(r"[-+−]?\d+(\.\d+)?|–?")
# A number in a table: plain, mean ± error, with a unit or its number of seeds, or a dash.
_NUMBER = re.compile(
    r"[-+−]?\d[\d ,.]*(e[-+]?\d+)?( ± [\d.]+(e[-+]?\d+)?)?( (s|ms|µs|%|\(\d+ of \d+ seeds\)))?|–?"
)


def count_of(number: int, noun: str, plural: str = "") -> str:
    """1 run, 2 runs."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def error_over_seeds(before: str, counts: Iterable[int]) -> str:
    """What ± or a band is, after `before`, given the seeds of each mean.

    Empty if no mean has several seeds: without an error there is nothing to explain.
    """
    several = sorted({count for count in counts if count > 1})
    if not several:
        return ""
    fewest = f"{several[0]} to " if len(several) > 1 else ""
    return f"{before}standard error over {fewest}{several[-1]} seeds"


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


def _header(name: str) -> str:
    """Keeps short names on one line."""
    return _marked(name if len(name) > 12 else name.replace(" ", "\u00a0"))


def _is_text(values: Sequence[object]) -> bool:
    """Whether a column contains words, which are aligned left."""
    texts = [value for value in values if isinstance(value, str)]
    return bool(texts) and not all(_NUMBER.fullmatch(text) for text in texts)


def _aligned(cells: Sequence[str]) -> list[str]:
    """Pads numbers with invisible digits at the end, to align the decimal points."""
    if not all(_PLAIN.fullmatch(cell) for cell in cells):
        return list(cells)
    decimals = [len(cell.partition(".")[2]) for cell in cells]
    filled = []
    for cell, own in zip(cells, decimals, strict=True):
        pad = ("" if own else ".") + "0" * (max(decimals) - own) if own < max(decimals) else ""
        hidden = f'<span class="pad" aria-hidden="true">{pad}</span>'
        filled.append(cell + hidden if pad and cell[-1:].isdecimal() else cell)
    return filled


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


def _spell(value: object) -> str:
    """A setting as given on the command line."""
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(_spell, value)) if isinstance(value, list) else str(value)


class Page:
    """A report; see the package for an example."""

    def __init__(self, title: str, subtitle: str = "", save_figures: bool = True) -> None:
        """`save_figures=False`: figures are only in the page."""
        self.title = title
        self.subtitle = subtitle
        self._parts: list[str] = []
        self._left_out: list[UnreadableError] = []
        self._figures = 0
        self._level = 2
        self._save_figures = save_figures

    def leave_out(self, what: UnreadableError) -> None:
        """Reports what is missing from the page, at its top and on standard error."""
        print(f"left out: {what}", file=sys.stderr)
        self._left_out.append(what)

    @contextmanager
    def part_of(self, place: Path) -> Iterator[None]:
        """Adds all of the following content, or leaves it out and reports the place if damaged."""
        before = len(self._parts)
        try:
            with naming_damage(place):
                yield
        except UnreadableError as error:
            del self._parts[before:]
            self.leave_out(error)

    def heading(self, text: str) -> None:
        self._parts.append(f"<h{self._level}>{_marked(text)}</h{self._level}>")

    @contextmanager
    def section(self, text: str) -> Iterator[None]:
        """A heading; headings inside it are one level lower."""
        self.heading(text)
        self._level += 1
        try:
            yield
        finally:
            self._level -= 1

    @contextmanager
    def folded(self, summary: str) -> Iterator[None]:
        """Content that is hidden until the reader opens it."""
        self._parts.append(f"<details><summary>{_marked(summary)}</summary>")
        yield
        self._parts.append("</details>")

    def paragraph(self, text: str) -> None:
        self._parts.append(f"<p>{_marked(text)}</p>")

    def figure(self, figure: Figure, path: Path | None, caption: str = "") -> None:
        """Shows a matplotlib figure, saves it as path.png and path.svg, and closes it."""
        from aimle.program.report import figures

        self._figures += 1
        stream = io.StringIO()
        figure.savefig(stream, format="svg", transparent=True)
        if path is not None and self._save_figures:
            path.parent.mkdir(exist_ok=True)
            figures.save(figure, path.with_suffix(".png"), dpi=160)
            figures.save(figure, path.with_suffix(".svg"))
        figures.plt.close(figure)
        svg = stream.getvalue()
        svg = svg[svg.index("<svg") :]
        # matplotlib uses the same ids in every picture; in one page they must differ.
        prefix = f"f{self._figures}-"
        svg = re.sub(r'\bid="', f'id="{prefix}', svg)
        svg = re.sub(r"url\(#", f"url(#{prefix}", svg)
        svg = re.sub(r'href="#', f'href="#{prefix}', svg)
        label = html.escape(caption, quote=True)
        svg = svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
        drawing = f'<div class="scroll">{svg}</div>'
        self._parts.append(f'<figure class="drawing">{drawing}{self._caption(caption)}</figure>')

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
        note: str = "",
    ) -> None:
        """Numbers with three digits, None as a dash; highlights the best of the columns in `best`.

        A `note` becomes the first row, across all columns.
        """
        marks = {
            columns.index(name): _best_rows(rows, columns.index(name), wanted)
            for name, wanted in (best or {}).items()
        }
        by_column = [[row[j] for row in rows] for j in range(len(columns))]
        is_text = [_is_text(values) for values in by_column]
        is_long = [any(len(str(value)) > _LONG for value in values) for values in by_column]
        head = "".join(
            f'<th class="text">{_header(name)}</th>' if text else f"<th>{_header(name)}</th>"
            for name, text in zip(columns, is_text, strict=True)
        )
        body = []
        if note:
            across = f'<td colspan="{len(columns)}"><div>{_marked(note)}</div></td>'
            body.append(f'<tr class="note">{across}</tr>')
        shown = [_aligned([_cell(value) for value in values]) for values in by_column]
        for i in range(len(rows)):
            cells = []
            for j in range(len(columns)):
                classes = ["text"] * is_text[j] + ["long"] * is_long[j]
                classes += ["best"] * (i in marks.get(j, ()))
                attribute = f' class="{" ".join(classes)}"' if classes else ""
                cells.append(f"<td{attribute}>{shown[j][i]}</td>")
            body.append(f"<tr>{''.join(cells)}</tr>")
        self._parts.append(
            f'<figure class="table">{self._caption(caption)}<div class="scroll" tabindex="0">'
            f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
            "</div></figure>"
        )

    def settings(self, settings: Mapping[str, object], summary: str = "Settings") -> None:
        """A folded table of names and values; empty values are left out."""
        rows = [[name, _spell(value)] for name, value in settings.items() if value not in ("", [])]
        with self.folded(summary):
            self.table(["setting", "value"], rows)

    def words(self, words: Sequence[tuple[str, bool, bool]], caption: str = "") -> None:
        """A text as (word, chosen, annotated): highlights chosen, underlines annotated words."""
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
            f"<title>{html.escape(self.title)}</title><style>{CSS}</style></head>\n<body><main>"
            f"<header><h1>{_marked(self.title)}</h1>{subtitle}</header>\n"
            + self._missing()
            + "\n".join(self._parts)
            + f"\n{foot}</main></body></html>\n"
        )

    def write(self, path: Path, footer: str = "") -> Path:
        """Writes the page atomically; returns the path."""
        # Folder names may be arbitrary bytes: what is not UTF-8 is shown as \udce9.
        write_atomically(path, self.html(footer).encode(errors="backslashreplace"))
        return path

    def _missing(self) -> str:
        """A box under the title that lists what was left out."""
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
