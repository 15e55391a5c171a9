"""README.md and the pages of docs are correct: code runs; options, targets and links exist."""

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
import torch
from aimle_program import PROGRAM, aimle, need_program
from extras import need
from repository import ROOT

import aimle as library

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
COMMAND = re.compile(r"^(?:build/release/)?aimle ((?:[a-z0-9]+ ?)+.*)$")


def check_migrating(names: dict) -> None:
    assert names["z"].shape == (32, 50)
    assert names["checkpoint"]["target"]["updates"] == 1
    assert torch.count_nonzero(names["new"]) > 0


AFTERWARDS = {"migrating.md": check_migrating}


def name_of(page: Path) -> str:
    return page.relative_to(DOCS if page.is_relative_to(DOCS) else ROOT).as_posix()


def each_page(function):
    return pytest.mark.parametrize("page", PAGES, ids=name_of)(function)


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a language, without the indent that a list gives them."""
    found = re.finditer(
        rf"^( *)```{language}\n(.*?)^ *```", page.read_text(), re.DOTALL | re.MULTILINE
    )
    return [re.sub(rf"^{match[1]}", "", match[2], flags=re.MULTILINE) for match in found]


def commands(page: Path) -> list[str]:
    """What a page tells its reader to type: in blocks, indented, or between backticks."""
    text = re.sub(r" \\\n +", " ", page.read_text())  # commands that are continued
    lines = [line.strip() for block in blocks(page, "sh") for line in block.splitlines()]
    lines += [line.strip() for line in text.splitlines() if line.startswith("    ")]
    lines += re.findall(r"`([^`]+)`", text)
    return [re.sub(r"\s+#.*", "", line) for line in lines]


@cache
def help_of(command: tuple[str, ...]) -> str:
    result = aimle(*command, "--help", figures=command[0] == "benchmark")  # Python's own help
    assert result.returncode == 0, f"aimle {' '.join(command)}: {result.stderr}"
    return result.stdout


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name_of)
def test_python_runs(page: Path, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    names: dict[str, object] = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)
    if printed := blocks(page, "text"):
        assert capsys.readouterr().out == "".join(printed)
    AFTERWARDS.get(page.name, lambda _: None)(names)


def optional_blocks() -> list:
    """Blocks that need a package which the project does not: each stands alone."""
    found = []
    for page in PAGES:
        matches = re.finditer(
            r"^```python needs=(\w+)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE
        )
        found += [
            pytest.param(*match.groups(), id=f"{name_of(page)} {match[1]}") for match in matches
        ]
    return found


@pytest.mark.parametrize(("package", "block"), optional_blocks())
def test_python_with_other_packages_runs(package: str, block: str):
    need(package)
    exec(compile(block, package, "exec"), {})


def test_cpp_compiles(tmp_path: Path):
    """Every block that starts with its includes, in a function of its own."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    found = [b for page in PAGES for b in blocks(page, "cpp") if b.startswith("#include")]
    assert len(found) == 2
    includes, bodies = [], []
    for number, block in enumerate(found):
        includes += re.findall(r"^#include.*\n", block, re.MULTILINE)
        body = re.sub(r"^#include.*\n", "", block, flags=re.MULTILINE)
        bodies.append(
            f"void block_{number}(at::Tensor theta, at::Tensor mask, at::Tensor loss(at::Tensor))"
            f"{{\n{body}}}\n"
        )
    (tmp_path / "blocks.cpp").write_text("".join([*includes, *bodies]))
    base = Path(torch.__file__).parent / "include"
    folders = [ROOT, base, base / "torch/csrc/api/include"]
    command = [compiler, "-std=c++20", "-fsyntax-only", *(f"-I{folder}" for folder in folders)]
    result = subprocess.run(
        [*command, str(tmp_path / "blocks.cpp")], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr[:4000]


@each_page
def test_options_of_commands_exist(page: Path):
    need_program()
    for line in commands(page):
        match = COMMAND.match(line)
        if match is None:
            continue
        words = match[1].split()
        depth = next(
            (i for i, w in enumerate(words) if not re.fullmatch("[a-z0-9]+", w)), len(words)
        )
        known = {"synth": 2, "train": 2, "data": 2, "benchmark": 2}.get(words[0], 1)
        wanted = tuple(words[: min(depth, known)])
        shown = help_of(wanted)
        for option in re.findall(r"(?<=\s)--[a-z0-9_-]+", f" {match[1]}"):
            assert re.search(rf"{option}\b", shown), f"{line}: aimle {wanted} has no {option}"


@each_page
def test_targets_of_make_exist(page: Path):
    makefile = (ROOT / "Makefile").read_text()
    for line in commands(page):
        match = re.match(r"(?:[A-Z]+=\S+ )*make ([a-z-]+)(?: |$)", line)
        assert match is None or re.search(rf"^{match[1]}:", makefile, re.MULTILINE), line


@each_page
def test_links_lead_somewhere(page: Path):
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target, anchor in re.findall(r"\]\((?!https?://)([^)#]*)#?([^)]*)\)", text):
        file = page.parent / target if target else page
        assert file.exists(), f"{name_of(page)}: {target}"
        if anchor and not anchor.endswith("-mode-only"):
            titles = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
            known = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
            assert anchor in known, f"{name_of(page)}: {target}#{anchor}"


@each_page
def test_tables_are_narrow(page: Path):
    """Wide tables cannot be read in a terminal or on a phone: split them, explain below."""
    wide = [line for line in page.read_text().splitlines() if line[:1] == "|" and len(line) > 120]
    assert wide == []


@each_page
def test_pictures_exist_for_light_and_dark(page: Path):
    found = re.findall(r"\]\((\S+)_(\w+)\.svg#gh-(\w+)-mode-only\)", page.read_text())
    assert all(version == mode for _, version, mode in found)
    light, dark = ({name for name, version, _ in found if version == m} for m in ("light", "dark"))
    assert light == dark


def test_every_public_name_is_in_the_api():
    text = "".join(page.read_text() for page in (DOCS / "api" / "python").glob("*.md"))
    listed_names = re.findall(r"^\.\. auto\w+:: (?:aimle\.)?(\w+)$", text, re.MULTILINE)
    assert sorted(set(library.__all__) - set(listed_names)) == []


def test_headers_in_the_api_exist():
    pages = (DOCS / "api" / "cpp").glob("*.md")
    headers = [h for page in pages for h in re.findall(r"{cpp-header} (\S+)", page.read_text())]
    assert len(headers) > 30
    assert [header for header in headers if not (ROOT / header).is_file()] == []


@each_page
def test_files_that_are_named_exist(page: Path):
    """All but those of the solver that "adding a solver" adds, and of an experiment NAME."""
    rooms = "aimle|benchmarks|cli|cmake|docs|examples|experiments|python|scripts|tests"
    for name in re.findall(rf"`((?:{rooms})/[\w/.*{{}},]+)`", page.read_text()):
        if "matching" in name or "NAME" in name:
            continue
        choices = re.match(r"(.*){(.*)}(.*)", name)
        names = [choices[1] + c + choices[3] for c in choices[2].split(",")] if choices else [name]
        assert all(list(ROOT.glob(each)) for each in names), f"{name_of(page)}: {name}"


def listed(page: Path) -> list[Path]:
    """The pages in the tables of contents of a page."""
    lines = [line for block in blocks(page, "{toctree}") for line in block.splitlines() if line]
    names = [re.sub(r".* <(.*)>", r"\1", line) for line in lines if line[0] != ":"]
    return [(page.parent / f"{name}.md").resolve() for name in names]


def test_every_page_is_on_the_site_once():
    found, todo = [], [DOCS / "index.md"]
    while todo:
        found.append(page := todo.pop())
        todo += listed(page) if page.exists() else []
    notebooks = [file.with_suffix(".md") for file in DOCS.rglob("*.ipynb")]
    assert sorted(found) == sorted([p for p in PAGES if p.is_relative_to(DOCS)] + notebooks)


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) < 120


def test_commands_are_found():
    found = [line for page in PAGES for line in commands(page) if COMMAND.match(line)]
    assert len(found) > 60
    assert PROGRAM.name == "aimle"
