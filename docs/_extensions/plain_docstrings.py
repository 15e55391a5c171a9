"""Docstrings are plain text: `[*batch, n]` is a shape, and an indented block is code or a table.

Turns them into reStructuredText: escapes what it would read as markup, and marks indented blocks,
except in the sections of arguments and results, as literal.
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx

LITERAL = re.compile(r"(``.+?``|:\w+:`[^`]+`)")
ITEM = re.compile(r"([a-z]\w*(?:, [a-z]\w*)*): (.*)")
SECTION = re.compile(r"(Args|Arguments|Returns|Raises|Yields|Attributes|Note):$")


def escape(line: str) -> str:
    parts = LITERAL.split(line)
    return "".join(
        part if index % 2 else re.sub(r"([*|])|(?<=\w)(_)(?!\w)", r"\\\1\2", part)
        for index, part in enumerate(parts)
    )


def items(lines: list[str]) -> list[str]:
    """A paragraph of lines such as `moves: "all", ...` with hanging indents, as a list."""
    result: list[str] = []
    open_item = False
    for line in lines:
        name = ITEM.match(line)
        if name:
            result += ["", f"- **{name[1]}**: {escape(name[2])}"]
        elif line.startswith("  ") and open_item:
            result.append(f"  {escape(line.strip())}")
        else:
            result += [""] * open_item + [escape(line.strip())]
        open_item = bool(name) or (open_item and line.startswith("  "))
    return result


def paragraph(lines: list[str]) -> list[str]:
    """Lines between two blank ones, as reStructuredText."""
    if lines[0].startswith("  "):
        return ["::", "", *lines]
    hanging = any(line.startswith("  ") for line in lines)
    named = sum(bool(ITEM.match(line)) for line in lines)
    if (hanging and named) or named > 1:
        return items(lines)
    if hanging:  # code that follows its sentence without a blank line
        first = next(i for i, line in enumerate(lines) if line.startswith("  "))
        return [*map(escape, lines[:first]), "", *paragraph(lines[first:])]
    return [escape(line) for line in lines]


def as_restructured_text(lines: list[str]) -> list[str]:
    """The sections are napoleon's; what comes before, between and after is ours."""
    result: list[str] = []
    rest: list[str] = []

    def finish() -> None:
        if rest:
            result.extend(paragraph(rest))
            rest.clear()

    in_section = False
    for line in lines:
        if SECTION.match(line):
            finish()
            in_section = True
        elif line.strip() and not line.startswith("  "):
            if in_section and result and result[-1]:
                result.append("")
            in_section = False
        if in_section:
            result.append(line if SECTION.match(line) else escape(line))
        elif line.strip():
            rest.append(line)
        else:
            finish()
            result.append("")
    finish()
    return result


def convert(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    lines[:] = as_restructured_text(lines)


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("autodoc-process-docstring", convert, priority=100)  # before napoleon
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
