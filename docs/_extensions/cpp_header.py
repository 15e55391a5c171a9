"""The directive `cpp-header`: a public C++ header, its opening comment and what it declares."""

from __future__ import annotations

import itertools
import re
import textwrap
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

SECTIONS = (
    "briefdescription detaileddescription innernamespace innerclass define enum typedef func var "
    "public-type public-func public-attrib public-static-func public-static-attrib"
)
ROOT = Path(__file__).resolve().parents[2]


def fenced(block: list[str]) -> list[str]:
    """Indented lines as a block of code, or of text if they are none."""
    code = "\n".join(block)
    language = "cpp" if "aimle::" in code and not re.search("['`]", code) else "text"
    return [f"```{language}", *textwrap.dedent(code).rstrip().splitlines(), "```", ""]


def opening_comment(file: Path) -> str:
    """The comment at the head of a file as Markdown: paragraphs that are indented are code."""
    comment = re.match(r"(?://.*\n)*", file.read_text())[0]
    lines = [line.removeprefix("//").removeprefix(" ") for line in comment.splitlines()]
    text: list[str] = []
    for blank, group in itertools.groupby(lines, key=lambda line: not line):
        paragraph = list(group)
        if blank:
            text.append("")
        elif paragraph[0].startswith("  ") and not paragraph[0].lstrip().startswith("* "):
            text += fenced(paragraph)
        else:
            text += [re.sub(r"<(?=\w)", r"\\<", line) for line in paragraph]
    return "\n".join(text)


def unwrap_namespace(container: nodes.Element) -> None:
    """Shows what is in the namespace aimle without a level of its own."""
    for node in list(container.findall(addnodes.desc)):
        if node[0].astext() == "namespace aimle":
            node.replace_self(node[1].children)


class CppHeader(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        file = ROOT / self.arguments[0]
        self.env.note_dependency(str(file))
        markdown = (
            f"{opening_comment(file)}\n\n"
            f"````{{doxygenfile}} {file.name}\n:project: aimle\n:sections: {SECTIONS}\n````\n"
        )
        container = nodes.container()
        self.state.nested_parse(StringList(markdown.splitlines()), self.content_offset, container)
        unwrap_namespace(container)
        return container.children


def setup(app: Sphinx) -> dict[str, object]:
    app.add_directive("cpp-header", CppHeader)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
