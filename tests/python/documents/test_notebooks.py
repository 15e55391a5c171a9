"""The notebooks of docs/notebooks run from top to bottom, and are stored without outputs."""

import json
import re
from pathlib import Path

import pytest
import torch
from repository import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def each_notebook(function):
    return pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.name)(function)


def code_cells(file: Path) -> list[dict]:
    cells = json.loads(file.read_text())["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


@pytest.fixture
def pictures():
    """Matplotlib without a window."""
    matplotlib = pytest.importorskip("matplotlib")
    backend = matplotlib.get_backend()
    matplotlib.use("agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")
    matplotlib.use(backend)


def test_there_are_three():
    assert len(NOTEBOOKS) == 3


@each_notebook
def test_notebook_runs(file: Path, pictures, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    names: dict[str, object] = {}
    for number, cell in enumerate(code_cells(file)):
        exec(compile("".join(cell["source"]), f"{file.name}, code cell {number}", "exec"), names)
    assert pictures.get_fignums()


@each_notebook
def test_notebook_has_no_outputs(file: Path):
    assert all(cell["outputs"] == [] for cell in code_cells(file))
    assert all(cell["execution_count"] is None for cell in code_cells(file))


@each_notebook
def test_links_of_a_notebook_lead_somewhere(file: Path):
    text = "".join("".join(c["source"]) for c in json.loads(file.read_text())["cells"])
    targets = re.findall(r"\]\((?!https?://)([^)#]+)", text)
    assert [target for target in targets if not (file.parent / target).exists()] == []
