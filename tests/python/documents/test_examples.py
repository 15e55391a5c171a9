"""The programs of docs/gallery.md learn what they say, and draw the pictures beside them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

import aimle

GALLERY = (ROOT / "docs" / "gallery.md").read_text()
EXAMPLES = sorted(set(re.findall(r"python (examples/\w+\.py)", GALLERY)))


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_learns_and_draws(example: str, tmp_path: Path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "picture.png"
    paths = [str(Path(aimle.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "MPLBACKEND": "agg",
        "OMP_NUM_THREADS": "1",
    }
    result = subprocess.run(
        [sys.executable, ROOT / example, "--picture", picture],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_is_short_and_has_a_small_picture(example: str):
    assert len((ROOT / example).read_text().splitlines()) < 60
    picture = ROOT / "docs" / "pictures" / f"{Path(example).stem}.png"
    assert picture.stat().st_size < 60_000
    assert f"pictures/{picture.name}" in GALLERY
