"""Pages for files of the repository that the documents link to.

A link such as [`map.h`](../../aimle/map/map.h) leads to the file where the document is read in the
repository. On the site it leads to a page that shows the file, or lists the folder.
"""

from __future__ import annotations

import html
import os
import posixpath
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "repository"
LANGUAGES = {
    ".py": "python",
    ".h": "cpp",
    ".cpp": "cpp",
    ".cu": "cpp",
    ".cuh": "cpp",
    ".sh": "bash",
    ".json": "json",
    ".toml": "toml",
    ".txt": "text",
}
LARGEST = 300_000  # bytes; larger files are data


def page_name(path: Path) -> str:
    return posixpath.join(FOLDER, path.relative_to(ROOT).as_posix())


def wanted(app: Sphinx) -> dict[str, set[str]]:
    """The paths that each document links to, kept in the environment between builds."""
    if not hasattr(app.env, "repository_paths"):
        app.env.repository_paths = {}
    return app.env.repository_paths


def forget(app: Sphinx, env: object, docname: str) -> None:
    wanted(app).pop(docname, None)


def merge(app: Sphinx, env: object, docnames: set[str], other: object) -> None:
    wanted(app).update(getattr(other, "repository_paths", {}))


def linked(folder: Path, uri: str) -> Path | None:
    """The file or folder that a link names, from its page or, in included pages, from the root."""
    for base in (folder, ROOT):
        path = Path(os.path.normpath(base / uri))
        if path.is_relative_to(ROOT) and path.exists():
            return path
    return None


def link(app: Sphinx, document: nodes.document) -> None:
    """Turns links to files outside the site into links to their pages."""
    docname = app.env.docname
    folder = Path(app.srcdir, docname).parent
    for node in document.findall(nodes.Element):
        uri = node.get("refuri") or node.get("reftarget")
        if node.tagname not in ("reference", "pending_xref", "download_reference") or not uri:
            continue
        if "://" in uri or uri.startswith(("#", "mailto:")):
            continue
        path = linked(folder, uri.partition("#")[0])
        if path is None:
            continue
        if path.is_relative_to(app.srcdir) and path.suffix in (".md", ".ipynb", ".png", ".svg"):
            continue
        wanted(app).setdefault(docname, set()).add(str(path))
        target = page_name(path)
        text = nodes.reference("", "", internal=True)
        text["refuri"] = app.builder.get_relative_uri(docname, target)
        text.extend(child.deepcopy() for child in node.children)
        node.replace_self(text)


def pages(app: Sphinx) -> Iterator[tuple[str, dict, str]]:
    """A page for every path that is linked to, and for the files of linked folders."""
    todo = {Path(path) for paths in wanted(app).values() for path in paths}
    done: set[Path] = set()
    while todo:
        path = todo.pop()
        if path in done:
            continue
        done.add(path)
        name = page_name(path)
        title = path.relative_to(ROOT).as_posix()
        if path.is_dir():
            files = sorted(file for file in path.iterdir() if file.name[0] not in "._")
            todo.update(files)
            items = "".join(
                f'<li><a href="{app.builder.get_relative_uri(name, page_name(file))}">'
                f"<code>{html.escape(file.name)}{'/' if file.is_dir() else ''}</code></a></li>"
                for file in files
            )
            body = f"<ul>{items}</ul>"
        else:
            body = shown(app, path)
        heading = f"<h1><code>{html.escape(title)}</code></h1>"
        yield name, {"title": title, "body": heading + body}, "page.html"


def shown(app: Sphinx, path: Path) -> str:
    if path.stat().st_size > LARGEST:
        return f"<p>A file of {path.stat().st_size:,} bytes.</p>"
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        return "<p>A binary file.</p>"
    language = "cmake" if path.name == "CMakeLists.txt" else LANGUAGES.get(path.suffix, "text")
    return app.builder.highlighter.highlight_block(text, language, force=True)


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("doctree-read", link)
    app.connect("html-collect-pages", pages)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
