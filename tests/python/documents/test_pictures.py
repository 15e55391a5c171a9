"""The scripts behind the pictures of concepts and the README's animation draw all of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

PICTURES = ROOT / "docs" / "pictures"
DRAWN = {
    "draw_concepts.py": [
        f"{name}_{mode}.svg"
        for name in ("path", "step_size", "steps")
        for mode in ("dark", "light")
    ],
    "draw_idea.py": ["idea.svg", "idea_dark.svg", "idea_light.svg"],
}


@pytest.mark.parametrize("script", DRAWN)
def test_pictures_are_drawn(script: str, tmp_path: Path):
    pytest.importorskip("matplotlib")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(ROOT / "scripts" / script), str(tmp_path)]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    drawn = sorted(file.name for file in tmp_path.iterdir())
    assert drawn == sorted(DRAWN[script])
    assert all("</svg>" in (tmp_path / name).read_text() for name in drawn)
    assert all((PICTURES / name).stat().st_size < 70_000 for name in drawn)
