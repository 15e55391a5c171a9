"""The programs of docs/gallery learn what they claim and draw their pictures; those for
other frameworks learn too, where these are installed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from extras import need
from repository import ROOT

import aimle

GALLERY = (ROOT / "docs" / "gallery" / "index.md").read_text()
EXAMPLES = sorted(set(re.findall(r"python (examples/\w+\.py)", GALLERY)))


# And the packages that they need.
FRAMEWORKS = {
    "examples/lightning_module.py": ["lightning"],
    "examples/hugging_face_trainer.py": ["transformers", "accelerate"],
}


def run_example(example: str, folder: Path, *arguments: object) -> str:
    paths = [str(Path(aimle.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "MPLBACKEND": "agg",
        "OMP_NUM_THREADS": "1",
    }
    result = subprocess.run(
        [sys.executable, str(ROOT / example), *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_learns_and_draws(example: str, tmp_path: Path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "picture.png"
    run_example(example, tmp_path, "--picture", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_is_short_and_has_a_small_picture(example: str):
    assert len((ROOT / example).read_text().splitlines()) < 60
    picture = ROOT / "docs" / "pictures" / f"{Path(example).stem}.png"
    assert picture.stat().st_size < 60_000
    assert f"pictures/{picture.name}" in GALLERY


@pytest.mark.parametrize("example", FRAMEWORKS)
def test_example_learns_in_another_framework(example: str, tmp_path: Path):
    for package in FRAMEWORKS[example]:
        need(package)
    last = run_example(example, tmp_path).splitlines()[-1]
    assert last.endswith("of the wanted entries found; 25% by chance")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("example", FRAMEWORKS)
def test_example_for_a_framework_is_short(example: str):
    assert len((ROOT / example).read_text().splitlines()) < 60
