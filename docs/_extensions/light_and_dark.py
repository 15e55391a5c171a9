"""Pictures in two versions, for light and dark pages.

    ![text](path_light.svg#gh-light-mode-only)![text](path_dark.svg#gh-dark-mode-only)

is how GitHub shows the one that suits the reader. On the site the theme's switch decides.
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx

PICTURE = re.compile(r"!\[([^]]*)\]\(([^)#]+)#gh-(light|dark)-mode-only\)\s?")


def replace(app: Sphinx, docname: str, source: list[str]) -> None:
    source[0] = PICTURE.sub(r"\n\n```{image} \2\n:class: only-\3\n:alt: \1\n```\n\n", source[0])


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("source-read", replace)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
