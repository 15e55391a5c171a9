"""examples/exported_model: a C++ program runs a model with a layer that Python exported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
RELEASE = ROOT / "build/release"
EXAMPLE = ROOT / "examples/exported_model"


def run(*command: object, **options: object) -> str:
    parts = [str(part) for part in command]
    result = subprocess.run(parts, capture_output=True, text=True, check=False, **options)
    assert result.returncode == 0, f"{parts}\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    prefix, build = tmp_path_factory.mktemp("prefix"), tmp_path_factory.mktemp("exported_model")
    run("cmake", "--install", RELEASE, "--prefix", prefix)
    paths = f"{prefix};{torch.utils.cmake_prefix_path}"
    run("cmake", "-S", EXAMPLE, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={paths}")
    run("cmake", "--build", build)
    return build / "run"


def test_python_and_cpp_print_the_same(program: Path, tmp_path: Path):
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "python"),
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"),
    }
    model = tmp_path / "model.pt2"
    expected = run(sys.executable, EXAMPLE / "export.py", model, env=environment).splitlines()
    rows = [line.split() for line in run(program, model).splitlines()]
    assert rows == [line.split() for line in expected]
    assert len(rows) == 5
    assert all(row.count("1") == 2 and row.count("0") == 4 for row in rows)
    assert len({tuple(row) for row in rows}) > 1


def test_a_missing_model_is_told(program: Path):
    result = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr == "usage: run MODEL.pt2\n"
